"""Fuzzing of everything that reads: the checks, valid inputs to start from, and the programs that run them."""
