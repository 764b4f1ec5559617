"""Helpers for all packages: errors, files and folders, journals, texts, tables of pandas, progress, settings."""
