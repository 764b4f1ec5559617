"""The commands `promote` and `rollback`, which replace the model in use by a new one, and restore it."""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated

from typer import Argument, BadParameter, Option

from textcat.cli import common, compare, terminal

if TYPE_CHECKING:
    from rich.console import Console

    from textcat.evaluation.significance import GateResult
    from textcat.model.promotion import Promotion


@common.with_options(read=common.corpus_reader)
def promote(
    new: Annotated[Path, Argument(help="Folder of the new model, which is not changed.")],
    served: Annotated[Path, Argument(help="Folder of the model in use, to be replaced by a copy of the new one.")],
    read: common.CorpusReader,
    corpus: Annotated[
        str | None,
        Option(
            help="The corpus to measure both on.", show_default="that of SERVED", autocompletion=common.complete_corpus
        ),
    ] = None,
    fail_if: common.FailIf = None,
    strict: common.Strict = False,
    form: common.Form = "text",
    bootstrap: Annotated[int, Option(min=100, help="Resamples of the documents, which decide conditions.")] = 1000,
) -> None:
    """Replace the model in use by a new one, atomically, unless the new model fails a condition (exit code 4).

    At any time, the folder has either the old model or the new one. The old model is kept for `textcat rollback`, and a
    line is added to the journal SERVED.promotions.jsonl.
    """
    from textcat.model import storage
    from textcat.model.compare import read_gates
    from textcat.model.promotion import GateError, promote

    if (corpus or strict) and not fail_if:
        raise BadParameter("--corpus and --strict are of --fail-if: name a condition")
    stages, documents = terminal.new_stages(), None
    if fail_if:
        tagger = storage.load(served, with_rules=False)
        read_gates(tagger, fail_if)  # mistakes in conditions are reported before the corpus is read
        documents = common.test_corpus(read, corpus, tagger, stages, labelled_only=False)
    try:
        promotion = promote(
            new, served, documents, fail_if=fail_if or (), strict=strict, n_resamples=bootstrap, stages=stages
        )
    except GateError as error:
        show_promotion(terminal.console(), served, None, error.gates, form)
        compare.exit_if_failed(error.gates)
        return
    show_promotion(terminal.console(), served, promotion, promotion.gates, form)


def rollback(served: Annotated[Path, Argument(help="Folder of the model in use.")], form: common.Form = "text") -> None:
    """Restore the model that the last `promote` or `learn` has replaced, atomically, and add a line to the journal."""
    from textcat.model.promotion import rollback

    show_promotion(terminal.console(), served, rollback(served), (), form)


def show_promotion(
    console: "Console", served: Path, promotion: "Promotion | None", gates: "Sequence[GateResult]", form: str
) -> None:
    """Print the conditions of a promotion, and the model in use now; `promotion` None: it did not change."""
    from textcat.cli.printing import Table, show
    from textcat.model.manifest import model_id

    said = f"{served} stays as it is."
    if promotion is not None:
        replaced = promotion.replaced and promotion.replaced != promotion.model
        said = f"{served} has model {model_id(promotion.model)} now"
        said += f", in place of {model_id(str(promotion.replaced))}." if replaced else "."
        if replaced and promotion.action == "promote":
            said += f" `textcat rollback {quote(str(served))}` restores that."
    facts = {"gates": [asdict(gate) for gate in gates]} if promotion is None else asdict(promotion)
    show(console, form, {"promoted": promotion is not None, **facts}, Table(compare.gate_rows(gates)), said)
