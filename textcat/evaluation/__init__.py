"""How good rankings, decisions and probabilities are."""
