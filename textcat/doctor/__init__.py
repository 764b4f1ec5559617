"""Examine an installation of textcat: versions, machine, limits, data, and the results of every compiled module."""
