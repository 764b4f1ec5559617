"""The library's face, the published sources and the wheel: what is promised to be inside is inside, and works."""

import json
import os
import re
import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from itertools import product
from pathlib import Path

import pytest

try:
    import tomllib
except ImportError:  # Python 3.10
    import tomli as tomllib

import textcat
from textcat.base.disk import shipped
from textcat.base.errors import DISTRIBUTION

ROOT = Path(__file__).parents[2]
WORKSHOP = {"ci", "dev", "docs", "test"}  # extras for those who change textcat


def test_every_main_name_is_there():
    names = [getattr(textcat, name).__name__ for name in textcat.__all__]
    assert [name.rpartition(".")[2] for name in names] == textcat.__all__  # a module has its folders in its name
    assert {*textcat.__all__} <= {*dir(textcat)}


def test_a_name_that_is_not_there_is_told_with_those_that_are():
    with pytest.raises(AttributeError, match=r"no attribute 'Taggr'; it has .*Tagger"):
        _ = textcat.Taggr


def test_importing_textcat_imports_nothing_large():
    program = "import sys, textcat; print(sorted({'numpy', 'scipy', 'sklearn', 'spacy', 'rich'} & set(sys.modules)))"
    printed = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert printed == "[]\n"


@pytest.mark.long
def test_an_editable_install_wins_over_a_folder_of_its_name(sdist, tmp_path):
    clone = tmp_path / "textcat"
    with tarfile.open(sdist) as archive:
        archive.extractall(tmp_path, filter="data")
    next(tmp_path.glob("textcat_margin-*")).rename(clone)
    for source in clone.glob("textcat/**/*.pyx"):
        source.unlink()
    # Nothing to compile: the code that all modules share is there, and newer than its sources.
    (clone / "textcat" / f"_cython{sysconfig.get_config_var('EXT_SUFFIX')}").touch()
    program = "from setuptools import build_meta; build_meta.build_editable('..')"
    built = subprocess.run([sys.executable, "-c", program], cwd=clone, capture_output=True, text=True)
    assert built.returncode == 0, built.stdout + built.stderr
    zipfile.ZipFile(next(tmp_path.glob("*.whl"))).extractall(tmp_path / "site")
    program = "import site; site.addsitedir('site'); import textcat; print(textcat.__version__, textcat.__file__)"
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    command = [sys.executable, "-S", "-c", program]  # without this environment's own packages, textcat among them
    printed = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True, env=environment).stdout
    assert printed.split() == [textcat.__version__, str(clone / "textcat" / "__init__.py")]


@pytest.mark.long
def test_the_version_and_the_name_stand_in_one_place(sdist):
    name, metadata = f"textcat_margin-{textcat.__version__}", "PKG-INFO"
    with tarfile.open(sdist) as archive:
        lines = archive.extractfile(f"{name}/{metadata}").read().decode().splitlines()
    assert {f"Name: {DISTRIBUTION}", f"Version: {textcat.__version__}"} <= set(lines)
    assert f"\nversion: {textcat.__version__}\n" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    headings = re.findall(r"^## \[(.*)\]", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert headings[0] in ("Unreleased", textcat.__version__)


def test_every_extra_that_a_message_advises_is_there():
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    sources = "".join(path.read_text(encoding="utf-8") for path in ROOT.glob("textcat/**/*.py"))
    advised = set(re.findall(r"install_hint\(['\"](\w+)", sources))
    assert advised
    assert advised <= set(extras)
    assert set(
        re.findall(r"^\| `textcat-margin\[(\w+)\]`", (ROOT / "docs/how-to/install.md").read_text(), re.MULTILINE)
    ) == (set(extras) - WORKSHOP)
    assert not (set(extras) - WORKSHOP) - set(re.findall(r"`(\w+)`", (ROOT / "README.md").read_text()))


def test_the_extra_all_has_every_extra_for_users():
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    (everything,) = extras.pop("all")
    assert set(re.findall(r"\w+", everything.partition("[")[2])) == set(extras) - WORKSHOP


@pytest.mark.long
def test_the_published_sources_are_those_that_are_written_by_hand(sdist):
    with tarfile.open(sdist) as archive:
        inside = {name.partition("/")[2] for name in archive.getnames()}
    written = ("textcat", "py pyi pyx pxd h toml typed css js"), ("corpora", "toml sgm"), ("tests scripts", "py")
    for folders, kinds in written:
        for folder, kind in product(folders.split(), kinds.split()):
            for path in ROOT.glob(f"{folder}/**/*.{kind}"):
                assert path.relative_to(ROOT).as_posix() in inside
    assert not [name for name in inside if name.endswith((".c", ".so"))]


@pytest.mark.long
def test_the_wheel_holds_cards_recipes_and_the_small_corpus(wheel):
    inside = set(zipfile.ZipFile(wheel).namelist())
    for folder in ("corpora", "recipes"):
        for path in shipped(folder).glob("*.toml"):
            assert f"textcat/{folder}/{path.name}" in inside
    assert "textcat/corpora/newswire/newswire.sgm" in inside
    assert "textcat/features/english.npz" in inside
    for text in ("LICENSE", "NOTICE"):
        assert any(name.endswith(f"licenses/{text}") for name in inside)
    for kind in ("py", "pyi", "typed", "css", "js"):
        for path in ROOT.glob(f"textcat/**/*.{kind}"):
            assert path.relative_to(ROOT).as_posix() in inside
    assert not [name for name in inside if name.endswith((".c", ".h", ".pxd", ".pyx"))]


@pytest.fixture
def bill(wheel):
    """The bill of materials that is in the wheel, as text."""
    with zipfile.ZipFile(wheel) as archive:
        (name,) = [name for name in archive.namelist() if ".dist-info/sboms/" in name and not name.endswith("/")]
        return archive.read(name).decode()


@pytest.mark.long
def test_the_bill_of_materials_lists_what_is_compiled_in_and_each_requirement_once(bill):
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = {extra: asked for extra, asked in project["optional-dependencies"].items() if extra not in WORKSHOP}
    del extras["all"]
    listed = json.loads(bill)["components"]
    requirements = {
        component["properties"][0]["value"].replace(" ", ""): component["scope"]
        for component in listed
        if component["name"] != "Cython"
    }
    needed = {asked.replace(" ", "").replace("'", '"'): "required" for asked in project["dependencies"]}
    required = {re.split(r"[^\w.-]", asked)[0] for asked in needed}
    optional = {
        asked: "optional"
        for extra in extras.values()
        for asked in extra
        if re.split(r"[^\w.-]", asked)[0] not in required  # as fsspec, of which an extra brings more
    }
    assert {asked.replace("'", '"'): scope for asked, scope in requirements.items()} == optional | needed
    (compiled_in,) = [component for component in listed if component["name"] == "Cython"]
    assert compiled_in["version"]
    assert len({component["bom-ref"] for component in listed}) == len(listed) == len(optional) + len(needed) + 1


@pytest.mark.long
def test_the_bill_of_materials_keeps_to_its_schema(bill):
    reason = "cyclonedx-python-lib is not installed"
    schema = pytest.importorskip("cyclonedx.schema", reason=reason)
    validation = pytest.importorskip("cyclonedx.validation.json", reason=reason)
    assert validation.JsonStrictValidator(schema.SchemaVersion.V1_6).validate_str(bill) is None


@pytest.mark.long
def test_the_wheel_trains_away_from_the_checkout(wheel_site, tmp_path):
    program = (
        "import textcat.base.disk, sys\n"
        "print(textcat.base.disk.shipped('corpora'))\n"
        "sys.argv = ['textcat', 'train', 'newswire', '--out', 'm']\n"
        "from textcat.__main__ import main; main()"
    )
    environment = {**os.environ, "PYTHONPATH": str(wheel_site)}
    ended = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, env=environment
    )
    assert ended.stdout.splitlines()[0] == str(wheel_site / "textcat" / "corpora")
    said = "textcat: 721 training documents: trained by the recipe few-documents; --recipe names another.\n"
    assert (ended.returncode, ended.stderr) == (0, said)
    assert ended.stdout.splitlines()[-1] == "Model: m"
