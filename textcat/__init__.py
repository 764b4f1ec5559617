"""Text categorisation with margin perceptrons: documents in, ranked topics out."""

__version__ = "0.1.0"
