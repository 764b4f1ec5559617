"""Where the cards, recipes and the small corpus that come with textcat lie."""

from pathlib import Path

_PACKAGE = Path(__file__).parent


def shipped(folder: str) -> Path:
    """Return the path of a shipped folder: ``"corpora"`` or ``"models"``.

    A wheel carries them inside the package, a checkout has them at its top level.
    """
    inside = _PACKAGE / "_shipped" / folder
    return inside if inside.is_dir() else _PACKAGE.parent / folder
