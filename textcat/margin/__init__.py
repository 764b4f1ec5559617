"""Train rankers on feature vectors: update rules, training problems, the solver, and scikit-learn classifiers."""

from textcat.margin import rules

__all__ = ["rules"]
