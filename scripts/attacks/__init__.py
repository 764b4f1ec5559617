"""Trials of textcat against hostile input and surroundings.

Each module has a function ``trials(random, seconds)``, which yields ``(name, held, detail)`` for each trial, and starts
no further trial after ``seconds``.
"""
