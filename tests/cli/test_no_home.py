"""Without HOME, and with the number of a user that no list has, commands work: caches are a convenience."""

import json
import os

import pytest

from textcat.base.disk import expanded, user_cache
from textcat.base.errors import TextcatError
from textcat.corpus import fetch
from textcat.doctor import kernels
from textcat.features import tables

pwd = pytest.importorskip("pwd", reason="system: there are no numbers of users")

LETTERS = [
    {"text": "the wheat harvest was good", "topics": ["wheat"]},
    {"text": "wheat and maize are dear", "topics": ["wheat", "maize"]},
    {"text": "maize is planted in spring", "topics": ["maize"]},
    {"text": "ships bring wheat", "topics": ["wheat", "ship"]},
    {"text": "a ship sank", "topics": ["ship"]},
    {"text": "the ship is late", "topics": ["ship"]},
]


@pytest.fixture(scope="module", autouse=True)
def languages_once():
    """Nothing: here, each command looks for the tables of its tokenizer."""


@pytest.fixture
def homeless(monkeypatch, tmp_path):
    def unknown(number):
        raise KeyError(f"getpwuid(): uid not found: {number}")

    for name in ("HOME", "USERPROFILE", "LOGNAME", "USER", "LNAME", "USERNAME"):
        monkeypatch.delenv(name, raising=False)
    for name in [*os.environ]:
        if name.startswith("XDG_"):
            monkeypatch.delenv(name)
    monkeypatch.setattr(pwd, "getpwuid", unknown)
    tables.read_cached_tables.cache_clear()
    monkeypatch.chdir(tmp_path)
    (tmp_path / "letters.jsonl").write_text("".join(f"{json.dumps(letter)}\n" for letter in LETTERS))


@pytest.mark.usefixtures("homeless")
def test_every_command_works(run, monkeypatch):
    monkeypatch.setattr(kernels, "check_kernels_apart", list)  # by a process that this one's number of a user is not of
    assert run("train", "letters.jsonl", "--out", "m").code == 0
    for line in ("tag m letters.jsonl", "tag m letters.jsonl --out tagged", "evaluate m", "explain m letters.jsonl"):
        assert run(*line.split()).code == 0, run.err
    assert run("corpora").code == 0
    assert "reuters21578" in run.out
    questions = ("teach", "letters.jsonl", "--topic", "wheat", "--session", "s", "--terminal")
    assert run(*questions, stdin=b"y\nn\nq\n").code == 0
    assert run("doctor").code == 0
    assert "no home folder" in run.out
    assert not os.path.exists("~")


@pytest.mark.usefixtures("homeless")
def test_what_needs_a_home_says_so(run):
    assert "set HOME" in run.refuses("train", "letters.jsonl", "--out", "~/m")
    assert "set HOME" in run.refuses("tag", "~/m", "letters.jsonl")
    assert "set HOME" in run.refuses("reproduce", "nosuch")
    assert fetch.cache_folders() == []
    with pytest.raises(TextcatError, match="HOME"):
        user_cache()
    assert not os.path.exists("~")


@pytest.mark.usefixtures("homeless")
def test_another_place_for_caches_may_be_named(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "caches"))
    assert user_cache() == tmp_path / "caches" / "textcat"
    monkeypatch.setenv("XDG_CACHE_HOME", "caches")  # the standard has it ignored
    with pytest.raises(TextcatError, match="HOME"):
        user_cache()


@pytest.mark.parametrize("home", ["/proc/nowhere", "/dev/null"])
def test_a_home_that_cannot_be_written_to_is_no_error(monkeypatch, run, tmp_path, home):
    monkeypatch.setenv("HOME", home)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    tables.read_cached_tables.cache_clear()
    monkeypatch.setattr(kernels, "check_kernels_apart", list)
    (tmp_path / "letters.jsonl").write_text("".join(f"{json.dumps(letter)}\n" for letter in LETTERS))
    assert run("train", "letters.jsonl", "--out", "m").code == 0
    assert run("corpora").code == 0
    assert run("doctor").code == 0
    assert "The cache is not writable" in run.out


@pytest.mark.usefixtures("homeless")
@pytest.mark.parametrize("name", ["~letters", "~$letter.docx", "~root", "a~", "a/~/b"])
def test_a_name_with_a_tilde_is_a_name(name):
    assert str(expanded(name)) == name


def test_a_tilde_alone_is_the_home(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    assert (expanded("~"), expanded("~/a")) == (tmp_path, tmp_path / "a")


def test_a_model_and_an_archive_may_have_names_with_a_tilde(run, tmp_path):
    for name in ("~letters.jsonl", "~$copy.jsonl"):
        (tmp_path / name).write_text("".join(f"{json.dumps(letter)}\n" for letter in LETTERS))
    assert run("train", "~letters.jsonl", "--out", "~m").code == 0
    assert run("tag", "~m", "~$copy.jsonl").code == 0
    assert json.loads(run.out.splitlines()[0])["source"] == "~$copy.jsonl"
