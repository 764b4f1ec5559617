"""Find what tests can use and no extra of pip brings, and install it: `python scripts/optional_tools.py`.

Chromium comes from Debian's packages where `apt-get` may be used, else from playwright; axe-core comes from npm. A
sentence on standard error names each tool that cannot be installed, and the exit code is then 1.
"""

import os
import shutil
import subprocess
import sys
from importlib import metadata
from pathlib import Path

AXE = Path("node_modules", "axe-core", "axe.min.js")
CHECKOUT = Path(__file__).resolve().parents[1]
HEADLESS = "chromium-headless-shell"
LONGEST = 300  # seconds for one installation


def chromium() -> str | None:
    """Return the program that TEXTCAT_CHROMIUM names, or else a Chromium or Chrome on the path.

    One that never has a window takes two thirds of the processor time.
    """
    names = (HEADLESS, "chromium", "chromium-browser", "google-chrome")
    return os.environ.get("TEXTCAT_CHROMIUM") or next(filter(None, map(shutil.which, names)), None)


def axe() -> Path | None:
    """Return the script of axe-core: TEXTCAT_AXE, or of `npm install axe-core` in the environment or the checkout."""
    named = os.environ.get("TEXTCAT_AXE")
    paths = [Path(named)] if named else [Path(sys.prefix, AXE), CHECKOUT / AXE]
    return next((path for path in paths if path.is_file()), None)


def _runs(*command: str, shown: bool = True) -> bool:
    """Run a command that can ask nothing; its last lines are `shown` if it fails."""
    try:
        ended = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=LONGEST,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        print(error, file=sys.stderr)
        return False
    if ended.returncode and shown:
        print(*ended.stdout.splitlines()[-20:], sep="\n", file=sys.stderr)
    return ended.returncode == 0


def _debian_packages(*packages: str) -> bool:
    """Install Debian's packages, as root or by a `sudo` that asks for no password."""
    if shutil.which("apt-get") is None:
        return False
    sudo = [] if os.geteuid() == 0 else ["sudo", "-n"]
    apt = [*sudo, "env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "--quiet", "--yes", "-o", "Acquire::Retries=3"]
    install = [*apt, "install", "--no-install-recommends", *packages]
    # Where the lists of packages are missing or too old, the first call fails.
    return _runs(*install, shown=False) or (_runs(*apt, "update") and _runs(*install))


def _ensure_chromium() -> bool:
    packages = (HEADLESS, "fonts-liberation"), ("chromium", "fonts-liberation")
    if chromium() or (any(_debian_packages(*names) for names in packages) and chromium()):
        return True
    return _runs(sys.executable, "-m", "playwright", "install", "chromium")


def _ensure_axe() -> bool:
    if axe():
        return True
    npm = shutil.which("npm") or (_debian_packages("npm") and shutil.which("npm"))
    options = ("--no-save", "--no-package-lock", "--no-audit", "--no-fund", "--ignore-scripts")
    return bool(npm and _runs(npm, "install", "--prefix", sys.prefix, *options, "axe-core@4") and axe())


def asreview_insights() -> Path | None:
    """Return the file of asreview-insights that computes measures.

    Importing its package would open a cache in the current folder and lead all of `requests` through it.
    """
    try:
        path = Path(
            str(metadata.distribution("asreview-insights").locate_file("asreviewcontrib/insights/algorithms.py"))
        )
    except metadata.PackageNotFoundError:
        return None
    return path if path.is_file() else None


def _ensure_asreview_insights() -> bool:
    """Install this package alone: its many dependencies are of no use for the one file."""
    if asreview_insights():
        return True
    _runs(sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "asreview-insights>=1.6")
    return asreview_insights() is not None


TOOLS = {
    "Chromium": (_ensure_chromium, "install it, or name it with TEXTCAT_CHROMIUM"),
    "axe-core": (_ensure_axe, "install npm, or name its axe.min.js with TEXTCAT_AXE"),
    "asreview-insights": (_ensure_asreview_insights, "install it with pip"),
}


def main() -> int:
    """Install what is not there; return 1 if something is still missing."""
    missing = [(name, remedy) for name, (ensure, remedy) in TOOLS.items() if not ensure()]
    sentences = [f"{name} is missing and could not be installed: {remedy}." for name, remedy in missing]
    print(*sentences, sep="\n", end="\n" * bool(sentences), file=sys.stderr)
    return 1 if sentences else 0


if __name__ == "__main__":
    sys.exit(main())
