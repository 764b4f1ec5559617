"""What a page of measurements says of the machine and the software."""

from __future__ import annotations

import os
import platform
from importlib.metadata import version
from pathlib import Path

from textcat import __version__

PACKAGES = ("numpy", "scipy", "scikit-learn", "spacy")


def described() -> str:
    """Return the lines of a list on the machine and the software."""
    versions = ", ".join(f"{name} {version(name)}" for name in PACKAGES)
    load = os.getloadavg()[0]
    return f"""- Machine: {_processor()}, {os.cpu_count()} cores, {platform.system()} {platform.machine()};
  load {load:.1f} at the start.
- Software: Python {platform.python_version()}, textcat {__version__}, {versions}."""


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or "unknown processor"
    return next(
        (line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "unknown processor"
    )
