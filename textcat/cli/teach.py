"""The command `teach`: judge documents of an archive, on a page or in the terminal, and export the results."""

import re
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import urlencode

from typer import Argument, BadParameter, Option

from textcat.base.errors import TextcatError, install_hint
from textcat.base.journal import user_name
from textcat.cli import common
from textcat.cli.app import Interrupted
from textcat.cli.configuration import alternatives
from textcat.cli.serve import read_keys
from textcat.cli.terminal import new_stages, say

if TYPE_CHECKING:
    from textcat.corpus.documents import Corpus
    from textcat.reading import InputSettings
    from textcat.serving.http.keys import Keys
    from textcat.teaching.queues import Queue
    from textcat.teaching.session import Session

_POOL = "pool"  # name of the pool in the folder of a session


@alternatives("list_ terminal", "list_ export", "list_ out")
@common.with_options(read=common.input_settings)
def teach(
    inputs: Annotated[
        list[str],
        Argument(metavar="ARCHIVE...", help="Files, folders, patterns, URLs or a known corpus; or a session's folder."),
    ],
    read: "InputSettings",
    topic: Annotated[list[str] | None, Option(help="Name of the topic. May be repeated.")] = None,
    description: Annotated[str, Option(help="What a new topic is about, in words.")] = "",
    query: Annotated[str, Option(help="A search query that describes a new topic.")] = "",
    criteria: Annotated[
        Path | None, Option(metavar="FILE", help="Text of the topic's criteria, shown next to each document.")
    ] = None,
    exclusion_reason: Annotated[
        list[str] | None, Option(metavar="TEXT", help="A reason for the answer no, to choose from. May be repeated.")
    ] = None,
    example: Annotated[
        list[str] | None, Option(metavar="ID", help="Id of a document that has the new topic. May be repeated.")
    ] = None,
    model: Annotated[str, Option(metavar="MODEL:TOPIC", help="Start a new topic from a model's topic.")] = "",
    list_: Annotated[
        Path | None,
        Option(
            "--list",
            metavar="FILE",
            help="Review labels listed by `report --label-issues`; new topics start from --model FOLDER.",
        ),
    ] = None,
    session: Annotated[
        Path | None, Option(help="Folder of the session.", show_default="ARCHIVE's name and -session")
    ] = None,
    recipe: common.RecipeName = "active-learning",
    strategy: Annotated[
        str,
        Option(
            help="Query strategy: highest, uncertain or mixture.",
            show_default="the topic's, at first highest",
        ),
    ] = "",
    random_share: Annotated[
        float | None,
        Option(min=0, max=1, help="Share of questions drawn at random.", show_default="the topic's, at first .05"),
    ] = None,
    overlap: Annotated[
        float, Option(min=0, max=1, help="In a new session, the share of documents that every person is shown.")
    ] = 1.0,
    seed: Annotated[int, Option(min=0, help="Seed of the random questions of a new session.")] = 0,
    embeddings: Annotated[
        bool,
        Option("--embeddings", help="In a new session, rank by embeddings, too (needs the extra `embeddings`)."),
    ] = False,
    person: Annotated[
        str, Option(help="Name of the person who answers in the terminal.", show_default="the user's name")
    ] = "",
    terminal: Annotated[bool, Option("--terminal", help="Ask in the terminal: y, n, s, u, / and q.")] = False,
    export: Annotated[
        str,
        Option(help="Write labels, included, counts, corpus, model, audit, records or duplicates to --out, then exit."),
    ] = "",
    split: Annotated[
        list[int] | None,
        Option(min=0, metavar="POSITION", help="Split this record off its group of duplicates. May be repeated."),
    ] = None,
    out: Annotated[Path | None, Option(help="File or folder that --export writes.")] = None,
    learner: common.SessionsLearner = None,
    host: common.PageHost = "127.0.0.1",
    port: common.PagePort = 8000,
    keys: common.PageKeys = None,
    no_browser: common.NoBrowser = False,
    jobs: Annotated[
        int, Option("--jobs", "-j", callback=common.number_of_jobs, help="Processes that read; -1: one per core.")
    ] = -1,
) -> None:
    """Find the documents of a topic by active learning: answer yes or no to one document at a time.

    After every answer all documents are ranked again, and the most useful one is shown next. Each answer is saved at
    once: after Ctrl-C or a crash the same command resumes.
    """
    from textcat.teaching.entries import with_single_spaces
    from textcat.teaching.journal import is_session
    from textcat.teaching.session import QUERY

    topic = [*map(with_single_spaces, topic or ())]
    if bool(export) != (out is not None):
        raise BadParameter("--export KIND and --out FILE go together")
    new: dict[str, Any] = {"description": description, "query": query, "examples": tuple(example or ())}
    if list_ and (terminal or export):
        raise BadParameter("--list opens on the page: leave out --terminal and --export")
    if model and not (list_ and Path(model).is_dir()):
        new["model"] = _model_and_topic(model)
    shown = {"criteria": _text_in(criteria) if criteria else "", "exclusion_reasons": exclusion_reason or []}
    if any([*new.values(), *shown.values()]) and len(topic) != 1:
        raise BadParameter(
            "--description, --query, --example, --model, --criteria and --exclusion-reason describe one topic: give "
            "one --topic"
        )
    folder = session or _folder_of(inputs)
    if export:
        assert out is not None
        _export(folder, export, out, topic, jobs)
        return
    if split:
        _split_groups(folder, split, person or user_name())
        return
    # Detect errors before a large archive is read.
    accepted = None if terminal else checked_keys(host, keys, "answer in the terminal with --terminal")
    if terminal and not topic and not is_session(folder):
        raise _no_topic(folder)
    changeable = {"strategy": strategy, "random_share": random_share, **shown}
    QUERY.changed(strategy, random_share)
    with _kept(folder), _open_session(folder, inputs, read, recipe, seed, overlap, jobs, embeddings) as opened:
        for name in topic:
            _begin_topic(opened, name, new, changeable, person or user_name())
        if terminal:
            if not opened.topics():
                raise _no_topic(folder)
            from textcat.cli._teach_terminal import ask

            ask(opened, topic or opened.topics()[-1:], person or user_name())
        else:
            queues = _queues(opened, list_, None if "model" in new or not model else model) if list_ else []
            assert accepted is not None
            _serve(accepted, opened, host, port, queues, browser=not no_browser)
    say(f"every answer is saved; `textcat teach {quote(str(folder))}` resumes.")


def _folder_of(inputs: list[str]) -> Path:
    """Return the session's folder: the input, if it is a session; otherwise a name made from the first input's name.

    Raise TextcatError if the input is the folder of a session whose archive was not read to the end.
    """
    from textcat.teaching.journal import is_session

    first = Path(inputs[0])
    if len(inputs) == 1 and is_session(first):
        return first
    if (first / _POOL).is_dir():
        raise TextcatError(
            f"{first} has no session yet, because its archive was not read to the end: give the archive again."
        )
    name = re.sub(r"\W+", "-", first.name.split(".")[0]).strip("-")
    return Path(f"{name or 'archive'}-session")


def _no_topic(folder: Path) -> TextcatError:
    return TextcatError(f"The session {folder} has no topic yet: give one with --topic.")


def _model_and_topic(text: str) -> tuple[Path, str]:
    """Split FOLDER:TOPIC at the last colon that follows the path of an existing folder; return folder and topic."""
    parts = text.split(":")
    for n in range(len(parts) - 1, 0, -1):
        folder, topic = Path(":".join(parts[:n])), ":".join(parts[n:])
        if topic and folder.is_dir():
            return folder, topic
    raise BadParameter(f"--model takes FOLDER:TOPIC, with the folder of a trained model, not {text!r}")


@contextmanager
def _kept(folder: Path) -> Iterator[None]:
    try:
        yield
    except Interrupted:
        from textcat.teaching.journal import is_session

        if is_session(folder):
            raise Interrupted(f"every answer is saved; `textcat teach {quote(str(folder))}` resumes") from None
        raise Interrupted("the same command resumes reading") from None


@contextmanager
def _open_session(
    folder: Path,
    inputs: list[str],
    read: "InputSettings",
    recipe: str,
    seed: int,
    overlap: float,
    jobs: int,
    embeddings: bool,
) -> "Iterator[Session]":
    """Open the session in a folder, or start a new session there; close it after the ``with`` block.

    To start a session, the archive is read first; if reading was interrupted, it is resumed. If the pool of a session
    was removed, the archive is read again.
    """
    from textcat.teaching.journal import is_session
    from textcat.teaching.pool.index import INDEX, PoolError
    from textcat.teaching.session import Session

    begun, named = is_session(folder), [str(folder)] == [str(Path(path)) for path in inputs]
    try:
        opened = Session.open(folder) if begun else None
    except PoolError:
        if named or (folder / _POOL / INDEX).exists():
            raise
        opened = None
    if opened is None:
        from textcat.teaching.pool import build_pool
        from textcat.teaching.ranker import WITH_EMBEDDINGS

        pool = build_pool(
            _archive_or_corpus(inputs), folder / _POOL, recipe=recipe, settings=read, jobs=jobs, progress=new_stages()
        )
        settings = WITH_EMBEDDINGS if embeddings else None
        if begun:
            opened = Session.open(folder)
        else:
            opened = Session.create(folder, pool, seed=seed, overlap=overlap, settings=settings)
    elif not named:
        n = len(opened.view.pool)
        what = f"resuming {folder} with the {n:,} documents it was started with"
        say(f"{what}; changes of the archive since then are ignored.")
    with opened:
        yield opened


def _archive_or_corpus(inputs: list[str]) -> "list[str] | Corpus":
    """Return the inputs; if the only input is the name of a known corpus, return all parts of this corpus."""
    from textcat.corpus.cards import is_shipped
    from textcat.corpus.catalogue import open_corpus

    if len(inputs) == 1 and is_shipped(inputs[0]) and not Path(inputs[0]).exists():
        return open_corpus(inputs[0])
    return inputs


def _queues(session: "Session", path: Path, model: str | None) -> "list[Queue]":
    """Read a file of labels to review, and return a queue (a list of documents to review) for each topic.

    Topics that the session lacks are added to it.

    If `model` is the folder of a model, added topics start with the model's weights.
    """
    from textcat.model import storage
    from textcat.teaching.queues import read_queues

    queues = read_queues(path, session.view.pool)
    tagger = storage.load(Path(model)) if model else None
    for queue in queues:
        if queue.topic not in session.topics():
            session.add_topic(queue.topic, model=(tagger, queue.topic) if tagger else None)
    return queues


def _text_in(file: Path) -> str:
    from textcat.reading import text_of_file

    try:
        return "\n\n".join(filter(None, text_of_file(file.name, file.read_bytes()).values())).strip()
    except OSError as error:
        raise TextcatError(f"{file} cannot be read ({error.strerror}): give --criteria a file with text.") from error


def _begin_topic(session: "Session", name: str, new: dict[str, Any], changeable: dict[str, Any], person: str) -> None:
    """Add a topic to a session, or resume the topic if the session has it already.

    `new` says how a topic starts: description, query, examples and model. `changeable` has settings such as strategy
    and criteria, which also apply to a resumed topic. Raise TextcatError if the session's topic was started
    differently.
    """
    changeable = {key: value for key, value in changeable.items() if value not in ("", None, [])}
    if name not in session.topics():
        session.add_topic(name, **new, **changeable, person=person)
        return
    about = session.about(name)
    model = about.get("model", {})
    before = about | {"examples": {*about["examples"]}, "model": (model.get("name"), model.get("topic"))}
    folder, topic = new.get("model", (None, None))
    now = new | {"examples": {*new["examples"]}, "model": folder and (str(folder), topic)}
    if any(value and value != before[key] for key, value in now.items()):
        raise TextcatError(
            f"The session has a topic {name!r} already, which was started with another --description, --query, "
            "--example or --model: leave them out to resume it, or name another topic."
        )
    if any(about.get(key) != value for key, value in changeable.items()):
        session.change_topic(name, **changeable)


def _export(folder: Path, kind: str, out: Path, topics: list[str] | None, jobs: int) -> None:
    from textcat.teaching.export import EXPORTS
    from textcat.teaching.session import Session

    if kind not in EXPORTS:
        raise BadParameter(f"--export takes one of {', '.join(EXPORTS)}, not {kind!r}")
    with Session.open(folder, read_only=True) as session:
        options: dict[str, Any] = {"n_jobs": jobs} if kind == "model" else {}
        EXPORTS[kind](session.view, out, topics or None, **options)
    say(f"wrote {out}")


def _split_groups(folder: Path, positions: list[int], person: str) -> None:
    """Remove records from their groups of near-duplicates; each becomes a group of its own."""
    from textcat.teaching.session import Session

    with Session.open(folder) as session:
        for position in positions:
            session.split([position], person)
        say(f"{len(positions):,} split off; {len(session.view.groups):,} documents now.")


def checked_keys(host: str, keys: Path | None, otherwise: str) -> "Keys":
    """Return the keys that open the page; raise TextcatError if a package to serve it is missing.

    `otherwise` is the part of the message about an alternative without a page.
    """
    try:
        import fastapi  # noqa: F401

        import textcat.serving.people  # noqa: F401
    except ImportError as error:
        raise TextcatError(f"The page needs {error.name}: {install_hint('serve')}, or {otherwise}.") from error
    return read_keys(keys, host, "answer")


def _serve(accepted: "Keys", session: "Session", host: str, port: int, queues: "list[Queue]", *, browser: bool) -> None:
    from textcat.serving import teaching as page

    def show(url: str) -> None:
        say(f"the page is at {url}; Ctrl-C stops it.")

    path = "#" + urlencode({"view": "judge", "topic": queues[0].topic, "list": queues[0].name}) if queues else ""
    stopped_by = page.serve(
        session, host, port, queues=queues, keys=accepted, open_browser=browser, path=path, on_start=show
    )
    if stopped_by == signal.SIGINT:
        raise Interrupted
