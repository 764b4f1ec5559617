"""Measure the quality of rankings and decisions."""
