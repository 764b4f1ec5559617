"""What all commands share: their options, how a corpus is opened, and how the program starts and ends."""

import functools
import inspect
import io
import os
import signal
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer
from typer import Argument, BadParameter, Option

from textcat.errors import TextcatError

if TYPE_CHECKING:
    from rich.console import Console

    from textcat.documents import Corpus
    from textcat.progress import Stages
    from textcat.reading.records import InputSettings

Command = TypeVar("Command", bound=Callable[..., Any])

# What wrong usage raises, in every version of typer: those that bring their own click and those that need it installed.
_UsageError: Any = BadParameter.__bases__[0]

# The names of the learners, without the libraries that they need; a test compares them with the real ones.
LEARNERS = ("alma", "cramma", "l-margitron", "micra", "pa", "pam", "paum", "pdm", "romma", "t-margitron")

# Options of versions before 0.1, which are settings of the learner now.
_FORMER = "tau tau-neg tau-pos kappa eta beta epsilon zeta b alpha delta rho lambda mini-epochs max-epochs seed"

_HELP = {"help_option_names": ["-h", "--help"]}
app = typer.Typer(no_args_is_help=True, pretty_exceptions_enable=False, context_settings=_HELP)


def _print_version(wanted: bool) -> None:
    if wanted:
        import textcat

        typer.echo(f"textcat {textcat.__version__}")
        raise typer.Exit


@app.callback()
def textcat(
    version: Annotated[
        bool, Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Train, evaluate and use rankers of documents by topic."""


# --- options that several commands have ------------------------------------------------------------------------------


def _complete_shipped(folder: str) -> Callable[[str], list[str]]:
    def complete(incomplete: str) -> list[str]:
        from textcat.files import shipped

        return sorted(path.stem for path in shipped(folder).glob("*.toml") if path.stem.startswith(incomplete))

    return complete


def number_of_jobs(jobs: int) -> int:
    """Return the number of jobs; wrong usage if no work can be shared among so many."""
    if jobs < 1 and jobs != -1:
        raise BadParameter(f"{jobs} jobs do nothing; give 1 or more, or -1 for one a core")
    return jobs


complete_corpus, complete_recipe = _complete_shipped("corpora"), _complete_shipped("models")
CorpusName = Annotated[
    str,
    Argument(
        help="Name of a corpus, path of a card (.toml), or folder or archive of documents.",
        autocompletion=complete_corpus,
    ),
]
ModelFolder = Annotated[Path, Argument(help="Folder of a trained model.")]
CorpusDir = Annotated[Path | None, Option(help="Folder in which corpora are looked for first.")]
Jobs = Annotated[
    int,
    Option("--jobs", "-j", callback=number_of_jobs, help="Blocks of topics trained at the same time; -1: one a core."),
]
RecipeName = Annotated[
    str, Option(help="Name of a shipped recipe, or path of a recipe file.", autocompletion=complete_recipe)
]
Learner = Annotated[
    str | None,
    Option(
        help="Train by another learner than the recipe's.",
        autocompletion=lambda incomplete: [name for name in LEARNERS if name.startswith(incomplete)],
    ),
]
Bands = Annotated[
    list[str] | None,
    Option("--band", help="Band to average over: ALL, TOPn, LASTn, 10-50 or name=topic,topic. May be repeated."),
]
AsJson = Annotated[bool, Option("--json", help="Print JSON.")]
LabelledOnly = Annotated[
    bool, Option("--labelled-only", help="Leave out test documents that have none of the model's topics.")
]
PerTopic = Annotated[bool, Option("--topics", help="Print a row per topic, too.")]


def with_options(**groups: Callable[..., Any]) -> Callable[[Command], Command]:
    """Return a decorator of commands, and of such functions: it replaces parameters by groups of options.

    By the name of a parameter, a group is a function whose own parameters are options; what it returns for them is the
    command's argument.
    """
    options = {name: inspect.signature(group).parameters for name, group in groups.items()}

    def decorate(command: Command) -> Command:
        @functools.wraps(command)
        def run(**values: Any) -> Any:
            for name, group in groups.items():
                values[name] = group(**{option: values.pop(option) for option in options[name]})
            return command(**values)

        parameters = [
            option.replace(kind=inspect.Parameter.KEYWORD_ONLY)
            for name, parameter in inspect.signature(command).parameters.items()
            for option in (options[name].values() if name in groups else [parameter])
        ]
        run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
        return run  # type: ignore[return-value]

    return decorate


def _input(*names: str, **settings: Any) -> Any:
    return Option(*names, rich_help_panel="Input", **settings)


def input_settings(
    format_: Annotated[str, _input("--format", help="Format of all inputs, if name and content do not say.")] = "",
    text_field: Annotated[
        list[str] | None,
        _input(help="Field or column of the text; several are joined in order.", show_default="text, or else body"),
    ] = None,
    id_field: Annotated[str, _input(help="Field or column of the id.")] = "id",
    encoding: Annotated[
        str, _input(help="Encoding of the inputs.", show_default="that of the format, mostly utf-8")
    ] = "",
    quote: Annotated[str, _input(help="Quotes in CSV and TSV: double, or none where they are characters.")] = "double",
    lines: Annotated[bool, _input("--lines", help="Read a document a line from text files.")] = False,
) -> "InputSettings":
    """Return how inputs are read."""
    from textcat.reading.records import InputSettings

    if quote not in ("double", "none"):
        raise BadParameter(f"--quote is 'double' or 'none', not {quote!r}")
    settings = InputSettings(format_, id_field=id_field, encoding=encoding, quotes=quote == "double", lines=lines)
    return settings._replace(text_fields=tuple(text_field)) if text_field else settings


@with_options(settings=input_settings)
def corpus_reader(
    settings: "InputSettings",
    topics_field: Annotated[str, _input(help="Field or column of the topics.")] = "topics",
    topics_separator: Annotated[
        str, _input(help="What stands between topics in one text, such as ';'.", show_default="a text is one topic")
    ] = "",
    split_field: Annotated[str, _input(help="Field or column of the part: train, test or unused.")] = "split",
    test_size: Annotated[
        float | None,
        _input(min=0, help="Set documents aside for test: a fraction or a number.", show_default="the corpus' own"),
    ] = None,
    test_seed: Annotated[int, _input(min=0, help="Another number sets other documents aside.")] = 0,
    corpus_dir: CorpusDir = None,
) -> Callable[..., "Corpus"]:
    """Return a function that opens a corpus, given the stages of the command and its name, path or `Corpus.origin`."""
    from textcat.reading.records import InputSettings

    settings = settings._replace(topics_field=topics_field, topics_separator=topics_separator, split_field=split_field)
    asked = None if settings == InputSettings() else settings

    def open_one(corpus: "str | Mapping[str, Any]", stages: "Stages") -> "Corpus":
        from textcat.corpus.catalogue import open_corpus, reopen_corpus

        with stages.stage("read") as bar:
            if isinstance(corpus, str):
                return open_corpus(
                    corpus, corpus_dir, progress=bar, settings=asked, test_size=test_size, seed=test_seed
                )
            if asked or test_size is not None or test_seed:
                raise BadParameter(
                    "options of input go with a corpus that is named: the model's own is read as for its training"
                )
            return reopen_corpus(corpus, corpus_dir, bar)

    return open_one


def scheduler_address(
    backend: Annotated[
        str, Option(help="Who does the work: processes of this machine (local), or a Dask cluster (dask).")
    ] = "local",
    scheduler: Annotated[str, Option(help="Address of the Dask cluster's scheduler, such as tcp://host:8786.")] = "",
) -> str:
    """Return the address of the scheduler, "" if this machine does the work."""
    if backend not in ("local", "dask"):
        raise BadParameter(f"--backend is 'local' or 'dask', not {backend!r}")
    if (backend == "dask") != bool(scheduler):
        raise BadParameter("--backend dask and --scheduler ADDRESS go together")
    return scheduler


# --- where commands print --------------------------------------------------------------------------------------------


def console(*, stderr: bool = False) -> "Console":
    """Return standard output, or standard error, as a console."""
    from rich.console import Console

    return Console(stderr=stderr, highlight=False)


def new_stages() -> "Stages":
    """Return stages that are drawn on standard error while they run."""
    from textcat.progress import Stages

    return Stages(console(stderr=True))


# --- how the program starts and ends ---------------------------------------------------------------------------------


class _Interrupted(BaseException):
    """Ctrl-C, and what that means for the user; unlike KeyboardInterrupt, typer does not catch it."""


def main() -> None:
    """Run the command line; a user's mistake is printed as a sentence, a bug shows its traceback."""
    _replace_closed_streams()
    try:
        with _warnings_as_sentences(), _interruptible():
            try:
                code = app(prog_name="textcat", standalone_mode=False)
            finally:
                # Here, a full disk or a reader that has gone can still be reported; at exit it could not.
                sys.stdout.flush()
    except TextcatError as error:
        _fail(str(error), 1)
    except _UsageError as error:
        _fail_as_wrong_usage(error)
    except _Interrupted as end:
        _fail(f"interrupted; {str(end) or 'no file was left half written'}.", 130)
    except BrokenPipeError:
        # The reader of our output has gone (as with `| head`); the interpreter must not flush to it again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except OSError as error:
        _fail(f"{error.strerror or error}{f': {error.filename}' if error.filename else ''}.", 1)
    sys.exit(code if isinstance(code, int) else 0)


def _replace_closed_streams() -> None:
    """Refuse to run where results would be lost; Python has None for a stream that was closed by the caller."""
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115
    if sys.stdout is None:
        _fail("standard output is closed: send it to a file, a pipe or /dev/null.", 1)


def _fail(message: str, code: int) -> None:
    typer.echo(f"textcat: {message}", err=True)
    sys.exit(code)


def _fail_as_wrong_usage(error: Any) -> None:
    """Print in one line what is wrong and how the command is used; without any command, typer has printed the help."""
    message, option = " ".join(error.format_message().split()), getattr(error, "option_name", "").removeprefix("--")
    if option in _FORMER.split():
        field = "lambda_" if option == "lambda" else option.replace("-", "_")
        message = f"--{option} is now a setting of the recipe: --set learner.{field}=VALUE."
    if message:
        usage = " ".join(error.ctx.get_usage().split()) if error.ctx else "Usage: textcat"
        _fail(f"{message}{'' if message.endswith(('.', '?', ')')) else '.'} {usage} (-h explains)", 2)
    sys.exit(2)


@contextmanager
def _warnings_as_sentences() -> Iterator[None]:
    """Print what the library warns of as sentences, and never fail for a character that the output cannot show."""
    import logging
    import warnings

    class Handler(logging.Handler):  # a StreamHandler would keep the stream that standard error is now
        def emit(self, record: logging.LogRecord) -> None:
            show_warning(record.getMessage())

    def show_warning(message: Any, *_: Any, **__: Any) -> None:
        typer.echo(f"textcat: warning: {message}", err=True)

    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    log, handler = logging.getLogger("textcat"), Handler(logging.WARNING)
    log.addHandler(handler)
    try:
        with warnings.catch_warnings():
            warnings.showwarning = show_warning
            yield
    finally:
        log.removeHandler(handler)


@contextmanager
def _interruptible() -> Iterator[None]:
    """Turn Ctrl-C into `_Interrupted`, unless whoever started us wants it ignored."""

    def interrupt(*_: Any) -> None:
        raise _Interrupted

    before = signal.getsignal(signal.SIGINT)
    if before is signal.default_int_handler:
        signal.signal(signal.SIGINT, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
