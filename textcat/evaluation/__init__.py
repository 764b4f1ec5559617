"""Measure the quality of rankings, decisions and probabilities."""
