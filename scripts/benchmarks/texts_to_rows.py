"""(d) Texts in a list → rows, without any training."""

from __future__ import annotations

import texts
from machine import Conditions
from measuring import Task, interleaved
from sklearn.feature_extraction.text import TfidfVectorizer

from textcat.documents import Corpus
from textcat.features.tfidf import TfIdf
from textcat.features.tokens import Tokens

OURS, PEER = "textcat TfIdf", "scikit-learn TfidfVectorizer"


def measured(corpus: Corpus, rounds: int) -> str:
    """Write the table of making rows."""
    conditions = Conditions("none, the defaults of both")
    strings = texts.plain([*corpus.train, *corpus.test])
    tasks = {
        OURS: Task(lambda tfidf: tfidf.fit_transform(strings), lambda: TfIdf(Tokens().prepare())),
        PEER: Task(lambda vectorizer: vectorizer.fit_transform(strings), TfidfVectorizer),
    }
    timings = interleaved(tasks, rounds)
    rows = [
        {
            "what": name,
            "seconds": timing,
            "times TfidfVectorizer's": timing.ratio(timings[PEER]),
            "features": timing.result.shape[1],
        }
        for name, timing in timings.items()
    ]
    return f"""## (d) From texts to rows

Part (d) of the benchmark times how texts become rows: `fit_transform` of a list of {len(strings)} texts, training and
test documents, in one process and one thread, by textcat's `TfIdf` and scikit-learn's `TfidfVectorizer`. textcat uses
spaCy's tokens; spaCy's language is loaded before, but nothing else is kept from an earlier run. scikit-learn uses the
tokens of its regular expression.

{conditions.table(rows)}"""
