"""The command line. Each file defines a group of commands; this one puts them together."""

import typer

from textcat.cli import (
    compare,
    corpora,
    doctor,
    duplicates,
    evaluate,
    explain,
    learn,
    models,
    monitor,
    promote,
    report,
    review,
    serve,
    share,
    simulate,
    tag,
    teach,
    train,
    trends,
    tune,
)
from textcat.cli.app import Command, app, main

__all__ = ["app", "main"]

# The order in which `textcat --help` lists them.
for _command in (
    *(train.train, learn.learn, evaluate.evaluate, compare.compare, report.report, report.card),
    *(tag.tag, tag.merge, tag.diff, trends.trends, monitor.monitor, duplicates.duplicates),
    *(explain.explain, models.topics, models.show),
    *(serve.serve, promote.promote, promote.rollback, teach.teach, review.review, simulate.simulate),
    *(share.push, share.pull),
    *(tune.tune, tune.recipes, corpora.reproduce, doctor.doctor),
):
    # Typer keeps the line breaks of a docstring's later paragraphs, whatever the width of the terminal.
    _help = "\n\n".join(" ".join(part.split()) for part in (_command.__doc__ or "").split("\n\n"))
    app.command(cls=Command, help=_help)(_command)

_corpora = typer.Typer(invoke_without_command=True, callback=corpora.corpora)
app.add_typer(_corpora, name="corpora")
_corpora.command(cls=Command)(corpora.fetch)
_corpora.command(cls=Command)(corpora.show)
