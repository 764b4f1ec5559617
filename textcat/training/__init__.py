"""Documents and a recipe → a trained tagger."""
