"""Titles of books, articles and theses with their subjects → a corpus of some of them.

`yso-finna-en.tsv.xz`, or `yso-finna-sv.tsv.xz` in Swedish, has a title a line, a tab, and the subjects' ids with spaces
between them; `yso-en-topics.tsv.xz` an id a line, a tab, and the subject in words. They are made of
`subjects/yso-finna-en` in Annif-corpora (National Library of Finland, CC0), and lie where corpora do.
"""

from __future__ import annotations

import json
import lzma
import random
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TextIO

from textcat.base.errors import TextcatError
from textcat.corpus.cards import Card
from textcat.corpus.documents import Corpus
from textcat.corpus.fetch import locate_corpus

NAME, SUBJECTS = "yso-finna-en", "yso-en-topics"
N_TOPICS, TEST_SIZE, SEED = 100, 0.2, 0


def located(name: str = NAME) -> Path | None:
    """Return the file of the titles of this name; None if it is not here."""
    return locate_corpus(Card(name, Path(__file__).parent, "tsv", [f"{name}.tsv.xz"]))


def opened(path: Path) -> TextIO:
    """Open a file, which may be packed, to read its lines."""
    return lzma.open(path, "rt", encoding="utf-8") if path.suffix == ".xz" else path.open(encoding="utf-8")


def read(path: Path) -> list[list[str]]:
    """Read the first two columns of a file."""
    with opened(path) as file:
        return [line.rstrip("\n").split("\t")[:2] for line in file]


def read_all() -> tuple[list[list[str]], dict[str, str]]:
    """Return the titles with their subjects, and the subjects in words."""
    source = located()
    if source is None:
        raise TextcatError(f"The titles of {NAME} are not here: `textcat corpora` says where they are looked for.")
    return read(source), dict(read(source.with_name(f"{SUBJECTS}.tsv.xz")))


def sample(titles: Sequence[Sequence[str]], names: dict[str, str], n: int) -> Corpus:
    """Choose titles at random, keep the subjects that most of them have, and set a fifth of the titles aside for test.

    Titles without any of these subjects stay, as documents of no topic.

    Parameters
    ----------
    titles : sequence of (title, subjects' ids)
    names : dict of str to str
        The subjects in words; those that share theirs, or have none, are called by their id.
    n : int
        How many titles; all, if there are no more.

    Returns
    -------
    Corpus
    """
    chosen = random.Random(SEED).sample(titles, min(n, len(titles)))
    counts = Counter(subject for _, subjects in chosen for subject in subjects.split())
    kept = sorted(counts, key=lambda subject: (-counts[subject], subject))[:N_TOPICS]
    in_words = {subject: names.get(subject, subject) for subject in kept}
    shared = Counter(in_words.values())
    name_of = {subject: name if shared[name] == 1 else subject for subject, name in in_words.items()}
    records = (
        {"text": title, "topics": [name_of[subject] for subject in subjects.split() if subject in name_of]}
        for title, subjects in chosen
    )
    return Corpus.from_records(records, name=NAME).split(TEST_SIZE, seed=SEED)


def write(corpus: Corpus, path: Path) -> None:
    """Write a corpus as JSON Lines that say which part a document belongs to."""
    with path.open("w", encoding="utf-8") as file:
        for split, documents in (("train", corpus.train), ("test", corpus.test)):
            for document in documents:
                record = {"id": document.id, "text": document.zones["body"], "topics": document.topics, "split": split}
                print(json.dumps(record, ensure_ascii=False), file=file)
