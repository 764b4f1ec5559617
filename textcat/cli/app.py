"""How the program starts and ends: what it makes of mistakes, warnings, Ctrl-C, and streams that are closed."""

import gc
import io
import os
import re
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from typer import BadParameter, Option
from typer.core import TyperCommand, TyperGroup

from textcat.errors import TextcatError

# What wrong usage raises, in every version of typer: those that bring their own click and those that need it installed.
_UsageError: Any = BadParameter.__bases__[0]

# Options of versions before 0.1, which are settings of the learner now.
_FORMER = "tau tau-neg tau-pos kappa eta beta epsilon zeta b alpha delta rho lambda mini-epochs max-epochs seed"


class _WithoutPydantic:
    """A command of typer, most of whose values are checked without importing pydantic, which takes longer than to tag.

    It rests on how typer 0.29 checks values; other versions do that by themselves.
    """

    def parse_args(self, ctx: Any, args: list[str]) -> Any:
        command: Any = super()
        for param in command.get_params(ctx):
            if getattr(param, "_runtime_param", self) is None:
                param._runtime_param = _Check()
        return command.parse_args(ctx, args)


class Command(_WithoutPydantic, TyperCommand):
    """A command."""


class _Group(_WithoutPydantic, TyperGroup):
    """The commands."""


class _Check:
    """What turns a value as given into the parameter's; what is no text, path or number it leaves to typer."""

    def coerce(self, value: Any, param: Any, ctx: Any) -> Any:
        kind, info = param.type_descriptor.annotation, param.type_descriptor.parameter_info
        several = param.multiple or param.nargs == -1
        if value is None:
            return () if several else None
        if kind == list[str] and several and not isinstance(value, str):
            return [*value]
        if type(value) is kind and kind in (str, int, float):  # a number is a default: those of users are texts yet
            return value
        if kind is int and info.min is info.max is None and re.fullmatch("-?[0-9]{1,9}", value):
            return int(value)
        if kind is Path:
            from typer._param_types import coerce_cli_path

            return coerce_cli_path(Path(value), info, path_type=Path, param=param, ctx=ctx)
        param._runtime_param = None
        return param.get_runtime_param().coerce(value, param=param, ctx=ctx)


_HELP = {"help_option_names": ["-h", "--help"]}
app = typer.Typer(cls=_Group, no_args_is_help=True, pretty_exceptions_enable=False, context_settings=_HELP)


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


class Interrupted(BaseException):
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
                gc.freeze()  # so that what is left is not looked through for garbage at exit
    except TextcatError as error:
        _fail(str(error), 1)
    except _UsageError as error:
        _fail_as_wrong_usage(error)
    except Interrupted as end:
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
    """Turn Ctrl-C into `Interrupted`, unless whoever started us wants it ignored."""

    def interrupt(*_: Any) -> None:
        raise Interrupted

    before = signal.getsignal(signal.SIGINT)
    if before is signal.default_int_handler:
        signal.signal(signal.SIGINT, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
