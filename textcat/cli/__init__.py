"""The command line."""

from textcat.cli.app import app, main

__all__ = ["app", "main"]
