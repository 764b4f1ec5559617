"""Few labels: `textcat train` as it comes, beside LinearSVC of scikit-learn, from 25 to 5,000 documents."""

from __future__ import annotations

import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import numpy as np
import titles
from harness import Row, Work, short
from joblib import Parallel, delayed
from scipy import sparse
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.metrics import f1_score
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.multiclass import OneVsRestClassifier
from sklearn.preprocessing import normalize
from sklearn.svm import LinearSVC
from sklearn_pipeline import Calibrated, joined
from training import reuters

from textcat.base.errors import TextcatError
from textcat.corpus.catalogue import open_corpus
from textcat.corpus.documents import Corpus, Document
from textcat.evaluation.metrics import average_precisions
from textcat.features.vectors import english_vectors
from textcat.model.tagger import Tagger
from textcat.recipes.recipe import default_recipe
from textcat.training.self_training import train_with_unlabelled
from textcat.training.train import train

SIZES, SIZES_QUICK, SIZE_OF_TAGS = (50, 200, 1000, 5000), (25, 50), 100
N_TEST, N_TEST_QUICK = 1000, 200
SIZES_UNLABELLED, N_UNLABELLED = (25, 200), 4000
LARGEST, LARGEST_SUBJECTS = 8, 20
TEXTCAT, SVC = "textcat", "LinearSVC"
WITH_VECTORS, MOST_WITH_VECTORS = "LinearSVC on words and vectors", 1000  # of English, and of so many documents at most
CS = {SVC: (0.1, 1, 10), WITH_VECTORS: (0.1, 1)}
LEAST = 1e-12  # probability that a log loss is taken of
NORMAL = 1.96  # standard errors on either side of a mean, for an interval of 95 %


class Pool(NamedTuple):
    """The documents of a corpus from which those to train on and those to test on are drawn."""

    name: str
    documents: Sequence[Document]
    measure: str = "accuracy"  # or MAP
    stop_words: str | None = "english"  # of TfidfVectorizer


class Draw(NamedTuple):
    """Documents to train on and to test on, and their labels (1 or 0) for the topics of those to train on."""

    train: Corpus
    test: Sequence[Document]
    labels: np.ndarray
    test_labels: np.ndarray
    measure: str
    stop_words: str | None


# --- corpora and draws -----------------------------------------------------------------------------------------------


def pools(work: Work) -> Iterator[Pool]:
    """Yield the corpora; for a quick look newswire alone."""
    news = reuters(work)
    with_topics = [document for document in news.train if document.topics]
    if not work.quick:
        posts = open_corpus("20newsgroups", download=False).train
        yield Pool("20 Newsgroups, 20 topics", posts)
    yield Pool(f"{news.name}, {LARGEST} topics", with_one_of_the_largest(with_topics, LARGEST))
    yield Pool(f"{news.name}, all topics", with_topics, "MAP")
    for language, stop_words in () if work.quick else (("en", "english"), ("sv", None)):
        chosen, source = titles_of_the_largest(language)
        yield Pool(f"{source.name.partition('.')[0]}, {LARGEST_SUBJECTS} topics", chosen, stop_words=stop_words)


def titles_of_the_largest(language: str) -> tuple[list[Document], Path]:
    """Return the titles of a library that have exactly one of the largest subjects, and the file that they are from."""
    name = f"yso-finna-{language}"
    source = titles.located(name)
    if source is None:
        raise TextcatError(f"The titles of {name} are not here: `textcat corpora` says where they are looked for.")
    documents = [
        Document(str(number), {"body": title}, tuple(subjects.split()))
        for number, (title, subjects) in enumerate(titles.read(source))
    ]
    return with_one_of_the_largest(documents, LARGEST_SUBJECTS, alone=False), source


def with_one_of_the_largest(documents: Sequence[Document], n_topics: int, *, alone: bool = True) -> list[Document]:
    """Return the documents with exactly one of the largest topics, and with that topic only.

    Parameters
    ----------
    documents : sequence of Document
    n_topics : int
        How many topics, the largest ones.
    alone : bool, default=True
        Count and take only documents that have no other topic.
    """
    counted = [document for document in documents if len(document.topics) == 1 or not alone]
    names = largest((document.topics for document in counted), n_topics)
    chosen = ((document, names.intersection(document.topics)) for document in counted)
    return [Document(document.id, document.zones, tuple(topics)) for document, topics in chosen if len(topics) == 1]


def largest(topics: Iterable[Sequence[str]], n_topics: int) -> set[str]:
    """Return the topics that most documents have, given the topics of each document."""
    counts = Counter(topic for of_document in topics for topic in of_document)
    return {topic for topic, _ in sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:n_topics]}


def draws(pool: Pool, n: int, work: Work) -> list[Draw]:
    """Draw by each seed: the first documents of a permutation are to train on, the next ones to test on."""
    drawn = []
    for seed in range(work.rounds):
        order = np.random.default_rng(seed).permutation(len(pool.documents))[: n + _n_test(work)]
        documents = [pool.documents[i] for i in order]
        corpus, test = Corpus.from_documents(pool.name, documents[:n]), documents[n:]
        labels, test_labels = (corpus.labels(part).toarray() for part in (corpus.train, test))
        drawn.append(Draw(corpus, test, labels, test_labels, pool.measure, pool.stop_words))
    return drawn


def _n_test(work: Work) -> int:
    return work.documents(N_TEST, N_TEST_QUICK)


# --- quality by documents to train on --------------------------------------------------------------------------------


def measure(work: Work) -> list[Row]:
    """Train all systems on the same documents, and compare how they rank topics."""
    rows = []
    for pool in pools(work):
        for n in sizes(pool, work):
            name = f"few-labels, {pool.name} {n} {work.rounds}"
            rows.append(_row(pool, n, work.kept(name, partial(compare, _compare_on, pool, n, work))))
    return rows


def sizes(pool: Pool, work: Work) -> list[int]:
    """Return how many documents to train on: as many as leave enough to test on."""
    return [n for n in (SIZES_QUICK if work.quick else SIZES) if n + _n_test(work) <= len(pool.documents)]


def compare(compare_on: Callable[[Draw], dict[str, Any]], pool: Pool, n: int, work: Work) -> dict[str, Any]:
    """Return what `compare_on` measures on each draw, by system."""
    compared = Parallel(n_jobs=work.jobs)(delayed(compare_on)(draw) for draw in draws(pool, n, work))
    return {name: [draw[name] for draw in compared] for name in compared[0]}


def _compare_on(draw: Draw) -> dict[str, dict[str, Any]]:
    has_vectors = draw.stop_words == "english" and len(draw.labels) <= MOST_WITH_VECTORS
    peers = CS if has_vectors else [SVC]
    systems = {TEXTCAT: textcat_scores, **{name: partial(peer_scores, name) for name in peers}}
    facts = {}
    for name, system in systems.items():
        start = time.process_time()
        scores = system(draw)
        seconds = time.process_time() - start
        facts[name] = {"values": values(draw.measure, scores, draw.test_labels).tolist(), "seconds": seconds}
    return facts


def train_on(draw: Draw) -> Tagger:
    """Train as `textcat train` does where no recipe is named."""
    return train(draw.train, n_jobs=1)


def textcat_scores(draw: Draw) -> np.ndarray:
    """Return the scores of the test documents."""
    return np.asarray(train_on(draw).scores(draw.test))


def peer_scores(name: str, draw: Draw) -> np.ndarray:
    """Return the scores of the test documents by LinearSVC, its C chosen by cross-validation."""
    X, X_test = _rows(draw)
    if name == WITH_VECTORS:
        vectors, test_vectors = _vectors(draw)
        X, X_test = sparse.hstack([X, vectors], format="csr"), sparse.hstack([X_test, test_vectors], format="csr")
    search = GridSearchCV(
        OneVsRestClassifier(LinearSVC(random_state=0)),
        {"estimator__C": CS[name]},
        scoring=lambda model, X, Y: values(draw.measure, model.decision_function(X), Y).mean(),
        cv=KFold(5 if len(draw.labels) <= 500 else 3, shuffle=True, random_state=0),
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of topics that a fold has not
        return search.fit(X, draw.labels).decision_function(X_test)


def _rows(draw: Draw) -> tuple[Any, Any]:
    vectorizer = TfidfVectorizer(sublinear_tf=True, stop_words=draw.stop_words)
    return vectorizer.fit_transform(joined(draw.train.train)), vectorizer.transform(joined(draw.test))


def _vectors(draw: Draw) -> tuple[Any, Any]:
    """Return the mean vectors of the words of texts, without the training documents' mean, and of unit length."""
    english = english_vectors()
    counter = TfidfVectorizer(sublinear_tf=True, use_idf=False, norm=None, vocabulary=[*english.words])
    sums = [
        counter.fit_transform(joined(part)) @ english.values.astype(float) for part in (draw.train.train, draw.test)
    ]
    centre = sums[0].mean(axis=0)
    train_part, test_part = (sparse.csr_matrix(normalize(part - centre)) for part in sums)
    return train_part, test_part


def values(measure: str, scores: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Return what the measure is the mean of.

    For accuracy: for each document, 1 if it has the topic of its highest score, else 0. For MAP: the average precision
    of each topic that a document has.
    """
    if measure == "accuracy":
        return labels[np.arange(len(labels)), scores.argmax(axis=1)].astype(float)
    known = labels.any(axis=0)
    return average_precisions(labels[:, known], scores[:, known])


def _row(pool: Pool, n: int, facts: Mapping[str, Any]) -> Row:
    by_draw = {name: values_by_draw(facts[name]) for name in (TEXTCAT, *CS) if name in facts}
    quality = {name: f"{np.mean([of_draw.mean() for of_draw in of_draws]):.3f}" for name, of_draws in by_draw.items()}
    seconds = {f"s, {name}": short(median(draw["seconds"] for draw in facts[name])) for name in (TEXTCAT, SVC)}
    return {
        "corpus": pool.name,
        "measure": pool.measure,
        "documents": f"{n:,}",
        **{name: quality.get(name) for name in (TEXTCAT, *CS)},
        "textcat - LinearSVC": difference(by_draw[TEXTCAT], by_draw[SVC]),
        **seconds,
    }


def values_by_draw(facts: Sequence[Mapping[str, Any]]) -> list[np.ndarray]:
    """Return the values of a system, an array for each draw."""
    return [np.array(draw["values"]) for draw in facts]


def difference(ours: Sequence[np.ndarray], its: Sequence[np.ndarray]) -> str:
    """Write the mean over draws of the paired differences, and the interval of 95 % around it.

    The interval is that of the test documents (for MAP: of the topics) of these draws.
    """
    differences = [mine - other for mine, other in zip(ours, its, strict=True)]
    mean = np.mean([of_draw.mean() for of_draw in differences])
    variance = sum(of_draw.var(ddof=1) / len(of_draw) for of_draw in differences)
    return f"{mean:+.3f} ± {NORMAL * np.sqrt(variance) / len(differences):.3f}"


# --- unlabelled documents --------------------------------------------------------------------------------------------


def unlabelled(work: Work) -> list[Row]:
    """Compare training on labelled documents with training on unlabelled ones, too: others of the same corpus."""
    rows = []
    for pool in pools(work):
        for n in SIZES_QUICK[:1] if work.quick else SIZES_UNLABELLED:
            if pool.measure == "accuracy" and (n_other := len(pool.documents) - n - _n_test(work)) > 0:
                n_other = min(n_other, N_UNLABELLED)
                facts = work.kept(f"unlabelled, {pool.name} {n}", partial(_compare_unlabelled, pool, n, n_other, work))
                both = [[np.array(values) for values in facts[name]] for name in ("with", "without")]
                mean = [f"{np.mean([of_draw.mean() for of_draw in of_draws]):.3f}" for of_draws in both]
                rows.append(
                    {
                        "corpus": pool.name,
                        "labelled": n,
                        "unlabelled": f"{n_other:,}",
                        "textcat": mean[1],
                        "with unlabelled": mean[0],
                        "difference": difference(*both),
                        "used": f"{sum(facts['used'])} of {work.rounds}",
                    }
                )
    return rows


def _compare_unlabelled(pool: Pool, n: int, n_other: int, work: Work) -> dict[str, Any]:
    facts: dict[str, Any] = {"with": [], "without": [], "used": []}
    for seed, draw in enumerate(draws(pool, n, work)):
        order = np.random.default_rng(seed).permutation(len(pool.documents))[n + _n_test(work) :][:n_other]
        others = [Document(pool.documents[i].id, pool.documents[i].zones) for i in order]
        recipe, _ = default_recipe().for_corpus(draw.train)
        tagger = train_with_unlabelled(draw.train, others, recipe, n_jobs=1)
        facts["used"].append(tagger.facts.choices["unlabelled"]["chosen"] == "used")
        for name, scores in (("with", np.asarray(tagger.scores(draw.test))), ("without", textcat_scores(draw))):
            facts[name].append(values(draw.measure, scores, draw.test_labels).tolist())
    return facts


# --- probabilities and tags ------------------------------------------------------------------------------------------


class Answers(NamedTuple):
    """What a system says of the test documents, by topic."""

    scores: np.ndarray
    probabilities: np.ndarray
    given: np.ndarray  # 1 where a document gets a topic


def tags(work: Work) -> list[Row]:
    """Compare probabilities, and the topics that documents get."""
    n = SIZES_QUICK[-1] if work.quick else SIZE_OF_TAGS
    rows = []
    for pool in pools(work):
        drawn = draws(pool, n, work)
        for name, answers in ((TEXTCAT, _ours), (SVC, _calibrated)):
            figures = [_figures(draw, answers(draw)) for draw in drawn]
            means = {figure: np.mean([of_draw[figure] for of_draw in figures]) for figure in figures[0]}
            rows.append({"corpus": pool.name, "what": name, **{k: f"{mean:.3f}" for k, mean in means.items()}})
    return rows


def _ours(draw: Draw) -> Answers:
    tagger = train_on(draw)
    return Answers(tagger.scores(draw.test), tagger.predict_proba(draw.test), tagger.predict(draw.test))


def _calibrated(draw: Draw) -> Answers:
    """Return what LinearSVC says with its own C, and the probabilities of `CalibratedClassifierCV`."""
    learner = LinearSVC(random_state=0)
    X, X_test = _rows(draw)
    scores = OneVsRestClassifier(learner).fit(X, draw.labels).decision_function(X_test)
    calibrated = OneVsRestClassifier(Calibrated(learner)).fit(X, draw.labels)
    return Answers(scores, calibrated.predict_proba(X_test), scores > 0)


def _figures(draw: Draw, answers: Answers) -> dict[str, float]:
    truth = draw.test_labels
    likely = np.clip(np.where(truth, answers.probabilities, 1 - answers.probabilities), LEAST, 1)
    first = np.arange(truth.shape[1]) == answers.scores.argmax(axis=1)[:, np.newaxis]
    figures = {"log loss": float(-np.log(likely).sum() / len(truth))}
    for which, given in (("", answers.given), (", one topic each", first)):
        figures |= {f"{average} F1{which}": _f1(truth, given, average) for average in ("micro", "macro")}
    return figures


def _f1(truth: np.ndarray, given: np.ndarray, average: str) -> float:
    # The macro-average is that of the topics that test documents have.
    topics = np.flatnonzero(truth.any(axis=0)) if average == "macro" else np.arange(truth.shape[1])
    return float(f1_score(truth[:, topics], given[:, topics], average=average, zero_division=0))
