"""Collect facts about an installation, and its faults: for error reports, or for a new machine.

Nothing secret is collected: no name of a host or user, of paths only the part below the home folder, and of most
environment variables only their names.
"""

from __future__ import annotations

import locale
import os
import platform
import re
import sys
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import textcat
from textcat.base.disk import user_cache
from textcat.base.errors import DISTRIBUTION, TextcatError, install_hint
from textcat.base.progress import cores
from textcat.training.memory import available_memory

if TYPE_CHECKING:
    from textcat.doctor.kernels import KernelCheck

_OF_DEVELOPERS = ("ci", "dev", "docs", "test")  # extras
_FEATURES = ("avx2", "avx512f", "fma", "asimd", "sve")  # names of processors in /proc/cpuinfo
CGROUP = Path("/sys/fs/cgroup")
_FEW_FILES = 256  # minimum limit of open files: a lower one may end a server or a large archive
_REQUIREMENT = re.compile(r"([A-Za-z0-9._-]+)(?:\[[^\]]*\])?\s*([^;]*)(?:;\s*(.*))?")


class Examination(NamedTuple):
    """Facts about an installation by section, results of checking the compiled functions, and sentences on faults."""

    facts: Mapping[str, Mapping[str, Any]]
    kernels: list[KernelCheck]
    broken: list[str]  # faults that make results wrong or commands fail
    warnings: list[str]  # facts that may be intended

    def as_dict(self) -> dict[str, Any]:
        """Return the examination as JSON values."""
        kernels = {
            check.name: {"seconds": round(check.seconds, 3), "error": check.error or None} for check in self.kernels
        }
        return {**self.facts, "kernels": kernels, "broken": self.broken, "warnings": self.warnings}


def examine() -> Examination:
    """Examine this installation, in a few seconds; nothing is written but temporary files."""
    packages, missing = _packages()
    facts = {
        "versions": _versions(),
        "packages": packages,
        "extras": _extras(),
        "machine": _machine(),
        "limits": _limits(),
        "locale": _locale(),
        "folders": _folders(),
        "corpora": {"found": ", ".join(_corpora()) or "none"},
    }
    broken = [f"The package {name} is missing: install it with `pip install {name}`." for name in missing]
    broken += _too_old()
    try:
        from textcat.doctor.kernels import broken_kernels, check_kernels_apart
    except ImportError as error:  # numpy or scipy
        kernels = []
        broken.append(f"The compiled modules cannot be checked, as an import fails ({error}): install textcat again.")
    else:
        kernels = check_kernels_apart()
        broken += broken_kernels(kernels)
    return Examination(facts, kernels, broken, _warnings(facts))


def _versions() -> dict[str, str]:
    compiled = platform.python_compiler()
    free_threaded = not getattr(sys, "_is_gil_enabled", lambda: True)()
    python = f"{platform.python_implementation()} {platform.python_version()}{' without a GIL' * free_threaded}"
    return {"textcat": textcat.__version__, "Python": python, "compiler": compiled, "system": platform.platform()}


def _requirements() -> list[tuple[str, str, str]]:
    """Return the name, the version specifier and the marker of each requirement; [] if the metadata are missing."""
    try:
        lines = metadata.requires(DISTRIBUTION) or []
    except metadata.PackageNotFoundError:
        return []
    matches = filter(None, map(_REQUIREMENT.match, lines))
    return [(match[1], match[2].strip(" ()"), match[3] or "") for match in matches]


def _packages() -> tuple[dict[str, str], list[str]]:
    """Return the versions of the packages that textcat needs, and the names of those that are missing."""
    names = [name for name, _, marker in _requirements() if "extra ==" not in marker and _applies(marker)]
    versions = {name: _version(name) for name in names or ("numpy", "scipy", "scikit-learn", "spacy")}
    return (
        {name: version or "missing" for name, version in versions.items()},
        [name for name, version in versions.items() if version is None],
    )


def _too_old() -> list[str]:
    """Return a sentence for each installed package that is older than textcat, or an extra for users, requires."""
    sentences = {}
    for name, specifier, marker in _requirements():
        extra = re.search(r"extra == ['\"]([\w-]+)", marker)
        lowest, version = re.search(r">=\s*([\w.]+)", specifier), _version(name)
        if (extra and extra[1] in _OF_DEVELOPERS) or not _applies(marker) or not lowest or not version:
            continue
        if _numbers(version) < _numbers(lowest[1]):
            remedy = f"install another one with `pip install '{name}>={lowest[1]}'`"
            sentences[name] = f"The package {name} {version} is too old, as textcat needs {lowest[1]}: {remedy}."
    return [*sentences.values()]


def _numbers(version: str) -> list[int]:
    """Return the numbers that a version begins with, such as [1, 26] for 1.26.0rc1, without zeros at the end."""
    match = re.match(r"\d+(?:\.\d+)*", version)
    numbers = [*map(int, match[0].split("."))] if match else []
    while numbers and not numbers[-1]:
        numbers.pop()
    return numbers


def _applies(marker: str) -> bool:
    """Return whether the marker of a requirement applies; markers other than extras compare Python's version."""
    match = re.search(r"python_version\s*<\s*['\"](\d+)\.(\d+)", marker)
    return match is None or sys.version_info[:2] < (int(match[1]), int(match[2]))


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _extras() -> dict[str, str]:
    """Return the state of each extra for users: the versions of its packages, or how to install it."""
    needed: dict[str, dict[str, str | None]] = {}
    for name, _, marker in _requirements():
        match = re.search(r"extra == ['\"]([\w-]+)", marker)
        if match and match[1] not in _OF_DEVELOPERS and name != DISTRIBUTION:
            needed.setdefault(match[1], {})[name] = _version(name)
    return {
        extra: f"absent: {install_hint(extra)}"
        if None in versions.values()
        else ", ".join(f"{name} {version}" for name, version in versions.items())
        for extra, versions in sorted(needed.items())
    }


# --- the machine -----------------------------------------------------------------------------------------------------


def _machine() -> dict[str, Any]:
    return {
        "processor": platform.machine(),
        "features": ", ".join(_processor_features()) or "none that kernels use",
        "cores": os.cpu_count(),
        "cores allowed": cores(),
        "cores by control group": _cgroup_cores(),
        "memory available": _megabytes(available_memory()),
        "memory by control group": _megabytes(_cgroup_memory()),
    }


def _processor_features() -> list[str]:
    with suppress(OSError):
        text = Path("/proc/cpuinfo").read_text(encoding="ascii", errors="replace")
        if match := re.search(r"^(?:flags|Features)\s*:(.*)$", text, re.MULTILINE):
            return [name for name in _FEATURES if name in match[1].split()]
    return []


def _cgroup_cores() -> float | None:
    """Return the number of cores whose time the control group may use; None if there is no such limit."""
    with suppress(OSError, ValueError):
        quota, period = (CGROUP / "cpu.max").read_text().split()
        return round(int(quota) / int(period), 2)  # "max" means no limit
    return None


def _cgroup_memory() -> int | None:
    with suppress(OSError, ValueError):
        return int((CGROUP / "memory.max").read_text())
    return None


def _megabytes(size: int | None) -> str | None:
    return None if size is None else f"{size / 1e6:,.0f} MB"


def _limits() -> dict[str, Any]:
    try:
        import resource
    except ImportError:  # Windows
        return {"open files": None}
    limits = {"open files": "RLIMIT_NOFILE", "address space": "RLIMIT_AS", "size of a file": "RLIMIT_FSIZE"}
    soft = {name: resource.getrlimit(getattr(resource, limit))[0] for name, limit in limits.items()}
    values: dict[str, Any] = {name: None if n == resource.RLIM_INFINITY else n for name, n in soft.items()}
    threads = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
    return {**values, **{name: os.environ[name] for name in threads if name in os.environ}}


def _locale() -> dict[str, Any]:
    output = getattr(sys.stdout, "encoding", None)
    return {
        "encoding": locale.getpreferredencoding(False),
        "file names": sys.getfilesystemencoding(),
        "standard output": output,
        "language": os.environ.get("LC_ALL") or os.environ.get("LC_CTYPE") or os.environ.get("LANG"),
    }


# --- folders ---------------------------------------------------------------------------------------------------------


def _folders() -> dict[str, Any]:
    try:
        cache = user_cache()
        facts = {"cache": _without_home(cache), "cache is writable": _is_writable(cache)}
    except TextcatError:
        facts = {"cache": "no home folder"}
    named = sorted(name for name in os.environ if name.startswith("TEXTCAT_"))
    return {
        **facts,
        "temporary files are writable": _is_writable(Path(tempfile.gettempdir())),
        "variables that are set": ", ".join(named) or "none",
    }


def _without_home(path: Path) -> str:
    with suppress(ValueError, RuntimeError):
        return f"~/{path.relative_to(Path.home()).as_posix()}"
    return "outside of the home folder"


def _is_writable(folder: Path) -> bool:
    """Return whether a file can be written in a folder, or in the nearest folder above it that exists."""
    above = next(place for place in (folder, *folder.parents) if place.exists())
    try:
        with tempfile.TemporaryFile(dir=above):
            return True
    except OSError:
        return False


def _corpora() -> list[str]:
    from textcat.corpus.cards import cards
    from textcat.corpus.fetch import locate_corpus

    names = []
    for name, card in cards().items():
        with suppress(TextcatError, OSError):
            if locate_corpus(card) is not None:
                names.append(name)
    return names


def _warnings(facts: Mapping[str, Mapping[str, Any]]) -> list[str]:
    warnings = []
    is_writable = facts["folders"].get("cache is writable")
    if is_writable is None:
        warnings.append("There is no home folder, so no cache: set HOME or XDG_CACHE_HOME to a folder.")
    elif not is_writable:
        warnings.append("The cache is not writable: corpora and tables of languages cannot be kept.")
    if not facts["folders"]["temporary files are writable"]:
        warnings.append("The folder of temporary files is not writable: set TMPDIR to one that is.")
    files = facts["limits"]["open files"]
    if files is not None and files < _FEW_FILES:
        warnings.append(f"Only {files} files may be open at a time: raise the limit with `ulimit -n 1024`.")
    if not re.fullmatch("utf-?8", facts["locale"]["file names"], re.IGNORECASE):
        warnings.append("File names are not in UTF-8: set LC_ALL=C.UTF-8.")
    return warnings
