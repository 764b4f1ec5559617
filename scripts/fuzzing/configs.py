"""What people write by hand, and what a run leaves behind: cards, recipes, descriptions of topics, journals."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path

from textcat.base.errors import TextcatError
from textcat.base.journal import journal_line, read_journal
from textcat.corpus.cards import read_card
from textcat.corpus.descriptions import read_descriptions
from textcat.corpus.vocabulary import Vocabulary
from textcat.recipes.recipe import read_recipe

from .target import Target

_FOLDER = tempfile.TemporaryDirectory(prefix="textcat-fuzz-", dir="/dev/shm" if Path("/dev/shm").is_dir() else None)
_ENDINGS = (".json", ".tsv", ".csv", ".txt")
_VOCABULARIES = (".tsv", ".csv")


def _card(path: Path) -> None:
    card = read_card(path)
    for name in ("a/1.jsonl", "2286newsML.xml", "19960820/1.xml", "train/tin/1", "reut2-000.sgm"):
        card.wanted(name)


def _recipe(path: Path) -> None:
    assert read_recipe(path).topics.description_copies >= 0


def _journal(path: Path) -> None:
    entries = read_journal(path)
    if entries is not None:
        assert entries.lines or entries.damaged
        assert 0 <= entries.length <= path.stat().st_size


_READERS: tuple[Callable[[Path], None], ...] = (_card, _recipe, _journal)


def check(data: bytes) -> None:
    which, data = data[:1] or b"\0", data[1:]
    number = which[0] % (len(_READERS) + len(_ENDINGS) + len(_VOCABULARIES))
    with suppress(TextcatError):
        if number < len(_READERS):
            path = Path(_FOLDER.name, "a.toml")
            path.write_bytes(data)
            _READERS[number](path)
        elif number >= len(_READERS) + len(_ENDINGS):
            path = Path(_FOLDER.name, f"v{_VOCABULARIES[number - len(_READERS) - len(_ENDINGS)]}")
            path.write_bytes(data)
            names = Vocabulary.read(path).names
            assert names
            assert all(topic.strip() and called and all(called) for topic, called in names.items())
        else:
            name = f"topics{_ENDINGS[number - len(_READERS)]}"
            descriptions = read_descriptions(name, data)
            assert descriptions
            assert all(isinstance(text, str) for pair in descriptions.items() for text in pair)


def _seeds() -> Iterable[bytes]:
    root = Path(__file__).parent.parent.parent
    for card in sorted(root.glob("corpora/*.toml")):
        yield b"\0" + card.read_bytes()
    for recipe in sorted(root.glob("textcat/recipes/*.toml")):
        yield b"\1" + recipe.read_bytes()
    entries = [{"model": "a", "format": 1}, {"end": [0, 1, 2], "rows": 7}, {"end": [1, 1, 2], "rows": 9}]
    yield b"\2" + b"".join(map(journal_line, entries))
    yield b'\3{"wheat": "Wheat and flour", "tin": ""}'
    yield b"\4name\ttext\nwheat\tWheat, flour\n"
    yield b'\5topic,description\nwheat,"Wheat, flour"\n\ntin,Tin'
    yield b"\7<http://e.org/1>\tTin\t1.1\n\np2\tGold\np2\tAurum\n"
    yield b'\10uri,label_en,notation\nhttp://e.org/1,"Tin, metal",1.1\n<urn:2>,Gold,\n'
    yield b"\6head\n**Currency Codes (27)\nU.S. Dollar (DLR)\nWHEAT\n____\nno"


_WORDS = (
    *(b"name", b"reader", b"files", b"urls", b"options", b"counts", b"sha256", b"tree", b"topics", b"descriptions"),
    *(b'"folders"', b'"jsonl"', b'"rcv1"', b'"reuters"', b"[options]\n", b"[sha256]\n", b"[counts]\n", b"[tokens]\n"),
    *(b"[features]\n", b"[topics]\n", b"[learner]\n", b"[tags]\n", b"title = ", b"true", b"false", b"nan", b"-inf"),
    *(b"1e400", b"-1", b"0", b"[]", b"{}", b'""', b"''' '''", b"1979-05-27", b"[[a]]\n", b"a.b.c = 1\n", b"0x7fffffff"),
    *(
        b"version = ",
        b"train = ",
        b'"1 to 2"',
        b"ngrams = ",
        b"zone_terms = ",
        b"zones = ",
        b"weighting = ",
    ),
    *(b"language = ", b"dtype = ", b"kernel = ", b"jobs = ", b"9" * 5000, b"[" * 2000, b'{"a":' * 2000, b"9" * 400),
)

CONFIGS = Target(check, _seeds, _WORDS)
