"""Repeats: what `textcat train` prints and promises of documents that occur twice, and what holds on new documents."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from typing import Any

import numpy as np
from harness import Row, Work
from promises import corpora

from textcat.corpus.documents import Corpus, Document
from textcat.duplicates.groups import find_groups
from textcat.model.measure import evaluate_tagger
from textcat.recipes.recipe import default_recipe
from textcat.training.checks import TrainingOptions
from textcat.training.steps import train_and_evaluate

TRAINED, NEW, N_CORPORA = 3_000, 5_000, 3
SHARE = CONFIDENCE = 0.9
ASKED = [f"promise.precision={SHARE}", f"promise.recall={SHARE}", f"promise.confidence={CONFIDENCE}"]
FEWEST_WORDS = 12  # shorter texts repeat each other only if all words are the same
FIGURES = {"MAP": "macro_average_precision", "macro F1": "macro_f1"}


class Apart(Corpus):
    """A corpus whose documents are held out one by one, whether they repeat each other or not."""

    @property
    def groups(self) -> np.ndarray:
        """Each document alone."""
        return np.arange(len(self.train))


def measure(work: Work) -> list[Row]:
    """Train on documents that occur once or twice, and measure on others."""
    return [row for corpus in islice(corpora(work), N_CORPORA) for row in _rows(corpus, work)]


def _rows(corpus: Corpus, work: Work) -> Iterator[Row]:
    ways = {"once": Corpus, "twice": Corpus, "twice, each held out alone": Apart}
    for way, kind in ways.items():
        drawn = [_measured(*_parts(corpus, work, seed), way != "once", kind) for seed in range(work.rounds)]
        sums = {name: sum(draw[name] for draw in drawn) for name in drawn[0]}
        figures = {
            name: f"{sums[name] / work.rounds:.3f}" for name in sums if not name.startswith(("precision", "recall"))
        }
        kept = {
            f"promises of {of}": f"{sums[f'{of} kept']} of {sums[f'{of} promised']} kept"
            for of in ("precision", "recall")
        }
        yield {"corpus": corpus.name, "training documents": way, **figures, **kept}


def _parts(corpus: Corpus, work: Work, seed: int) -> tuple[list[Document], list[Document]]:
    """Return documents to train on and new ones, drawn at random, none of which repeats another."""
    n_trained = work.documents(TRAINED, 300)
    drawn = np.random.default_rng(seed).permutation(len(corpus.train))[: n_trained + NEW].tolist()
    documents = [corpus.train[i] for i in drawn if corpus.train[i].topics]
    groups = find_groups(document.zones for document in documents).tolist()
    different = [document for i, document in enumerate(documents) if groups[i] == i]
    return different[:n_trained], different[n_trained:]


def _reprinted(document: Document) -> Document:
    """Return a document as another paper prints it: with another headline and a byline; a short text in capitals."""
    zones = dict(document.zones)
    text = zones.get("body", "")
    is_short = len(text.split()) < FEWEST_WORDS
    zones["body"] = text.upper() if is_short else f"From our correspondent, by wire. {text}"
    if "title" in zones and not is_short:
        zones["title"] = "Latest news"
    return replace(document, id=f"{document.id} again", zones=zones)


def _measured(trained: list[Document], new: list[Document], twice: bool, kind: type[Corpus]) -> dict[str, Any]:
    """Return the figures on held-out and on new documents, and how many promises there are and hold."""
    trained = [*trained, *(map(_reprinted, trained) if twice else [])]
    corpus = kind.from_documents("repeats", [replace(document, split="") for document in trained])
    recipe, _ = default_recipe().for_corpus(corpus)
    tagger = train_and_evaluate(corpus, recipe.with_settings([*ASKED, "topics.forecast=false"]), TrainingOptions(1))
    known = {*corpus.topics}
    tested = [replace(document, topics=tuple(known.intersection(document.topics))) for document in new]
    evaluations = {"held out": tagger.evaluation, "new": evaluate_tagger(tagger, replace(corpus, test=tested))}
    figures = {
        f"{name}, {on}": evaluation.bands[0][field] or 0.0
        for name, field in FIGURES.items()
        for on, evaluation in evaluations.items()
        if evaluation is not None
    }
    scores, promises = np.asarray(tagger.scored(tested)[0]), tagger.decisions.promises
    assert promises is not None
    is_right = corpus.labels(tested).toarray() > 0
    is_automatic, is_found = scores > promises.threshold, scores > promises.review_threshold
    counts = {
        "precision": (promises.precision, (is_automatic & is_right).sum(axis=0), is_automatic.sum(axis=0)),
        "recall": (promises.recall, (is_found & is_right).sum(axis=0), is_right.sum(axis=0)),
    }
    for name, (promised, right, n) in counts.items():
        tested_topics = np.isfinite(promised) & (n > 0)
        figures[f"{name} promised"] = int(tested_topics.sum())
        figures[f"{name} kept"] = int((right >= SHARE * n - 1e-9)[tested_topics].sum())
    return figures
