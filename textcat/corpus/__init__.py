"""Corpora: find, download, verify and read named ones; describe and name their topics."""
