"""Parts that reports of few and of many topics share: the model and its evaluation, bands, documents' headings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from textcat.corpus.documents import shortened_text
from textcat.evaluation.promises import automatic_tags
from textcat.report.page import scrolled_table

if TYPE_CHECKING:
    from textcat.corpus.documents import Document
    from textcat.evaluation.evaluation import Evaluation
    from textcat.model.tagger import Tagger

_TITLE = 90  # maximum characters of a document's title or beginning
_NOT_SHOWN = {
    "macro_precision_at_10",
    "mean_support",
    "sample_precision",
    "sample_recall",
    "sample_f1",
    "coverage_error",
}


def about_evaluation(tagger: Tagger, evaluation: Evaluation) -> str:
    """Return a sentence on the model, and the documents that it was trained and measured on."""
    learner = tagger.facts.recipe.learner["name"]
    where = f" of {tagger.facts.corpus}" if tagger.facts.corpus else ""
    return (
        f"{len(tagger.topics):,} topics, trained on {tagger.facts.train_documents:,} documents{where} by {learner}; "
        f"measured on {evaluation.test_documents:,} {evaluation.measured_on}."
    )


def bands_table(name: str, evaluation: Evaluation) -> str:
    """Return an HTML table of the measures of an evaluation, with a column per band (set of topics).

    `name` is the id of the table.
    """
    bands = evaluation.bands
    rows: list[list[Any]] = []
    for measure, title in evaluation.titles().items():
        if measure not in _NOT_SHOWN:
            rows.append([title.line, *(_with_bounds(row[measure], row.intervals.get(measure)) for row in bands)])
    if any(row.documents is not None for row in bands):
        rows.append(["documents", *(row.documents for row in bands)])
    rows.append(["topics with a positive", *(row.topics for row in bands)])
    if any(row.left_out for row in bands):
        rows.append(["topics without a positive, left out", *(row.left_out for row in bands)])
    intervals = ", with 95 % intervals by the bootstrap" * any(row.intervals for row in bands)
    return scrolled_table(name, f"Quality by bands of topics{intervals}", ["", *(row.band for row in bands)], rows)


def promises_table(evaluation: Evaluation) -> str:
    """Return an HTML table of promises: the share of topics' documents found, and the share of right tags.

    Return "" if the model makes no promises, or was not measured on test documents.
    """
    if not evaluation.promises:
        return ""
    rows = [
        [
            promise.topic,
            f"{promise.measure} {promise.promised:g}",
            promise.documents,
            promise.right,
            _with_bounds(promise.share, promise.interval),
            str(promise.verdict),
        ]
        for promise in evaluation.promises
    ]
    given, right = automatic_tags(evaluation.promises)
    all_right = f"; {given:,} automatic tags, {right / given:.1%} of them right" if given else ""
    head = ["topic", "promised", "documents", "right", "share (interval of 95 %)", "verdict"]
    return scrolled_table("promises", f"Promises, and what test documents say of them{all_right}", head, rows)


def _with_bounds(value: float | None, bounds: tuple[float, float] | None) -> str | float | None:
    return value if value is None or bounds is None else f"{value:.3f} ({bounds[0]:.3f} to {bounds[1]:.3f})"


def document_heading(document: Document) -> str:
    """Return the title of a document or, if it has none, its beginning."""
    text = document.zones.get("title", "").strip() or " ".join(document.zones.values())
    return shortened_text(text, _TITLE)
