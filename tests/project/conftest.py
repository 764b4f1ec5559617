"""The published sources, made once for all processes that run tests, and a wheel."""

import importlib.util
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from filelock import FileLock

ROOT = Path(__file__).parents[2]
BUILD_TOOLS = ("Cython", "setuptools")


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
            pytest.skip(f"{tool} is not installed, so the sources cannot be packed")
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
def wheel():
    """The wheel that TEXTCAT_WHEEL names."""
    if "TEXTCAT_WHEEL" not in os.environ:
        pytest.skip("step: scripts/wheel --check builds a wheel, and tries it")
    return Path(os.environ["TEXTCAT_WHEEL"])


@pytest.fixture(scope="session")
def wheel_site(wheel, tmp_path_factory):
    """A folder for PYTHONPATH with what the wheel holds."""
    site = tmp_path_factory.mktemp("site")
    zipfile.ZipFile(wheel).extractall(site)
    return site
