"""Bytes anywhere → documents: the one way in, for training and for tagging."""
