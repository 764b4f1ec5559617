"""Few labels that are hard to learn from: some are wrong, or words have many endings and compounds."""

from __future__ import annotations

import struct
import warnings
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from few_labels import (
    LARGEST,
    SIZES_QUICK,
    SVC,
    TEXTCAT,
    Draw,
    Pool,
    compare,
    difference,
    titles_of_the_largest,
    train_on,
    values_by_draw,
    with_one_of_the_largest,
)
from harness import Row, Work
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.svm import LinearSVC
from sklearn_pipeline import joined
from training import reuters

from textcat.base.errors import TextcatError
from textcat.corpus.catalogue import open_corpus
from textcat.corpus.documents import Corpus, Document
from textcat.model.tagger import Tagger
from textcat.recipes.recipe import default_recipe
from textcat.training.train import train

WRONG, WRONG_SIZES = (0.0, 0.2), (300, 1000)
LANGUAGES = {"de": "German", "fi": "Finnish", "hu": "Hungarian", "ru": "Russian"}
MESSAGES, MESSAGES_SIZES = Path("/usr/share/locale"), (25, 400)
PROGRAMS, MESSAGES_EACH, MOST_TEXTS = 15, 6, 120  # programs; messages of a text; texts of a program
SHORTEST = 11  # characters of a message
WORDS_ALONE, ON_CHARACTERS = "textcat, words alone", "LinearSVC on characters"
CS = (0.1, 1, 10)


# --- wrong labels ----------------------------------------------------------------------------------------------------


def wrong_labels(work: Work) -> list[Row]:
    """Train with a random share of the labels replaced by random ones, and compare the tags of other documents."""
    rows = []
    for pool in _single_pools(work):
        for n in SIZES_QUICK[:1] if work.quick else WRONG_SIZES:
            for share in WRONG:
                measure = partial(compare, partial(_compare_tags, share), pool, n, work)
                facts = work.kept(f"wrong, {pool.name} {n} {share} {work.rounds}", measure)
                by_draw = {name: values_by_draw(facts[name]) for name in (TEXTCAT, SVC)}
                chosen = sum(draw["lambda_"] == "2" for draw in facts[TEXTCAT])
                rows.append(
                    {"corpus": pool.name, "documents": f"{n:,}", "wrong labels": f"{share:.0%}"}
                    | {name: _mean(of_draws) for name, of_draws in by_draw.items()}
                    | {"textcat - LinearSVC": difference(by_draw[TEXTCAT], by_draw[SVC])}
                    | {"λ = 2": f"{chosen} of {work.rounds}"}
                )
    return rows


def _single_pools(work: Work) -> Iterator[Pool]:
    news = reuters(work)
    yield Pool(f"{news.name}, {LARGEST} topics", with_one_of_the_largest(news.train, LARGEST))
    if not work.quick:
        yield Pool("20 Newsgroups, 20 topics", open_corpus("20newsgroups", download=False).train)
        yield Pool("yso-finna-en, 20 topics", titles_of_the_largest("en")[0])


def with_wrong_labels(corpus: Corpus, share: float, seed: int = 0) -> Corpus:
    """Give a random share of the training documents a random one of the topics, which may be the right one."""
    random = np.random.default_rng(seed)
    wrong = random.random(len(corpus.train)) < share
    topics = random.integers(len(corpus.topics), size=len(corpus.train))
    documents = [
        Document(document.id, document.zones, (corpus.topics[j],)) if is_wrong else document
        for document, is_wrong, j in zip(corpus.train, wrong, topics, strict=True)
    ]
    return Corpus.from_documents(corpus.name, documents)


def _compare_tags(share: float, draw: Draw) -> dict[str, dict[str, Any]]:
    corpus = with_wrong_labels(draw.train, share)
    tagger = train(corpus, single=True, n_jobs=1)
    ours = [tag.topic for (tag,) in tagger.tag(draw.test)]
    chosen = tagger.facts.choices["lambda_"]["chosen"]
    return {
        TEXTCAT: {"values": _right(ours, draw), "lambda_": chosen},
        SVC: _by_svc(TfidfVectorizer(sublinear_tf=True, stop_words=draw.stop_words), corpus, draw),
    }


# --- messages of programs --------------------------------------------------------------------------------------------


def messages(work: Work) -> list[Row]:
    """Compare how texts of six messages each are assigned to the program that they are of, by language."""
    rows = []
    for pool in _message_pools(work):
        for n in SIZES_QUICK if work.quick else MESSAGES_SIZES:
            facts = work.kept(
                f"messages, {pool.name} {n} {work.rounds}", partial(compare, _compare_rows, pool, n, work)
            )
            by_draw = {name: values_by_draw(of_draws) for name, of_draws in facts.items() if name != "loads"}
            rows.append(
                {"texts": pool.name, "documents": f"{n:,}"}
                | {name: _mean(of_draws) for name, of_draws in by_draw.items()}
                | {f"textcat - {ON_CHARACTERS}": difference(by_draw[TEXTCAT], by_draw[ON_CHARACTERS])}
            )
    return rows


def _message_pools(work: Work) -> Iterator[Pool]:
    for code, language in [*LANGUAGES.items()][: 1 if work.quick else None]:
        yield Pool(language, texts_of_programs(MESSAGES / code / "LC_MESSAGES"), stop_words=None)


def texts_of_programs(folder: Path) -> list[Document]:
    """Return texts of six random messages each, and the program that they are of, for those with most messages.

    Raise TextcatError if the folder has the catalogues of too few programs.
    """
    # Those of ISO standards are names of languages and countries.
    catalogues = [path for path in sorted(folder.glob("*.mo")) if not path.name.startswith("iso_")]
    found = {path.stem: translations(path) for path in catalogues}
    programs = sorted(found, key=lambda name: (-len(found[name]), name))[:PROGRAMS]
    if len(programs) < PROGRAMS:
        raise TextcatError(f"{folder} has catalogues of {len(programs)} programs, and {PROGRAMS} are compared.")
    documents = []
    for seed, program in enumerate(programs):
        drawn = np.random.default_rng(seed).permutation(found[program])
        for i in range(min(len(drawn) // MESSAGES_EACH, MOST_TEXTS)):
            text = "\n".join(drawn[MESSAGES_EACH * i : MESSAGES_EACH * (i + 1)])
            documents.append(Document(f"{program} {i}", {"body": text}, (program,)))
    return documents


def translations(path: Path) -> list[str]:
    """Return the distinct translated messages of a catalogue of gettext (.mo) in UTF-8, without short and plural ones.

    A catalogue begins with seven numbers: the third is that of messages, the next two say where tables of the originals
    and of the translations begin, which have the length and the place of each message.
    """
    data = path.read_bytes()
    order = "<" if data.startswith(b"\xde\x12\x04\x95") else ">"
    n, *tables = struct.unpack_from(f"{order}3I", data, 8)

    def message(table: int, i: int) -> str:
        length, start = struct.unpack_from(f"{order}2I", data, table + 8 * i)
        return data[start : start + length].decode(errors="replace")

    pairs = ([message(table, i) for table in tables] for i in range(n))
    chosen = {
        translated
        for original, translated in pairs
        if original and translated != original and "\0" not in original and len(translated) >= SHORTEST
    }
    return sorted(chosen)


def _compare_rows(draw: Draw) -> dict[str, dict[str, Any]]:
    recipe = default_recipe().with_settings("features.chars=0")
    on_characters = TfidfVectorizer(sublinear_tf=True, analyzer="char_wb", ngram_range=(2, 5))
    return {
        TEXTCAT: _right_by_scores(train_on(draw), draw),
        WORDS_ALONE: _right_by_scores(train(draw.train, recipe, n_jobs=1), draw),
        ON_CHARACTERS: _by_svc(on_characters, draw.train, draw),
    }


def _right_by_scores(tagger: Tagger, draw: Draw) -> dict[str, Any]:
    first = np.asarray(tagger.scores(draw.test)).argmax(axis=1)
    return {"values": _right([tagger.topics[j] for j in first], draw)}


# --- both ------------------------------------------------------------------------------------------------------------


def _by_svc(vectorizer: Any, corpus: Corpus, draw: Draw) -> dict[str, Any]:
    """Return what LinearSVC is right about, its C chosen by cross-validation of five folds (three above 500)."""
    X, y = vectorizer.fit_transform(joined(corpus.train)), [document.topics[0] for document in corpus.train]
    folds = KFold(5 if len(y) <= 500 else 3, shuffle=True, random_state=0)
    search = GridSearchCV(LinearSVC(random_state=0), {"C": CS}, cv=folds)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of topics that a fold has not
        its = search.fit(X, y).predict(vectorizer.transform(joined(draw.test)))
    return {"values": _right(its, draw)}


def _right(topics: Sequence[str], draw: Draw) -> list[float]:
    return [float(topic in document.topics) for topic, document in zip(topics, draw.test, strict=True)]


def _mean(of_draws: Sequence[np.ndarray]) -> str:
    return f"{np.mean([of_draw.mean() for of_draw in of_draws]):.3f}"
