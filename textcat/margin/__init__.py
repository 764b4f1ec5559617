"""Train rankers on rows: rules, problems, the solver, and the learners as scikit-learn classifiers."""

from textcat.margin import rules

__all__ = ["rules"]
