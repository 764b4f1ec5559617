"""Names alone: topics ranked by their names and unlabelled documents, beside BM25 of the names."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from few_labels import titles_of_the_largest, values
from harness import Row, Work, short
from sklearn.feature_extraction.text import CountVectorizer
from sklearn_pipeline import joined
from training import reuters

from textcat.corpus.catalogue import open_corpus
from textcat.corpus.documents import Corpus, Document
from textcat.corpus.vocabulary import Vocabulary
from textcat.training.names import train_by_names

K1, B = 1.2, 0.75  # of BM25, as search engines have them


class Named(NamedTuple):
    """Topics with their descriptions, unlabelled documents, and labelled documents to test on."""

    name: str
    descriptions: Mapping[str, str]
    unlabelled: Sequence[Document]
    test: Sequence[Document]
    stop_words: str | None = "english"


def corpora(work: Work) -> Iterator[Named]:
    """Yield the corpora; for a quick look newswire alone."""
    news = reuters(work)
    for corpus in (news,) if work.quick else (news, open_corpus("20newsgroups", download=False)):
        described = {topic: corpus.descriptions.get(topic, "") for topic in corpus.topics}
        yield Named(corpus.name, described, corpus.train, [document for document in corpus.test if document.topics])
    for language, stop_words in () if work.quick else (("en", "english"), ("sv", None)):
        chosen, source = titles_of_the_largest(language)
        names = Vocabulary.read(source.with_name(f"yso-{language}-topics.tsv.xz")).names
        described = {topic: names[topic][0] for document in chosen for topic in document.topics}
        yield Named(source.name.partition(".")[0], described, chosen[::2], chosen[1::2], stop_words)


def measure(work: Work) -> list[Row]:
    """Rank the test documents by both ways."""
    return [_row(named) for named in corpora(work)]


def _row(named: Named) -> Row:
    start = time.process_time()
    tagger = train_by_names(named.descriptions, Corpus(named.name, [*named.unlabelled], [], ()), n_jobs=1)
    seconds = time.process_time() - start
    corpus = Corpus(named.name, [], [*named.test], tagger.topics, descriptions=dict(named.descriptions))
    labels, scores = corpus.labels(corpus.test).toarray(), np.asarray(tagger.scores(named.test))
    return {
        "corpus": named.name,
        "topics": len(tagger.topics),
        "unlabelled documents": f"{tagger.facts.train_documents:,}",
        "test documents": f"{len(named.test):,}",
        **{
            f"{figure}, {system}": f"{values(figure, of_system, labels).mean():.3f}"
            for system, of_system in (("textcat", scores), ("BM25", _bm25(named, corpus)))
            for figure in ("MAP", "accuracy")
        },
        "s": short(seconds),
    }


def _bm25(named: Named, corpus: Corpus) -> np.ndarray:
    """Return the scores of the test documents for the words of each topic's name and description."""
    counter = CountVectorizer(stop_words=named.stop_words)
    X = counter.fit_transform(joined(named.unlabelled)).tocsr()
    df, n_documents = np.bincount(X.indices, minlength=X.shape[1]), X.shape[0]
    idf = np.log1p((n_documents - df + 0.5) / (df + 0.5))
    tf = counter.transform(joined(named.test)).astype(float).tocsr()
    length = np.asarray(tf.sum(axis=1)).ravel()
    tf.data *= (K1 + 1) / (tf.data + np.repeat(K1 * (1 - B + B * length / length.mean()), np.diff(tf.indptr)))
    queries = counter.transform([document.zones["title"] for document in corpus.described()])
    return np.asarray((tf.multiply(idf).tocsr() @ queries.T).todense())
