"""Examine an installation of textcat: versions, machine, limits, data, and what every compiled kernel computes."""
