"""Fixtures that the tests of this folder share."""

import pytest
from commands import Run
from teach_commands import write_archive

import textcat


@pytest.fixture
def run(capsys, monkeypatch, tmp_path):
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.chdir(tmp_path)
    return Run(capsys, monkeypatch)


@pytest.fixture(scope="module")
def tagger(newswire_tagger):
    return newswire_tagger


@pytest.fixture(scope="module")
def model(tagger, tmp_path_factory):
    return textcat.save(tagger, tmp_path_factory.mktemp("models") / "newswire")


@pytest.fixture(scope="module")
def part(newswire_part):
    return newswire_part


@pytest.fixture
def own(tmp_path):
    """A folder of documents per topic, without a test part."""
    for topic, text in {"cats": "the cat purrs", "dogs": "the dog barks"}.items():
        for number in range(3):
            path = tmp_path / "own" / topic / f"{number}.txt"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f"{text} {number}\n")
    return tmp_path / "own"


@pytest.fixture
def run_teach(capsys, monkeypatch, tmp_path):
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.chdir(tmp_path)
    write_archive("news.jsonl")

    def teach(*arguments, keys=""):
        return Run(capsys, monkeypatch)("teach", *arguments, stdin=keys.encode())

    return teach
