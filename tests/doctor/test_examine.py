"""An installation is examined without telling secrets; what is missing is told with a remedy."""

import json
import os
import re
from importlib import metadata
from pathlib import Path

import pytest

import textcat
from textcat.doctor import examine as module
from textcat.doctor import kernels
from textcat.doctor.examine import examine


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    checks = [kernels.KernelCheck(name, 0.0, "") for name in kernels.CHECKS]
    monkeypatch.setattr(kernels, "check_kernels_apart", lambda: checks)


def test_versions_packages_machine_and_data_are_there():
    found = examine().as_dict()
    assert found["versions"]["textcat"] == textcat.__version__
    assert found["packages"]["numpy"] == metadata.version("numpy")
    assert found["machine"]["cores allowed"] >= 1
    assert "newswire" in found["corpora"]["found"]
    assert set(found["kernels"]) == set(kernels.CHECKS)
    assert found["broken"] == []
    json.dumps(found)


def test_an_absent_extra_is_told_with_its_remedy(monkeypatch):
    lines = [
        "numpy>=1",
        'nosuchpackage>=1; extra == "lang"',
        'pytest; extra == "test"',
        'tomli; python_version < "3.0"',
    ]
    monkeypatch.setattr(module.metadata, "requires", lambda name: lines)
    found = examine()
    assert found.facts["extras"] == {"lang": "absent: pip install 'textcat-margin[lang]'"}
    assert set(found.facts["packages"]) == {"numpy"}
    assert found.broken == []


def test_a_missing_package_is_broken(monkeypatch):
    monkeypatch.setattr(module.metadata, "requires", lambda name: ["nosuchpackage (>=1)"])
    assert examine().broken == ["The package nosuchpackage is missing: install it with `pip install nosuchpackage`."]


@pytest.mark.parametrize(
    ("requirement", "is_too_old"),
    [
        ("numpy>=1.26", False),
        ("numpy (>=1)", False),
        ("numpy>=999.1", True),
        ('numpy>=999; extra == "skos"', True),
        ('numpy>=999; extra == "test"', False),
        ('numpy>=999; python_version < "3.0"', False),
    ],
)
def test_a_package_that_is_too_old_is_broken(monkeypatch, requirement, is_too_old):
    monkeypatch.setattr(module.metadata, "requires", lambda name: [requirement])
    found = [sentence for sentence in examine().broken if "numpy" in sentence]
    assert len(found) == is_too_old
    assert all(f"numpy {metadata.version('numpy')} is too old" in sentence for sentence in found)


@pytest.mark.parametrize(("old", "new"), [("1.9", "1.10"), ("1", "1.0.1"), ("1.26.4", "2"), ("3.8.2rc1", "3.8.3")])
def test_versions_are_compared_by_their_numbers(monkeypatch, old, new):
    monkeypatch.setattr(module.metadata, "requires", lambda name: [f"numpy>={new}"])
    monkeypatch.setattr(module.metadata, "version", lambda name: old)
    assert any("too old" in sentence for sentence in examine().broken)


def test_a_wrong_kernel_is_broken(monkeypatch):
    monkeypatch.setattr(kernels, "check_kernels_apart", lambda: [kernels.KernelCheck("margin.rules", 0.0, "differs")])
    assert examine().broken == ["The compiled module textcat.margin.rules is broken: differs."]


def test_limits_of_the_control_group_are_read(monkeypatch, tmp_path):
    monkeypatch.setattr(module, "CGROUP", tmp_path)
    assert examine().facts["machine"]["cores by control group"] is None
    (tmp_path / "cpu.max").write_text("150000 100000\n")
    (tmp_path / "memory.max").write_text("512000000\n")
    machine = examine().facts["machine"]
    assert (machine["cores by control group"], machine["memory by control group"]) == (1.5, "512 MB")
    (tmp_path / "cpu.max").write_text("max 100000\n")
    (tmp_path / "memory.max").write_text("max\n")
    machine = examine().facts["machine"]
    assert (machine["cores by control group"], machine["memory by control group"]) == (None, None)


def test_a_cache_that_is_not_writable_and_few_open_files_are_warnings(monkeypatch, tmp_path):
    (tmp_path / "file").write_text("")
    monkeypatch.setattr(module, "user_cache", lambda: tmp_path / "file")  # a file, in which no file can be
    resource = pytest.importorskip("resource", reason="system: there are no limits of resources here")
    monkeypatch.setattr(resource, "getrlimit", lambda limit: (64, 64))
    found = examine()
    assert found.broken == []
    assert [re.match("The cache|Only 64 files", warning) is not None for warning in found.warnings] == [True, True]


def test_nothing_secret_is_told(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path / "ann"))
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    secrets = {"HF_TOKEN": "hf_secret", "AWS_SECRET_ACCESS_KEY": "aws_secret", "TEXTCAT_NEWS": "/srv/secret"}
    for name, value in secrets.items():
        monkeypatch.setenv(name, value)
    told = json.dumps(examine().as_dict())
    assert not [value for value in secrets.values() if value in told]
    assert str(tmp_path) not in told
    assert os.uname().nodename not in told or len(os.uname().nodename) < 4
    assert "TEXTCAT_NEWS" in told
    assert Path.home().name == "ann"
