"""Write a tagger's model card: a Markdown file with a YAML head, in the format of the Hugging Face hub.

The same tagger and evaluation give the same card to the byte: it has no date, and no path of the machine.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import textcat
from textcat.base.disk import write_atomically
from textcat.base.errors import install_hint
from textcat.base.progress import Stages
from textcat.corpus.cards import cards, is_shipped
from textcat.evaluation.evaluation import TITLES, BandQuality, Evaluation, MeasuredOn
from textcat.evaluation.export import formatted_tables, markdown_text
from textcat.evaluation.significance import add_intervals
from textcat.model.measure import evaluate_tagger, has_many_topics
from textcat.model.topic_names import topic_label
from textcat.report.write import measured_documents, scored_out_of_fold

if TYPE_CHECKING:
    from textcat.corpus.documents import Corpus
    from textcat.model.tagger import Tagger

_LISTED = 20  # maximum number of topics in the table of topics: the largest
_FEW = 10  # number of training documents below which a topic counts as small
_BOUND = "A document gets each topic whose"
_HELD_OUT = "is above the topic's threshold, which was chosen on held-out training documents"
_DECISIONS = {
    "zero": f"{_BOUND} score is above 0.",
    "probability": f"{_BOUND} probability is above {{probability:g}}.",
    "scut": f"{_BOUND} score {_HELD_OUT} for the best F1.",
    "scut-fbr": f"{_BOUND} score {_HELD_OUT} for the best F1 or, where that is poor, is above all scores in training.",
    "pcut": f"{_BOUND} score {_HELD_OUT}, so that as many documents get it as had it.",
    "expected-f1": "A document gets the topics that maximise the expected F1 of its tags, by their probabilities.",
    "single": "A document gets exactly one topic, that of the highest score or probability.",
}


@dataclass(frozen=True)
class CardFields:
    """The parts of a card that only a person can supply: title, licence, a paragraph about the model, and data sets."""

    title: str = ""  # "": derived from the corpus and the number of topics
    licence: str = ""  # licence of the model, such as "mit"; "": none
    about: str = ""  # Markdown: purpose of the model, and who is responsible for it
    datasets: Sequence[str] = ()  # ids of the training data on the hub; (): use the name of a named corpus
    model: str = ""  # the id of the model


def measure_for_card(
    tagger: Tagger, corpus: Corpus, *, bands: Any = None, resamples: int, stages: Stages | None = None
) -> Evaluation:
    """Return a tagger's evaluation on a corpus' test documents, or else by cross-validation, with intervals.

    Where cross-validation is not possible, as with thousands of topics, it is the evaluation that the model has stored.
    There are no intervals if `resamples` is 0.
    """
    stages = stages or Stages()
    if not has_many_topics(tagger):
        scored = None if corpus.test else scored_out_of_fold(tagger, corpus, 5, None, stages)
        if corpus.test or scored is not None:
            return measured_documents(tagger, corpus, scored, bands, resamples, stages).evaluation
    evaluation = evaluate_tagger(tagger, corpus, bands=bands, stages=stages)
    return add_intervals(evaluation, n_resamples=resamples) if resamples and evaluation.sample else evaluation


def write_card(
    path: str | os.PathLike[str], tagger: Tagger, evaluation: Evaluation | None, fields: CardFields = CardFields()
) -> Path:
    """Write a tagger's card to a file; without an evaluation, the card says that nothing was measured."""
    path = Path(path)
    write_atomically(path, card_text(tagger, evaluation, fields))
    return path


def card_text(tagger: Tagger, evaluation: Evaluation | None, fields: CardFields = CardFields()) -> str:
    """Return the text of a tagger's card, with the measures of an evaluation if there is one."""
    title = fields.title or f"{tagger.facts.corpus or 'Model'}: {len(tagger.topics):,} topics"
    head = "\n".join(_front_matter(tagger, evaluation, fields, title))
    assigned = "one of them" if tagger.decisions.single else "those that apply"
    parts = [
        f"---\n{head}\n---\n\n# {markdown_text(title)}\n",
        f"This model ranks {len(tagger.topics):,} topics by their relevance to a text, and gives the text {assigned}. "
        " It was trained with [textcat](https://github.com/textcat-margin/textcat-margin) "
        f"{textcat.__version__}, by margin perceptrons on weighted terms: one ranker per topic.\n",
        f"Its id is `{fields.model}`.\n" if fields.model else "",
        f"{fields.about.strip()}\n" if fields.about else "",
        _how_to_use(),
        _data(tagger),
        _recipe(tagger),
        "## Quality\n\n" + ("Nothing was measured.\n" if evaluation is None else _quality(tagger, evaluation)),
        f"## Thresholds\n\n{_thresholds(tagger)}\n",
        "## Limits\n\n" + "".join(f"- {limit}\n" for limit in _limits(tagger, evaluation)),
    ]
    return "\n".join(filter(None, parts))


# --- the head, for programs ------------------------------------------------------------------------------------------


def _front_matter(tagger: Tagger, evaluation: Evaluation | None, fields: CardFields, title: str) -> Iterator[str]:
    """Yield the lines of the head in YAML; texts are quoted as in JSON, a subset of YAML."""
    if (language := tagger.facts.recipe.tokens.lang) != "xx":
        yield f"language: {json.dumps(language)}"
    if fields.licence:
        yield f"license: {json.dumps(fields.licence)}"
    yield 'library_name: "textcat"'
    yield 'pipeline_tag: "text-classification"'
    kind = "single-label" if tagger.decisions.single else "multi-label"
    yield f'tags: ["text-classification", "margin-perceptron", "tf-idf", "{kind}"]'
    datasets = [*fields.datasets] or ([tagger.facts.corpus] if is_shipped(tagger.facts.corpus) else [])
    if datasets:
        yield f"datasets: {json.dumps(datasets)}"
    if evaluation is None:
        return
    names = _main_measures(evaluation)
    measured = [(row, name) for row in evaluation.rows for name in names if row[name] is not None]
    if not measured:  # the hub refuses an index without measures
        return
    is_test = evaluation.measured_on is MeasuredOn.TEST
    yield "model-index:"
    yield f"- name: {json.dumps(title)}"
    yield "  results:"
    yield '  - task: {type: "text-classification"}'
    name = json.dumps(tagger.facts.corpus or "unnamed")
    yield f"    dataset: {{name: {name}, type: {name}, split: {json.dumps('test' if is_test else 'train')}}}"
    yield "    metrics:"
    for row, measure in measured:
        named = json.dumps(f"{TITLES[measure].line}, {row.band}")
        yield f"    - {{type: {json.dumps(measure)}, name: {named}, value: {row[measure]:.4f}}}"


def _main_measures(evaluation: Evaluation) -> list[str]:
    return [name for name, title in evaluation.titles().items() if title.is_main and name != "mean_support"]


# --- the sections, for people ----------------------------------------------------------------------------------------


def _how_to_use() -> str:
    return (
        "## Use\n\n"
        f"`pip install textcat-margin`; to get the model from the Hugging Face hub, `{install_hint('hub')}`.\n\n"
        "```sh\n"
        "textcat pull hf://OWNER/NAME model    # checks every file; nothing in a model is executed\n"
        'echo "A text" | textcat tag model\n'
        "textcat serve model                   # an API and a page\n"
        "```\n\n"
        "```python\n"
        "import textcat\n\n"
        'tagger = textcat.load("model")\n'
        'tagger.tag(["A text"])\n'
        "```\n"
    )


def _data(tagger: Tagger) -> str:
    card = cards().get(tagger.facts.corpus)
    sizes = np.sort(np.asarray(tagger.facts.train_sizes))
    lines = [
        f"- Corpus: {markdown_text(tagger.facts.corpus or 'not named')}"
        + (f", {markdown_text(card.title)}" if card else "")
    ]
    if card and card.licence:
        lines.append(f"- Licence of the corpus: {markdown_text(card.licence)}")
    lines.append(f"- Training documents: {tagger.facts.train_documents:,}")
    if tagger.facts.train_dates:
        lines.append(f"- Their dates: {' to '.join(map(markdown_text, tagger.facts.train_dates))}")
    lines.append(f"- Language of the texts: {markdown_text(tagger.facts.recipe.tokens.lang)}")
    if len(sizes):
        median = int(sizes[(len(sizes) - 1) // 2])
        lines.append(
            f"- Topics: {len(sizes):,}, of {sizes[0]:,} to {sizes[-1]:,} training documents each (median {median:,})"
        )
    return "## Data\n\n" + "\n".join(lines) + "\n"


def _recipe(tagger: Tagger) -> str:
    """Return the section with the settings that training used, as a TOML file for `textcat train --recipe`."""
    from textcat.training.tune import to_toml

    learner = markdown_text(tagger.facts.recipe.learner["name"])
    text = to_toml(tagger.facts.recipe).replace("```", "'''").strip()  # it must not contain the end of the code block
    return f"## Recipe\n\nThe learner is {learner}; all settings:\n\n```toml\n{text}\n```\n"


def _quality(tagger: Tagger, evaluation: Evaluation) -> str:
    has_intervals = any(row.intervals for row in evaluation.rows)
    intervals = ", with 95 % intervals by the bootstrap over documents" if has_intervals else ", without intervals"
    text = f"Measured on {evaluation.test_documents:,} {evaluation.measured_on}{intervals}.\n\n"
    rows = [
        {"measure": TITLES[measure].line, **{row.band: _figure(row, measure) for row in evaluation.rows}}
        for measure in evaluation.titles()
        if TITLES[measure].is_main
    ]
    rows.append({"measure": "topics measured", **{row.band: f"{row.topics:,}" for row in evaluation.rows}})
    text += formatted_tables([rows], "markdown")
    bands = "ALL are all topics, TOP10 the ten largest in training, LAST30 the thirty smallest."
    if {row.band for row in evaluation.rows} >= {"TOP10", "LAST30"}:
        text += f"\n{bands} Macro-averages are means over topics, micro-averages pool all decisions.\n"
    if evaluation.twins:
        text += f"\n{evaluation.twins:,} of the test documents repeat training documents.\n"
    if forecast := tagger.facts.forecast:
        text += f"\n{forecast}; training forecast this, with a 90 % band, from models of fewer documents.\n"
    if aging := tagger.facts.aging:
        text += f"\n{aging}; measured by a model of the earlier half of the training documents.\n"
    return text + _largest_topics(tagger, evaluation)


def _figure(row: BandQuality, measure: str) -> str:
    value, bounds = row[measure], row.intervals.get(measure)
    if value is None:
        return "–"
    shown = f"{value:.{TITLES[measure].decimals}f}"
    return f"{shown} ({bounds[0]:.3f} to {bounds[1]:.3f})" if bounds else shown


def _largest_topics(tagger: Tagger, evaluation: Evaluation) -> str:
    if not evaluation.topics:
        return ""
    largest = sorted(evaluation.topics, key=lambda row: (-row.train_positives, row.topic))[:_LISTED]
    rows = [
        {
            "topic": topic_label(row.topic, tagger.topic_names),
            "training": f"{row.train_positives:,}",
            "measured": f"{row.test_positives:,}",
            **{title: _rounded(value) for title, value in (("AP", row.average_precision), ("F1", row.f1))},
        }
        for row in largest
    ]
    which = (
        f"The {len(rows)} largest of {len(evaluation.topics):,} topics"
        if len(rows) < len(evaluation.topics)
        else "Topics"
    )
    return f"\n{which}, with their documents in training and among those measured on:\n\n" + formatted_tables(
        [rows], "markdown"
    )


def _rounded(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"


def _thresholds(tagger: Tagger) -> str:
    tags = tagger.facts.recipe.tags
    decision = _DECISIONS.get(tagger.decisions.strategy, "").format(probability=tags.probability)
    if (promises := tagger.decisions.promises) is not None:
        automatic, recall = int(promises.has_precision.sum()), int(promises.has_recall.sum())
        decision += (
            f" Tags of {automatic:,} of {len(tagger.topics):,} topics can be automatic, with a promised precision, and "
            f"{recall:,} topics have a promised recall; all other tags are for people to review."
        )
        if missed := tagger.facts.recipe.promise.missed:
            decision += f" It is promised that tags miss on average at most {missed:g} of a document's topics."
    if tagger.decisions.calibration is None:
        return f"{decision} Scores only rank documents; the model has no probabilities."
    return (
        f"{decision} Probabilities come from curves fitted to scores of training documents that were held out; they "
        "are as good as new documents are like those."
    )


def _limits(tagger: Tagger, evaluation: Evaluation | None) -> Iterator[str]:
    language = markdown_text(tagger.facts.recipe.tokens.lang)
    yield f"**Language**: trained for `{language}`. Texts in other languages get tags, too, and these mean nothing."
    sort = markdown_text(tagger.facts.corpus) if tagger.facts.corpus else "its corpus"
    yield (
        f"**Sort of texts**: figures hold for texts like those of {sort}: of this sort, length and source. Measure the "
        "model on texts of your own before you rely on it (`textcat evaluate`)."
    )
    until = f" after {markdown_text(tagger.facts.train_dates[1])}" if tagger.facts.train_dates else ""
    yield (
        f"**Drift**: words and subjects that came up{until or ' later'} are unknown to it, and topics cannot appear by "
        "themselves. Measure again from time to time, and train anew or teach (`textcat learn`)."
    )
    if few := int((np.asarray(tagger.facts.train_sizes) < _FEW).sum()):
        yield f"**Small topics**: {few:,} of {len(tagger.topics):,} topics had fewer than {_FEW} training documents."
    if unseen := sum(not row.test_positives for row in (evaluation.topics if evaluation else ())):
        yield f"**Unmeasured topics**: {unseen:,} topics had no document to measure them on."
    if evaluation is not None and evaluation.measured_on is not MeasuredOn.TEST:
        yield f"**Figures** are of {evaluation.measured_on}: on documents of another time or source they may be lower."
    yield (
        "**Decisions about people**: labels may repeat the errors and prejudices of those who gave them. Evidence for "
        "each tag is shown by `textcat explain`."
    )
