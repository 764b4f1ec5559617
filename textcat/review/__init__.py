"""Choose which documents of a tagged archive people review, store their answers, and audit automatic tags."""
