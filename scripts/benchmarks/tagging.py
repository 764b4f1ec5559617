"""(c) Raw texts → tags, with the model loaded."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import peers
import texts
from measuring import ROUNDS, Task, Timing, interleaved, keep_fastest
from pages import Conditions, Page
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import SGDClassifier
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline

from textcat.corpus.documents import Corpus
from textcat.model import storage
from textcat.model.tagger import Tagger
from textcat.recipes.recipe import read_recipe

# Two ways of asking fastText for labels: all with a probability above one half, or the best five.
ASKED = {"p > .5": (-1, 0.5), "best 5": (5, 0.0)}
LINES = {"all tokens": False, "terms only": True}
FIRST, WARM = "textcat, first pass", "textcat, warm cache"


def measured(corpus: Corpus, rounds: int) -> list[Page]:
    """Return the page of tagging."""
    conditions = Conditions("paum")
    with tempfile.TemporaryDirectory() as folder:
        tasks = {**_ours(corpus, Path(folder)), "scikit-learn TfidfVectorizer + OvR(SGD)": _sklearn(corpus)}
        with_fasttext = peers.installed("fasttext")
        if with_fasttext:
            tasks |= _fasttext(corpus, Path(folder))
        timings = interleaved(tasks, rounds)
    if with_fasttext:
        for lines in LINES:
            keep_fastest(timings, [_fasttext_name(lines, asked) for asked in ASKED])
    text = f"""The {len(corpus.test)} test documents, {len(corpus.topics)} topics, model loaded, one thread. textcat
gets the raw
texts (as strings of title and body, or as Documents) and gives the topics above their thresholds with their scores. On
the first pass of a model just loaded nothing is in the token cache; before the second pass it has tagged the same
documents once. "Just loaded" includes that it has tagged an empty text, as spaCy's language is made at the first one.
scikit-learn gets the strings; fastText gets lines of spaCy tokens, made beforehand and not timed, in one call of its
compiled part, and is asked for labels in the faster of two ways ({" or ".join(ASKED)}).

{ROUNDS.format(rounds)}"""
    rows = _rows(timings, len(corpus.test), with_fasttext)
    return [Page("tag-texts", "From raw texts to tags", conditions.head(), text, rows)]


def _rows(timings: dict[str, Timing], n_documents: int, with_fasttext: bool) -> list[dict[str, Any]]:
    warm = timings[f"{WARM}, strings"]
    first = timings[f"{FIRST}, strings"]
    rows = [
        {
            "what": name,
            "documents/s": f"{n_documents / timing.median:,.0f}",
            "seconds": timing,
            "times first pass": timing.ratio(first),
            "times warm cache": timing.ratio(warm),
        }
        for name, timing in timings.items()
    ]
    if not with_fasttext:
        rows.append({**dict.fromkeys(rows[0]), "what": "fastText", "seconds": "not installable here"})
    return rows


def _ours(corpus: Corpus, folder: Path) -> dict[str, Task]:
    model = storage.save(Tagger.fit(corpus, read_recipe("paum")), folder / "model")
    forms: dict[str, Sequence[Any]] = {"strings": texts.plain(corpus.test), "Documents": corpus.test}

    def tag(documents: Sequence[Any]) -> Any:
        return lambda tagger: tagger.tag(documents)

    def warmed(documents: Sequence[Any]) -> Any:
        return lambda: _loaded(model, documents)

    return {
        **{f"{FIRST}, {form}": Task(tag(documents), warmed([""])) for form, documents in forms.items()},
        **{f"{WARM}, {form}": Task(tag(documents), warmed(documents)) for form, documents in forms.items()},
    }


def _loaded(model: Path, documents: Sequence[Any]) -> Tagger:
    """Load the model and tag some documents."""
    tagger = storage.load(model)
    tagger.tag(documents)
    return tagger


def _sklearn(corpus: Corpus) -> Task:
    model = make_pipeline(TfidfVectorizer(), OneVsRestClassifier(SGDClassifier(), n_jobs=2))
    model.fit(texts.plain(corpus.train), corpus.labels(corpus.train))
    strings = texts.plain(corpus.test)
    return Task(lambda _: (model.decision_function(strings) > 0).nonzero())


def _fasttext_name(lines: str, asked: str) -> str:
    return f"fastText, {lines}, {asked}"


def _fasttext(corpus: Corpus, folder: Path) -> dict[str, Task]:
    def task(model: Any, lines: list[str], k: int, threshold: float) -> Task:
        return Task(lambda _: peers.fasttext_tags(model, lines, k, threshold))

    tasks: dict[str, Task] = {}
    for name, terms_only in LINES.items():
        path = folder / f"{name}.txt"
        train, test = (texts.token_lines(texts.plain(p), terms_only=terms_only) for p in (corpus.train, corpus.test))
        peers.write_fasttext(path, train, corpus.train, corpus.topics)
        model = peers.train_fasttext(path)
        ended = [f"{line}\n" for line in test]
        tasks |= {_fasttext_name(name, asked): task(model, ended, *how) for asked, how in ASKED.items()}
    return tasks
