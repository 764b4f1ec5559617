"""(d) Texts in a list → rows, without any training."""

from __future__ import annotations

import texts
from measuring import ROUNDS, Task, interleaved
from pages import Conditions, Page
from sklearn.feature_extraction.text import TfidfVectorizer

from textcat.corpus.documents import Corpus
from textcat.features.tfidf import TfIdf
from textcat.features.tokens import Tokens

OURS, PEER = "textcat TfIdf", "scikit-learn TfidfVectorizer"


def measured(corpus: Corpus, rounds: int) -> list[Page]:
    """Return the page of making rows."""
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
    text = f"""The table times how texts of {corpus.name} become rows: `fit_transform` of a list of {len(strings)}
texts, training and
test documents, in one process and one thread, by textcat's `TfIdf` and scikit-learn's `TfidfVectorizer`. textcat uses
spaCy's tokens; spaCy's language is loaded before, but nothing else is kept from an earlier run. scikit-learn uses the
tokens of its regular expression.

{ROUNDS.format(rounds)}"""
    return [Page("rows", "From texts to rows", conditions.head(), text, rows)]
