"""Find, download, verify and read corpora, with descriptions and names of their topics."""
