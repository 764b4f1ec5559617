"""Turn texts into sparse document vectors, the rows of a matrix: tokens, term counts, columns, weights."""
