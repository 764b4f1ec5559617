"""Few labels: the classifier of Model2Vec on the vectors of words that come with textcat, where it is installed."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from contextlib import redirect_stderr
from functools import partial
from importlib.util import find_spec
from statistics import median
from typing import Any

import few_labels
import numpy as np
from harness import Row, Work, short
from sklearn_pipeline import joined

from textcat.base.errors import TextcatError
from textcat.features.vectors import english_vectors

SYSTEMS = TEXTCAT, DEFAULT, LONGER = few_labels.TEXTCAT, "Model2Vec", "Model2Vec, longer"
PATIENCE, MOST_LONGER = 30, 200  # epochs that are no better, and documents to train on, of what is trained for longer


def measure(work: Work) -> list[Row]:
    """Train textcat and Model2Vec on the same English documents, and compare how they rank topics."""
    if not all(map(find_spec, ("model2vec", "torch", "datasets"))):
        raise TextcatError("Model2Vec is not installed here: `pip install 'model2vec[train]'` adds it, with PyTorch.")
    rows = []
    for pool in few_labels.pools(work):
        for n in few_labels.sizes(pool, work):
            if pool.stop_words == "english" and n <= few_labels.MOST_WITH_VECTORS:
                name = f"few-labels-model2vec, {pool.name} {n} {work.rounds}"
                facts = work.kept(name, partial(few_labels.compare, _compare_on, pool, n, work))
                rows.append({"corpus": pool.name, "measure": pool.measure, "documents": f"{n:,}", **_cells(facts)})
    return rows


def _compare_on(draw: few_labels.Draw) -> dict[str, dict[str, Any]]:
    systems = {TEXTCAT: few_labels.textcat_scores, DEFAULT: model2vec_scores}
    longer = {LONGER: partial(model2vec_scores, longer=True)} if len(draw.labels) <= MOST_LONGER else {}
    return few_labels.facts_of(draw, {**systems, **longer})


def model2vec_scores(draw: few_labels.Draw, *, longer: bool = False) -> np.ndarray:
    """Return the scores of the test documents, trained by default or until no better on the training documents."""
    import torch
    from model2vec.train import StaticModelForClassification

    torch.set_num_threads(1)
    texts, topics = joined(draw.train.train), [[*document.topics] for document in draw.train.train]
    y: Sequence[Any] = topics if draw.measure == "MAP" else [topic for (topic,) in topics]
    settings = {"X_val": texts, "y_val": y, "early_stopping_patience": PATIENCE} if longer else {}
    with redirect_stderr(io.StringIO()):  # bars of progress
        model = StaticModelForClassification.from_static_model(model=static_model()).fit(texts, y, **settings)
    scores = np.zeros(draw.test_labels.shape)
    scores[:, [draw.train.topics.index(topic) for topic in model.classes]] = model.predict_proba(joined(draw.test))
    return scores


def static_model() -> Any:
    """Return the vectors that come with textcat as a model of Model2Vec, which takes the mean of a text's words."""
    from model2vec import StaticModel
    from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers

    english = english_vectors()
    number_of = {word: number for number, word in enumerate([*english.words, "[UNK]"])}
    tokenizer = Tokenizer(models.WordLevel(number_of, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.Lowercase()
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex(r"\b\w\w+\b"), "removed", invert=True)
    return StaticModel(np.pad(english.values * np.float32(english.step), ((0, 1), (0, 0))), tokenizer)


def _cells(facts: Mapping[str, Any]) -> Row:
    values = {name: few_labels.values_by_draw(facts[name]) for name in SYSTEMS if name in facts}
    means = {name: f"{np.mean([draw.mean() for draw in draws]):.3f}" for name, draws in values.items()}
    seconds = {name: short(median(draw["seconds"] for draw in facts[name])) for name in values}
    difference = few_labels.difference(values[TEXTCAT], values[max(means.keys() - {TEXTCAT}, key=means.__getitem__)])
    shown = {name: means.get(name) for name in SYSTEMS}
    return {**shown, "textcat - better other": difference, **{f"s, {name}": seconds.get(name) for name in SYSTEMS}}
