"""What a page of measurements says of the machine, the software and the commit."""

from __future__ import annotations

import os
import platform
import subprocess
from importlib.metadata import version
from pathlib import Path

from textcat import __version__

PACKAGES = ("numpy", "scipy", "scikit-learn", "spacy")


def described() -> str:
    """Return the lines of a list on the machine, the software and the commit."""
    versions = ", ".join(f"{name} {version(name)}" for name in PACKAGES)
    return f"""- Machine: {processor()}, {os.cpu_count()} cores, {platform.system()} {platform.machine()};
  load {load_average()} at the start.
- Software: Python {platform.python_version()}, textcat {__version__} of commit {commit()},
  {versions}."""


def commit() -> str:
    """Return the commit of this checkout, with "-changed" behind it if files differ from it."""
    command = ["git", "describe", "--always", "--exclude=*", "--dirty=-changed"]
    try:
        done = subprocess.run(command, cwd=Path(__file__).parent, capture_output=True, check=True, text=True)
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return done.stdout.strip()


def load_average() -> str:
    """Return the load of the last minute."""
    return f"{os.getloadavg()[0]:.1f}"


def processor() -> str:
    """Return the name of the processor."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or "unknown processor"
    return next(
        (line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "unknown processor"
    )
