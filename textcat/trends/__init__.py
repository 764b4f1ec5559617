"""Estimate how prevalent topics are, period by period, from the scores of documents that nobody has read."""
