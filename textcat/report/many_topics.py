"""Build the sections of a report on models of thousands of topics, and the data that its script searches."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from textcat.base.markup import Html, html_text
from textcat.base.progress import Stages
from textcat.corpus.documents import shortened_text
from textcat.evaluation.significance import add_intervals
from textcat.model.evaluate import with_test_documents
from textcat.model.measure import evaluate_tagger
from textcat.model.topic_names import topic_label
from textcat.report.overview import about_evaluation, bands_table
from textcat.report.page import scrolled_table
from textcat.report.rankings import RANKS, RankedTopic, WorstDocument, rank_documents, topic_rows, worst_documents

if TYPE_CHECKING:
    from textcat.corpus.documents import Corpus
    from textcat.model.tagger import Tagger

SHOWN = 200  # number of topics that the table shows at a time
_WORST, _FIRST = 60, 5  # number of documents, and of first topics of each
_EXCERPT = 300  # maximum characters of a document
_TITLES = ("Topic", "Training", "Test", "Found", "Given", "Precision", "Recall", "F1")
_MEANING = f"; found: the share of a topic’s test documents that have it among their first {RANKS}"
_HINTS = {
    "Training": "training documents",
    "Test": "documents measured on",
    "Found": "share of the test documents with the topic that have it among their first ones",
    "Given": "test documents that get the topic by its threshold",
}


def sections_of_many(
    models: Sequence[tuple[Tagger, str]],
    corpus: Corpus,
    bands: str | Iterable[str] | None,
    resamples: int,
    stages: Stages,
) -> tuple[list[tuple[str, str, str]], dict[str, Any]]:
    """Return the sections of a report on models of many topics, each as (id, heading, HTML), and the script's data.

    `models` has the tagger and the name of each model. Topics and documents are shown for the first model only. `bands`
    (sets of topics to average over) are as for `textcat.evaluate`; `resamples` is the number of resamples for 95 %
    intervals, and 0 stands for no intervals.
    """
    evaluations = [
        evaluate_tagger(tagger, with_test_documents(tagger, corpus), bands=bands, stages=stages) for tagger, _ in models
    ]
    sections = []
    for number, ((tagger, name), evaluation) in enumerate(zip(models, evaluations, strict=True)):
        measured = evaluation
        if resamples and evaluation.sample is not None:
            measured = add_intervals(evaluation, n_resamples=resamples)
        heading = "Overview" if len(models) == 1 else f"Overview: {name}"
        why = "With so many topics, the first topics of each document are measured, not each topic."
        about = f"<p>{html_text(about_evaluation(tagger, measured))} {why}</p>"
        sections.append((f"overview-{number}", heading, about + bands_table(f"bands-{number}", measured)))
    tagger, evaluation = models[0][0], evaluations[0]
    rankings = rank_documents(tagger, corpus, stages) if corpus.test else None
    rows = topic_rows(tagger, rankings, [topic_label(topic, tagger.topic_names) for topic in tagger.topics])
    sections.append(("topics", "Topics", _topics(rows)))
    if rankings is not None:
        worst = worst_documents(tagger, rankings, evaluation, _WORST, _FIRST)
        names = {topic: first for topic, (first, *_) in corpus.names.items()} | {**tagger.topic_names}
        sections.append(("documents", "Documents that are ranked worst", _documents(worst, names)))
    return sections, {"topics": rows, "shown": SHOWN, "caption": f"All topics{_MEANING}"}


def _topics(rows: Sequence[Sequence[Any]]) -> str:
    tools = (
        '<p class="tools"><label>Show topics whose name or id has <input type="search" id="filter"></label> '
        '<span id="shown" aria-live="polite"></span></p>'
    )
    caption = f"The {min(len(rows), SHOWN)} largest topics{_MEANING}"
    return tools + scrolled_table("table", caption, _TITLES, rows[:SHOWN], hints=_HINTS)


def _documents(worst: Sequence[WorstDocument], names: dict[str, str]) -> str:
    about = (
        f"<p>The {len(worst)} test documents with the lowest nDCG@{RANKS}; of equal ones, those with the most topics "
        "come first. Topics that the model rightly has among the first are marked.</p>"
        '<p class="tools"><label>Show documents whose text or topics have <input type="search" id="find"></label> '
        '<span id="found" aria-live="polite"></span></p>'
    )
    return f'{about}<div id="worst">{"".join(_article(entry, names) for entry in worst)}</div>'


def _article(entry: WorstDocument, names: dict[str, str]) -> str:
    text = shortened_text(" · ".join(filter(None, entry.document.zones.values())), _EXCERPT)
    wanted, first = (
        " · ".join(_ranked(topic, names) for topic in topics) or "none" for topics in (entry.wanted, entry.first)
    )
    return (
        f'<article><p class="of"><b>{html_text(entry.document.id)}</b> nDCG@{RANKS} {entry.ndcg:.3f}</p>'
        f'<p class="text" dir="auto">{html_text(text)}</p>'
        f'<p dir="auto"><b>Wanted:</b> {wanted}</p><p dir="auto"><b>Given first:</b> {first}</p></article>\n'
    )


def _ranked(topic: RankedTopic, names: dict[str, str]) -> Html:
    name = html_text(names.get(topic.topic, topic.topic) + " (not in the model)" * (not topic.is_known))
    return Html(f'<mark class="for2">{name}</mark>' if topic.is_wanted and topic.rank else name)
