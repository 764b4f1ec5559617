"""The published sources and the wheel: built once for all processes that run tests."""

import importlib.machinery
import importlib.util
import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest
from filelock import FileLock

import textcat

ROOT = Path(__file__).parents[2]
COMPILED = {"_primal", "_product"}  # a part of the sources, with headers in two folders and declarations of a third
BUILD_TOOLS = ("Cython", "setuptools", "pip")


@pytest.fixture(scope="session")
def built(tmp_path_factory):
    """A folder that all processes of this run share, locked until the test has its file from it."""
    shared = tmp_path_factory.getbasetemp()
    folder = (shared.parent if "PYTEST_XDIST_WORKER" in os.environ else shared) / "built"
    folder.mkdir(exist_ok=True)
    return folder


@pytest.fixture(scope="session")
def sdist(built):
    """The sources as they are published, made from a copy of the checkout."""
    if not (ROOT / "setup.py").exists():
        pytest.skip("system: this is no checkout of the sources")
    for tool in BUILD_TOOLS:
        if importlib.util.find_spec(tool) is None:
            pytest.skip(f"{tool} is not installed, so no wheel can be built")
    with FileLock(built / ".sdist.lock"):
        if not [*built.glob("textcat_margin-*.tar.gz")]:
            _build_sdist(built / "checkout")
    return next(built.glob("textcat_margin-*.tar.gz"))


def _build_sdist(copy):
    for folder in ("corpora", "docs", "models", "scripts", "tests", "textcat"):
        shutil.copytree(ROOT / folder, copy / folder, ignore=shutil.ignore_patterns("__pycache__", "*.so"))
    for path in ROOT.iterdir():
        if path.suffix in {".in", ".md", ".py", ".toml"} or path.name == "LICENSE":
            shutil.copy2(path, copy)
    program = "from setuptools import build_meta; build_meta.build_sdist('..')"
    ended = subprocess.run([sys.executable, "-c", program], cwd=copy, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stdout + ended.stderr


@pytest.fixture(scope="session")
def wheel(sdist, built):
    """A wheel built from the published sources, without optimising; with TEXTCAT_LONG all of them are compiled."""
    with FileLock(built / ".wheel.lock"):
        if not [*built.glob("textcat_margin-*.whl")]:
            _build_wheel(sdist, built)
    return next(built.glob("textcat_margin-*.whl"))


def _build_wheel(sdist, built):
    if "TEXTCAT_LONG" not in os.environ:
        with tarfile.open(sdist) as archive:
            archive.extractall(built / "sources", filter="data")
        sdist = next((built / "sources").iterdir())
        for source in sdist.glob("textcat/**/*.pyx"):
            if source.stem not in COMPILED:
                source.unlink()
    command = [sys.executable, "-m", "pip", "wheel", sdist, "--no-build-isolation", "--no-deps", "--wheel-dir", built]
    environment = {**os.environ, "CFLAGS": "-O0 -g0"} if os.name == "posix" else None
    ended = subprocess.run(command, cwd=built, capture_output=True, text=True, env=environment)
    assert ended.returncode == 0, ended.stdout + ended.stderr


@pytest.fixture(scope="session")
def wheel_site(wheel, tmp_path_factory):
    """A folder for PYTHONPATH with what the wheel holds, and with modules that it was built without."""
    site = tmp_path_factory.mktemp("site")
    zipfile.ZipFile(wheel).extractall(site)
    package = Path(textcat.__file__).parent
    for compiled in package.rglob(f"*{importlib.machinery.EXTENSION_SUFFIXES[0]}"):
        # The wheel's own are not optimised, and the fast ones are those of the same sources.
        if "TEXTCAT_LONG" not in os.environ:
            shutil.copy(compiled, site / "textcat" / compiled.relative_to(package))
    return site
