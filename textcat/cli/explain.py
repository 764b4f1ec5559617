"""The command `explain`: why documents have topics, as coloured text, an HTML page, or JSON Lines."""

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument, BadParameter, Option

from textcat.base.errors import TextcatError
from textcat.cli import common, terminal
from textcat.cli.configuration import alternatives

if TYPE_CHECKING:
    from rich.console import Console

    from textcat.corpus.documents import Document
    from textcat.model.explain import Explanation
    from textcat.model.tagger import Tagger
    from textcat.reading import InputSettings, Record

_STYLES = {True: ("dark_sea_green4", "green", "bold green"), False: ("red3", "red", "bold red")}
_STYLE = """
:root { color-scheme: light dark; background: Canvas; color: CanvasText; }
body { font: 1rem/1.5 system-ui, sans-serif; max-width: 50rem; margin: 2rem auto; padding: 0 1rem; }
.zone { white-space: pre-wrap; overflow-wrap: anywhere; margin: .5rem 0; }
.zone[data-zone=title] { font-weight: bold; }
table { border-collapse: collapse; }
td, th { padding: 0 .8rem 0 0; text-align: left; vertical-align: top; overflow-wrap: anywhere; }
td:last-child { white-space: nowrap; }
mark { color: inherit; border-radius: .2em; }
mark.for { background: rgb(0 150 80 / calc(.1 + .08 * var(--s))); }
mark.against { background: rgb(220 50 50 / calc(.1 + .08 * var(--s))); text-decoration: underline dotted; }
mark[data-strength="1"] { --s: 1; } mark[data-strength="2"] { --s: 2; } mark[data-strength="3"] { --s: 3; }
mark[data-strength="4"] { --s: 4; } mark[data-strength="5"] { --s: 5; }
"""


@alternatives("html form")
@common.with_options(read=common.input_settings)
def explain(
    model: common.ModelFolder,
    read: "InputSettings",
    file: Annotated[
        str, Argument(help="File of the document, or of several, or name of a corpus; - is standard input.")
    ] = "-",
    topic: Annotated[
        list[str] | None,
        Option(
            help="Explain this topic, given by id or name. May be repeated.", show_default="the topics of the document"
        ),
    ] = None,
    terms: Annotated[int, Option(min=1, help="Number of terms: those that change the score most.")] = 10,
    html: Annotated[Path | None, Option(help="Write a page with the marked texts to this file.")] = None,
    form: common.Form = "text",
) -> None:
    """Explain why a document has a topic, or lacks it: what its terms add to the score, and where they occur."""
    from textcat.base.disk import write_atomically
    from textcat.cli.printing import print_json
    from textcat.model import storage

    if form not in ("text", "json"):
        raise BadParameter(f"explanations are printed as text, or as a JSON line for each document, not as {form}")
    if html and form != "text":
        raise BadParameter("choose one of --html and --as json")
    if sys.stdin is None and file == "-":
        raise TextcatError("Standard input is closed: name a file, or send a document to standard input.")
    tagger = storage.load(model)
    explained = _explained(tagger, file, read, topic, terms)
    if html:
        write_atomically(html, _page(explained))
        return
    console = terminal.console()
    for record, explanations in explained:
        if form == "json":
            values = [explanation.as_dict() for explanation in explanations]
            facts = {"id": record.id, "source": getattr(record, "source", file), "explanations": values}
            print_json(console, facts, indent=None)
        else:
            for explanation in explanations:
                _print(console, record, explanation)


def _explained(
    tagger: "Tagger", file: str, read: "InputSettings", topics: list[str] | None, n: int
) -> "Iterator[tuple[Document | Record, list[Explanation]]]":
    from textcat.model.explain_corpus import read_unlabelled
    from textcat.reading import named_in_training, warn_of_unnamed_texts

    warn_of_unnamed_texts(named_in_training(tagger.facts.origin), read, [file])
    n_documents, fault, n_faults = 0, "", 0
    for record in read_unlabelled(file, read, tagger.decisions.read_fields):
        n_documents += 1
        explanations = tagger.explain_all(record, topics, n)
        if explanations and (not topics or any(explanations)):
            yield record, explanations
            continue
        n_faults += 1
        if topics:
            fault = fault or f"Document {record.id} has no term that the model knows: give another document."
        else:
            fault = fault or f"Document {record.id} gets no topic from the model: name one with --topic."
    if fault and n_faults == n_documents:
        raise TextcatError(f"{fault}")
    if fault:
        terminal.say(f"{n_faults:,} of {n_documents:,} documents are not explained. {fault}")
    if not n_documents:
        raise TextcatError(f"There is no document in {'standard input' if file == '-' else file}: give one.")


def _print(console: "Console", record: "Document | Record", explained: "Explanation") -> None:
    from rich.text import Text

    from textcat.cli.printing import Figure, Table, print_text, show

    probability = "" if explained.probability is None else f", probability {explained.probability:.3f}"
    numbers = f"score {explained.score:.3f}, threshold {explained.threshold:.3f}{probability}"
    topic, id = map(terminal.harmless, (explained.label, record.id))
    console.print(Text.assemble((topic, "bold"), f" in {id}: {numbers}"), soft_wrap=True)
    strongest = max(abs(reason.contribution) for reason in explained) if len(explained) else 0.0
    for zone, text in record.zones.items():
        shown = Text(terminal.harmless(text))
        for reason in reversed(explained.reasons):
            strength = min(2, int(3 * abs(reason.contribution) / strongest)) if strongest else 0
            for span in reason.spans:
                if span.zone == zone:
                    shown.stylize(_STYLES[reason.contribution >= 0][strength], span.start, span.end)
        if text.strip() and console.is_terminal:
            console.print(shown, soft_wrap=True)
    terms = [
        {
            "term": reason.label,
            "value": Figure(f"{reason.value:.3f}"),
            "weight": Figure(f"{reason.weight:.3f}"),
            "adds": Figure(f"{reason.contribution:+.3f}"),
        }
        for reason in explained
    ]
    others = [
        {"topic that often goes with it": other.label, "adds": Figure(f"{other.contribution:+.3f}")}
        for other in explained.related
    ]
    documents = [
        {"training document": document.id, "title": document.title, "adds": Figure(f"{document.contribution:+.3f}")}
        for document in explained.documents
    ]
    show(
        console,
        "text",
        None,
        Table(terms),
        f"Other terms add {explained.rest:+.3f}, and the bias {explained.bias:+.3f}.",
        f"The document gets or loses the topic by a rule: {explained.rule}." if explained.rule else "",
        Table(others),
        Table(documents),
        _counterfactual(explained),
    )
    print_text(console, "")


def _counterfactual(explained: "Explanation") -> str:
    if explained.without is None:
        return ""
    if not explained.without:
        return "The document keeps the tag as long as it has a known word."
    sentence = (
        "no smaller set does that" if explained.least else "maybe fewer words would do, but each of these is needed"
    )
    return f"With unknown words in place of {', '.join(explained.without)} the document loses the tag ({sentence})."


def _page(explained: "Iterable[tuple[Document | Record, list[Explanation]]]") -> Iterator[str]:
    from textcat.base.markup import html_text, page_head

    yield f"{page_head('Explanations', _STYLE)}<main>\n"
    for record, explanations in explained:
        yield f"<h1>{html_text(record.id)}</h1>\n"
        for explanation in explanations:
            yield f"<section><h2>{html_text(explanation.label)}</h2>\n{explanation.html(record)}\n"
            yield f"{explanation._repr_html_()}\n"
            yield f"<p>{html_text(_counterfactual(explanation))}</p></section>\n"
    yield "</main></body></html>\n"
