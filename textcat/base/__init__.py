"""Helpers for all packages: errors, files and folders, journals, texts, frames, progress, settings."""
