"""Axes that matplotlib has drawn on → an SVG file, the same to the byte from run to run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from textcat.errors import TextcatError, install_hint


def axes(width: float = 6.0, height: float = 4.0) -> Any:
    """Return empty axes to draw on, of a figure of that size in inches.

    Raises
    ------
    TextcatError
        If matplotlib is not installed.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise TextcatError(f"A picture needs matplotlib: {install_hint('pictures')}.") from error
    return Figure(figsize=(width, height), layout="constrained").add_subplot()


def save(drawn: Any, path: Path) -> None:
    """Write the figure of some axes as SVG: no date, no random names, text as text."""
    import matplotlib

    with matplotlib.rc_context({"svg.hashsalt": "textcat", "svg.fonttype": "none"}):
        drawn.figure.savefig(path, format="svg", metadata={"Date": None})
