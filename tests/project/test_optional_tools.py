"""What tests can use is found, or installed by the programs that are there, or named in a sentence each."""

import os
import shutil
import sys
from pathlib import Path

import optional_tools
import pytest

pytestmark = pytest.mark.skipif(os.name == "nt", reason="system: programs are not scripts")

APT_GET = """#!{python}
import sys
from pathlib import Path
folder, command, packages = Path({folder!r}), *(sys.argv[5:6] or ["?"]), sys.argv[7:]
assert sys.stdin.read() == ""
if command == "update":
    Path(folder, "updated").touch()
elif not Path(folder, "updated").exists():
    sys.exit("E: Unable to locate package")
for package in packages:
    Path(folder, package).write_text("#!/bin/sh")
    Path(folder, package).chmod(0o755)
"""
NPM = """#!{python}
import sys
from pathlib import Path
script = Path(sys.argv[sys.argv.index("--prefix") + 1], "node_modules", "axe-core", "axe.min.js")
script.parent.mkdir(parents=True)
script.touch()
"""


@pytest.fixture
def programs(tmp_path, monkeypatch):
    """A folder of programs, the only one on the path; and an environment that has nothing."""
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "env").symlink_to(shutil.which("env"))
    for name in ("TEXTCAT_AXE", "TEXTCAT_CHROMIUM"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.setattr(sys, "prefix", str(tmp_path / "environment"))
    monkeypatch.setattr(sys, "executable", str(folder / "python"))
    monkeypatch.setattr(optional_tools, "CHECKOUT", tmp_path)
    monkeypatch.setattr(optional_tools, "asreview_insights", lambda: folder)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    return folder


def add(folder, name, program):
    (folder / name).write_text(program.format(python=PYTHON, folder=str(folder)))
    (folder / name).chmod(0o755)


PYTHON = sys.executable


def test_what_is_missing_is_installed(programs, tmp_path, capfd):
    add(programs, "apt-get", APT_GET)
    add(programs, "npm", NPM)
    assert optional_tools.main() == 0
    assert capfd.readouterr() == ("", "")
    assert optional_tools.chromium() == str(programs / optional_tools.HEADLESS)
    assert optional_tools.axe() == tmp_path / "environment" / optional_tools.AXE
    for name in ("apt-get", "npm"):
        (programs / name).unlink()
    assert optional_tools.main() == 0, "nothing is installed twice"


def test_each_thing_that_cannot_be_installed_is_named_with_the_remedy(programs, capfd):
    assert optional_tools.main() == 1
    chromium, axe = capfd.readouterr().err.splitlines()[-2:]
    assert chromium.startswith("Chromium is missing")
    assert "TEXTCAT_CHROMIUM" in chromium
    assert axe.startswith("axe-core is missing")
    assert "TEXTCAT_AXE" in axe


def test_variables_name_the_tools(programs, monkeypatch, tmp_path):
    monkeypatch.setenv("TEXTCAT_CHROMIUM", "my-chromium")
    (tmp_path / "axe.js").touch()
    monkeypatch.setenv("TEXTCAT_AXE", str(tmp_path / "axe.js"))
    assert (optional_tools.chromium(), optional_tools.axe()) == ("my-chromium", Path(tmp_path, "axe.js"))
    assert optional_tools.main() == 0
