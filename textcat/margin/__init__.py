"""How rows become rankers."""
