"""Serve every room: errors, files and folders, journals, texts, frames, progress, settings."""
