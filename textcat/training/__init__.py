"""Train a tagger from documents and a recipe."""
