"""The tagger and its folder."""

import os
from enum import Enum

from textcat.base.errors import TextcatError
from textcat.base.folders import MANIFEST

CARD = "README.md"  # the model card, for people to read and edit: checksums leave it out, and no computation reads it
MOST_CARD_BYTES = 1 << 16  # maximum size of a card that is read or copied


class Reason(str, Enum):
    """List the reasons why a document gives no evidence for any topic; outputs show the values."""

    NO_KNOWN_TERM = "no_known_term"  # it is empty, or has no term of the model


class ModelError(TextcatError):
    """Raised for a folder that is not a model, a damaged model, or a model of another format."""


def manifest_status(folder: str | os.PathLike[str]) -> os.stat_result | None:
    """Return the `os.stat` of a model's manifest, which changes when the model is replaced; None without a manifest."""
    try:
        return os.stat(os.path.join(folder, MANIFEST))
    except OSError:
        return None
