"""Write a report of a tagger's quality on a corpus as one HTML file, and a list of probably wrong labels."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from textcat.base.calibration import Calibration
from textcat.base.disk import write_atomically
from textcat.base.errors import TextcatError
from textcat.base.markup import Html, html_text
from textcat.base.progress import Stages
from textcat.base.settings import check_whole_number
from textcat.evaluation.bands import MANY_TOPICS
from textcat.evaluation.evaluation import MeasuredOn
from textcat.evaluation.significance import add_intervals
from textcat.model import storage
from textcat.model.card import card_html
from textcat.model.evaluate import corpus_to_measure
from textcat.model.measure import evaluate_tagger, has_many_topics, measure_scores, was_trained_on
from textcat.model.tagger import Tagger
from textcat.report import figures
from textcat.report.changes import decision_changes
from textcat.report.contents import Measured, example_of, report_contents
from textcat.report.many_topics import sections_of_many
from textcat.report.overview import about_evaluation, bands_table, document_heading, promises_table
from textcat.report.page import report_page, scrolled_table

if TYPE_CHECKING:
    from textcat.corpus.documents import Corpus, Document

_N_LABEL_ISSUES = 60  # number of probably wrong labels that the page shows; a file has all
_OUT_OF_FOLD = "rankers that were not trained on it, in {} parts"
_BY_THE_MODEL = "the model, which was not trained on it"


@dataclass
class ScoredPart:
    """Documents with their labels, and their scores and calibration by rankers that were not trained on them."""

    documents: Sequence[Document]
    scores: np.ndarray
    calibration: Calibration
    labels: Any
    by: str  # a phrase that says which rankers the scores are from


def write_report(
    path: str | os.PathLike[str],
    tagger: Tagger | str | os.PathLike[str],
    corpus: Any,
    *,
    text: str | Sequence[str] | None = None,
    topics: str | Sequence[str] = "topics",
    topics_separator: str = "",
    before: Tagger | str | os.PathLike[str] | None = None,
    bands: str | Iterable[str] | None = None,
    folds: int = 5,
    resamples: int = 1000,
    label_issues: str | os.PathLike[str] | None = None,
    title: str = "",
    card: str = "",
    names: tuple[str, str] = ("before", "now"),
    n_jobs: int | None = None,
    stages: Stages | None = None,
) -> Path:
    """Write a report of a tagger's quality, topic by topic, as one HTML file that needs no network.

    The report measures the tagger on the test documents of a corpus. If the corpus has none, and the tagger was trained
    on it, the training documents are scored by cross-validation. For a tagger of 1,000 topics or more, the report has
    a row, not a page, for each topic, and the documents that are ranked worst.

    Parameters
    ----------
    path : path
        The file to write; an existing file is replaced.
    tagger : Tagger, str or Path
        A tagger, or the folder of one.
    corpus, text, topics, topics_separator
        The documents, as for `textcat.evaluate`.
    before : Tagger, str or Path, optional
        An earlier tagger of the same topics, or its folder: the report shows and explains the changes since. For 1,000
        topics or more, it only shows the measures of both taggers.
    bands : str or iterable of str, optional
        As `spec` in `textcat.evaluate_scores`.
    folds : int, default=5
        Number of parts of the training documents; each part is scored by rankers trained on the others, to find labels
        that are probably wrong. 0: only test documents are examined. Training documents are examined only if the tagger
        was trained on them.
    resamples : int, default=1000
        Resamples of the documents for 95 % intervals of the bands; 0: no intervals.
    label_issues : path, optional
        A second file to write: a line of JSON for each label that is probably wrong.
    title : str, optional
        The heading.
    card : str, optional
        The text of the model's card, which is shown at the end.
    names : (str, str)
        Names of the earlier and the later tagger in the report.
    n_jobs : int, optional
        Blocks of topics trained at the same time.
    stages : Stages, optional
        Times the work, and draws its progress.

    Returns
    -------
    Path
        The file.

    Raises
    ------
    TextcatError
        If the corpus has no documents to measure on, `folds` is 1, the taggers' topics differ, `label_issues` is given
        for 1,000 topics or more, or a file cannot be written.
    """
    stages = stages or Stages()
    check_whole_number(folds, 0, "The number of folds")
    check_whole_number(resamples, 0, "The number of resamples")
    if folds == 1:
        raise TextcatError("One part leaves no document to train on: give folds=2 or more, or 0.")
    tagger = tagger if isinstance(tagger, Tagger) else storage.load(tagger, with_rules=False)
    before = before if before is None or isinstance(before, Tagger) else storage.load(before, with_rules=False)
    if before is not None and before.topics != tagger.topics:
        raise TextcatError("The two models do not have the same topics: compare models of one corpus.")
    corpus = corpus_to_measure(tagger, corpus, text=text, topics=topics, topics_separator=topics_separator)
    title = title or f"{tagger.facts.corpus or 'Model'}: how well {len(tagger.topics):,} topics are found"
    if has_many_topics(tagger):
        if label_issues is not None:
            raise TextcatError(
                f"Labels that are probably wrong are not looked for in models of {MANY_TOPICS:,} topics or more: "
                "leave out the file for them."
            )
        models = [(tagger, names[1])] if before is None else [(tagger, names[1]), (before, names[0])]
        sections, numbers = sections_of_many(models, corpus, bands, resamples, stages)
        page = report_page(title, [*sections, *_card_section(card)], numbers, "many_topics")
    else:
        scored = scored_out_of_fold(tagger, corpus, folds, n_jobs, stages)
        measured = measured_documents(tagger, corpus, scored, bands, resamples, stages)
        parts = [scored] if scored else []
        if measured.documents is corpus.test and tagger.decisions.calibration is not None:
            labels = measured.scored.relevant
            parts.append(ScoredPart(corpus.test, measured.scores, tagger.decisions.calibration, labels, _BY_THE_MODEL))
        issues = _label_issues(parts, tagger)
        if label_issues is not None:
            write_atomically(label_issues, (json.dumps(entry, ensure_ascii=False) + "\n" for _, _, entry in issues))
        with stages.stage("report", len(tagger.topics)) as advance:
            data = report_contents(measured, advance)
            data["label_issues"] = [
                _shown(entry, part, issue, measured) for part, issue, entry in issues[:_N_LABEL_ISSUES]
            ]
            data["n_label_issues"] = len(issues)
            if before is not None:
                earlier = _earlier(before, measured, bands, resamples)
                data["changes"] = decision_changes(earlier, measured) | {"names": list(names)}
        page = report_page(title, [*_sections(measured, data, parts, names), *_card_section(card)], data)
    path = Path(path)
    write_atomically(path, page)
    return path


def scored_out_of_fold(
    tagger: Tagger, corpus: Corpus, folds: int, n_jobs: int | None, stages: Stages
) -> ScoredPart | None:
    """Score training documents by cross-validation in `folds` folds.

    Return None if `folds` is 0, if the tagger was trained on other documents, if there is only one document, or if the
    recipe is unknown or scores only a document's nearest topics, its shortlist.
    """
    from textcat.training.cross_validation import cross_validated

    if not folds or not was_trained_on(tagger, corpus):
        return None
    scored = cross_validated(tagger, corpus, folds, n_jobs=n_jobs, stages=stages)
    return scored and ScoredPart(corpus.train, *scored, _OUT_OF_FOLD.format(folds))


def measured_documents(
    tagger: Tagger, corpus: Corpus, scored: ScoredPart | None, bands: Any, resamples: int, stages: Stages
) -> Measured:
    """Measure a tagger on a corpus' test documents or, if there are none, on `scored`, its training documents.

    Raise TextcatError if there are neither. `resamples` is the number of resamples for 95 % intervals, and 0 stands for
    no intervals.
    """
    from textcat.training.steps import measure_out_of_fold

    if corpus.test:
        evaluation, documents = evaluate_tagger(tagger, corpus, bands=bands, stages=stages), corpus.test
        calibration = tagger.decisions.calibration
    elif scored is None:
        raise TextcatError(
            f"Corpus {corpus.name} has no test documents, and its training documents are scored by cross-validation "
            "only for a model that was trained on them, without a shortlist: give some the split 'test', or set some "
            "aside (--test-size, Corpus.split)."
        )
    else:
        firsts = np.unique(corpus.groups)
        documents, calibration = [corpus.train[i] for i in firsts.tolist()], scored.calibration
        with stages.stage("evaluate"):
            evaluation = measure_out_of_fold(tagger, corpus, scored.scores, scored.labels, bands)
    if resamples:
        with stages.stage("intervals"):
            evaluation = add_intervals(evaluation, n_resamples=resamples)
    return Measured(tagger, documents, evaluation, calibration)


def _earlier(before: Tagger, measured: Measured, bands: Any, resamples: int) -> Measured:
    if measured.evaluation.measured_on is not MeasuredOn.TEST:
        raise TextcatError("Two models are compared on test documents, and the corpus has none: give one that has.")
    scores, has_terms = before.scored(measured.documents)
    evaluation = measure_scores(before, scores, measured.scored.relevant, bands=bands, has_terms=has_terms)
    if resamples:
        evaluation = add_intervals(evaluation, n_resamples=resamples)
    return Measured(before, measured.documents, evaluation, before.decisions.calibration)


def _label_issues(
    parts: Sequence[ScoredPart], tagger: Tagger
) -> list[tuple[ScoredPart, figures.LabelIssue, dict[str, Any]]]:
    """Return tuples (part, label issue, JSON entry) for the labels that are probably wrong, the surest first.

    `parts` are groups of documents with their scores; the part of a label issue is the group that has its document.
    """
    entries = []
    for part in parts:
        split = "test" if part.by == _BY_THE_MODEL else "train"
        for issue in figures.find_label_issues(part.calibration.probabilities(part.scores), part.labels):
            document = part.documents[issue.document]
            entry = {
                "id": document.id,
                "split": split,
                "topic": tagger.topics[issue.topic],
                "labelled": issue.has_it,
                "probability": round(issue.probability, 6),
                "limit": round(issue.limit, 6),
                "score": float(f"{part.scores[issue.document, issue.topic]:.6g}"),
                "scored_by": part.by,
                "topics": list(document.topics),
                "title": document_heading(document),
            }
            entries.append((part, issue, entry))
    return sorted(
        entries, key=lambda issue: issue[2]["probability"] if issue[1].has_it else 1 - issue[2]["probability"]
    )


def _shown(entry: Mapping[str, Any], part: ScoredPart, issue: figures.LabelIssue, measured: Measured) -> dict[str, Any]:
    """Return what the page shows of a label issue: its document with highlighted evidence, and its label.

    `part` is the group of scored documents that has this document, and `entry` is the issue's JSON entry.
    """
    evaluation = replace(measured.evaluation, scored=replace(measured.scored, scores=part.scores))
    seen = Measured(measured.tagger, part.documents, evaluation, part.calibration)
    example = example_of(seen, issue.document, issue.topic)
    facts = {"p": entry["probability"], "split": entry["split"], "title": entry["title"]}
    return {**example, **facts, "t": issue.topic, "has": issue.has_it}


def _sections(
    measured: Measured, data: Mapping[str, Any], parts: Sequence[ScoredPart], names: tuple[str, str]
) -> list[tuple[str, str, str]]:
    evaluation, tagger = measured.evaluation, measured.tagger
    overview = (
        f"<p>{html_text(about_evaluation(tagger, evaluation))}</p>"
        f"{bands_table('bands', evaluation)}{promises_table(evaluation)}"
        '<div class="plots" id="plots"></div><p id="moved" aria-live="polite"></p>'
    )
    topics = (
        '<p class="tools"><label>Show topics whose name or id has <input type="search" id="filter"></label> '
        '<label>in band <select id="band"></select></label> <span id="shown" aria-live="polite"></span></p>'
        f"{_topics(measured, data)}"
    )
    sections = [("overview", "Overview", overview), ("topics", "Topics", topics)]
    sections.append(("topic", "One topic", '<div id="one"></div>'))
    if "changes" in data:
        changed = data["changes"]
        text = (
            f"{names[1]} compared with {names[0]}: {changed['better']:,} decisions became right and "
            f"{changed['worse']:,} wrong. p is that of McNemar’s exact test per topic, and corrected for "
            "the number of topics (Holm)."
        )
        sections.append(("changes", "What changed", f"<p>{html_text(text)}</p>{_changed(measured, data)}"))
    sections.append(
        ("labels", "Labels that are probably wrong", _about_label_issues(parts) + '<div id="label-issues"></div>')
    )
    pairs = '<p>Documents that have a topic, but were wrongly given another topic instead.</p><div id="pairs"></div>'
    return [*sections, ("confusion", "Topics that are mistaken for each other", pairs)]


def _card_section(card: str) -> list[tuple[str, str, str]]:
    return [("card", "Model card", f'<div class="card">{card_html(card)}</div>')] if card else []


def _topics(measured: Measured, data: Mapping[str, Any]) -> str:
    titles = ["Topic", "Training", "Test", "AP", "Precision", "Recall", "F1", "Wrongly given", "Missed"]
    order = sorted(range(len(data["topics"])), key=lambda j: (-data["topics"][j]["train"], data["names"][j]))
    rows: list[list[Any]] = []
    for j in order:
        row, (assigned, hits) = measured.evaluation.topics[j], data["topics"][j]["given"]
        numbers = (row.train_positives, row.test_positives, row.average_precision, row.precision, row.recall, row.f1)
        rows.append([_link(j, data["labels"][j]), *numbers, assigned - hits, row.test_positives - hits])
    hint = {"AP": "average precision", "Training": "training documents", "Test": "documents measured on"}
    return scrolled_table("table", f"{len(rows):,} topics, the largest first", titles, rows, hints=hint)


def _changed(measured: Measured, data: Mapping[str, Any]) -> str:
    before, after = data["changes"]["names"]
    titles = ["Topic", f"AP {before}", f"AP {after}", "Difference", f"F1 {before}", f"F1 {after}"]
    titles += ["Became right", "Became wrong", "p", "p corrected"]
    rows: list[list[Any]] = []
    for j, topic in enumerate(data["changes"]["topics"]):
        row = measured.evaluation.topics[j]
        ap = None if row.average_precision is None else row.average_precision - topic["ap"]
        p = [f"{value:.3g}" for value in topic["p"]]
        difference = None if ap is None else f"{ap:+.3f}"
        cells = (
            topic["ap"],
            row.average_precision,
            difference,
            topic["f1"],
            row.f1,
            topic["better"],
            topic["worse"],
            *p,
        )
        rows.append([-abs(ap or 0), [_link(j, data["labels"][j]), *cells]])
    rows = [row for _, row in sorted(rows, key=lambda pair: pair[0])]
    return scrolled_table("changed", "Topics, the largest difference first", titles, rows)


def _link(j: int, label: str) -> Html:
    return Html(f'<a href="#topic-{j}">{html_text(label)}</a>')


def _about_label_issues(parts: Sequence[ScoredPart]) -> str:
    if not parts:
        return "<p>Not searched for: the model has no probabilities, or --folds is 0.</p>"
    who = " and ".join(f"{len(part.documents):,} documents, each scored by {part.by}" for part in parts)
    return (
        f"<p>{html_text(who)}. A label is listed if the score contradicts it as confidently as the scores of documents "
        "with the opposite label do on average; the surest come first. Check them: the model may be wrong, too. "
        "<code>textcat report … --label-issues label-issues.jsonl</code> lists all of them, and "
        "<code>textcat teach ARCHIVE --list label-issues.jsonl</code> opens that list on a page, to judge "
        "them one by one.</p>"
    )
