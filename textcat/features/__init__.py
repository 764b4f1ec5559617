"""Turn texts into rows: tokens, term counts, columns, weights."""
