"""Run the command line; print users' errors, warnings and Ctrl-C as sentences; handle closed standard streams."""

import gc
import io
import math
import os
import re
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from copy import copy
from pathlib import Path
from typing import Annotated, Any

import typer
from typer import BadParameter, Context, Option
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command_name

from textcat.base.errors import TextcatError
from textcat.cli import terminal
from textcat.cli.configuration import drop_overridden, name_variables, origin_of, read_configuration

# The base class of all usage errors, whether typer brings its own click or uses an installed one.
_UsageError: Any = BadParameter.__bases__[0]

_SECONDS_TO_END = 3  # after Ctrl-C: from then on, another Ctrl-C exits at once


class _WithoutPydantic:
    """Base class of commands that check most values without pydantic, whose import takes longer than tagging a text.

    This depends on how typer 0.29 checks values; with other versions, typer checks all values itself.
    """

    def parse_args(self, ctx: Any, args: list[str]) -> Any:
        command: Any = super()
        for param in command.get_params(ctx):
            if getattr(param, "_runtime_param", self) is None:
                param._runtime_param = _Check()
        rest = command.parse_args(ctx, args)
        for param in command.get_params(ctx):
            value = ctx.params.get(param.name)
            if isinstance(value, float) and not math.isfinite(value):
                raise BadParameter(f"{value} is not a number that can be used: give a finite one", ctx=ctx, param=param)
        return rest


class _PlainHelp:
    """Base class of commands whose help has no markup: typer would leave out what stands in square brackets."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        formatting: Any = super(_PlainHelp, _with_escaped_help(self))
        formatting.format_help(ctx, formatter)


def _with_escaped_help(part: Any) -> Any:
    """Copy a command or parameter; escape square brackets in its help, and in that of its parameters or subcommands."""
    from rich.markup import escape

    escaped = copy(part)
    escaped.help = escape(part.help or "")
    if hasattr(part, "params"):
        escaped.params = [_with_escaped_help(param) for param in part.params]
    if hasattr(part, "commands"):
        escaped.commands = {name: _with_escaped_help(command) for name, command in part.commands.items()}
    return escaped


class Command(_WithoutPydantic, _PlainHelp, TyperCommand):
    """A command of textcat, whose options environment variables can set, too; `--help` does not list the variables."""

    def make_context(self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any) -> Any:
        """Return the context of a call; raise a TextcatError if an environment variable names an unknown option."""
        path = parent.command_path.split()[1:] if parent else []
        name_variables(self, [*path, str(info_name)])
        return super().make_context(info_name, args, parent=parent, **extra)

    def parse_args(self, ctx: Any, args: list[str]) -> Any:
        """Read the options of a call; of options that exclude each other, keep those of the highest precedence."""
        rest = super().parse_args(ctx, args)
        drop_overridden(ctx)
        return rest


class _Group(_WithoutPydantic, _PlainHelp, TyperGroup):
    """The group of all commands."""


class _Check:
    """Convert the value of a parameter to text, path or number; leave all other types to typer."""

    def coerce(self, value: Any, param: Any, ctx: Any) -> Any:
        kind, info = param.type_descriptor.annotation, param.type_descriptor.parameter_info
        several = param.multiple or param.nargs == -1
        if value is None:
            return () if several else None
        if kind == list[str] and several and not isinstance(value, str):
            return [*value]
        if type(value) is kind and kind in (str, int, float):  # a number is a default: users' values arrive as text
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
    ctx: Context,
    config: Annotated[
        Path | None,
        Option(envvar="TEXTCAT_CONFIG", show_envvar=False, help="TOML file of options, with a table per command."),
    ] = None,
    version: Annotated[
        bool, Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Train, evaluate and use rankers of documents by topic."""
    if config is not None:
        ctx.default_map = read_configuration(config, ctx.command)


class Interrupted(BaseException):
    """Raised at Ctrl-C, with a message about what to do next.

    It is not a KeyboardInterrupt, because typer would catch that.
    """


def main() -> None:
    """Run the command line; print a user's mistake as a sentence, and a bug with its traceback."""
    _replace_closed_streams()
    try:
        with _warnings_as_sentences(), _interruptible():
            try:
                code = _app_for(sys.argv[1:])(prog_name="textcat", standalone_mode=False)
            finally:
                sys.stdout.flush()  # at exit, the error of a full disk or a closed pipe could no longer be reported
                gc.freeze()  # skip garbage collection at exit
    except TextcatError as error:
        _fail(str(error), 1)
    except _UsageError as error:
        _fail_as_wrong_usage(error)
    except Interrupted as end:
        _fail(f"interrupted; {str(end) or 'no file was left half written'}.", 130)
    except BrokenPipeError:  # the reader has closed the pipe, as `| head` does
        _discard_output()
        sys.exit(1)
    except UnicodeEncodeError as error:
        if error.encoding != "ascii" or sys.getfilesystemencoding() != "ascii":
            raise
        _fail("File names are limited to ASCII here: leave out PYTHONUTF8=0, or set LC_ALL to C.UTF-8.", 1)
    except OSError as error:
        _discard_output()
        _fail(f"{error.strerror or error}{f': {error.filename}' if error.filename else ''}.", 1)
    sys.exit(code if isinstance(code, int) else 0)


def _app_for(arguments: Sequence[str]) -> typer.Typer:
    """Return the app with only the command that the first argument names: typer takes 20 ms to set up all commands.

    Return the whole app if the first argument is no command, or if a file of options has tables for all commands.
    """
    commands = {get_command_name(info.callback.__name__): info for info in app.registered_commands if info.callback}
    called = commands.get(arguments[0]) if arguments else None
    if called is None or "TEXTCAT_CONFIG" in os.environ:
        return app
    alone = copy(app)
    alone.registered_commands, alone.registered_groups = [called], []
    return alone


def _discard_output() -> None:
    """Discard standard output that cannot be written; otherwise, Python would retry at exit, and report it again."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _replace_closed_streams() -> None:
    """If standard error is closed (`sys.stderr` is None), replace it by a stream that discards everything.

    If standard output is closed, print an error and exit.
    """
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115
    if sys.stdout is None:
        _fail("standard output is closed: send it to a file, a pipe or /dev/null.", 1)


def _fail(message: str, code: int) -> None:
    terminal.say(message)
    sys.exit(code)


def _fail_as_wrong_usage(error: Any) -> None:
    """Print the error and the usage in one line, and exit with code 2.

    If no command was given, typer has printed the help already, and nothing more is printed.
    """
    message = " ".join(error.format_message().split())
    if message:
        origin = origin_of(error)
        message = message.rstrip(".") + origin if origin else message
        usage = " ".join(error.ctx.get_usage().split()) if error.ctx else "Usage: textcat"
        _fail(f"{message}{'' if message.endswith(('.', '?', ')')) else '.'} {usage} (-h explains)", 2)
    sys.exit(2)


@contextmanager
def _warnings_as_sentences() -> Iterator[None]:
    """In a ``with`` block, print the library's warnings as sentences.

    Characters that the output cannot encode are printed as escapes.
    """
    import logging
    import warnings

    class Handler(logging.Handler):  # a StreamHandler would keep the present stream even if standard error is replaced
        def emit(self, record: logging.LogRecord) -> None:
            show_warning(record.getMessage())

    def show_warning(message: Any, *_: Any, **__: Any) -> None:
        terminal.say(f"warning: {message}")

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
    """In a ``with`` block, raise `Interrupted` at Ctrl-C, unless the program was started with Ctrl-C ignored.

    A second Ctrl-C is ignored while workers end and files are removed; if that takes long, it ends the process.
    """
    first: list[float] = []

    def interrupt(*_: Any) -> None:
        first.append(time.monotonic())
        if len(first) == 1:
            raise Interrupted
        if first[-1] - first[0] > _SECONDS_TO_END:
            os._exit(130)

    before = signal.getsignal(signal.SIGINT)
    if before in (signal.SIG_DFL, signal.default_int_handler):
        signal.signal(signal.SIGINT, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
