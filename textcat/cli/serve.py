"""The command that serves models over HTTP."""

import signal
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Argument, BadParameter, Option

from textcat.base.errors import TextcatError, install_hint
from textcat.cli import terminal
from textcat.cli.app import Interrupted

if TYPE_CHECKING:
    from textcat.corpus.corrections import Corrections
    from textcat.serving.annif import Labels
    from textcat.serving.http.keys import Keys


def serve(
    models: Annotated[
        list[str] | None, Argument(help="Folders of trained models; NAME=FOLDER gives a model another name.")
    ] = None,
    host: Annotated[str, Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, Option(min=0, max=65535, help="Port to listen on; 0: any free port.")] = 8000,
    unix_socket: Annotated[
        Path | None, Option(help="Unix socket to listen on, in place of an address and a port.")
    ] = None,
    workers: Annotated[int, Option(help="Processes that share the socket and the models; -1: one per core.")] = -1,
    keys: Annotated[Path | None, Option(help="File of API keys; with it, requests need a key.")] = None,
    new_key: Annotated[
        str, Option(metavar="NAME", help="Print a new key and its line for the file; do not serve.")
    ] = "",
    cors: Annotated[
        list[str] | None, Option(metavar="ORIGIN", help="Allow requests from pages of this origin. May be repeated.")
    ] = None,
    allow_host: Annotated[
        list[str] | None,
        Option(metavar="NAME", help="Allow requests to this host name, besides addresses. May be repeated; '*': any."),
    ] = None,
    trust_proxy: Annotated[
        bool, Option("--trust-proxy", help="Take clients' addresses from the proxy's X-Forwarded-For or Forwarded.")
    ] = False,
    vocabulary: Annotated[
        Path | None, Option(help="File with names of topics, which Annif's clients get as labels.")
    ] = None,
    vocabulary_language: Annotated[
        str, Option(help="Language of these labels unless a client names another.", show_default="that of the model")
    ] = "",
    main_text: Annotated[
        bool, Option("--main-text", help="Read the main text of web pages sent as files, without navigation.")
    ] = False,
    corrections: Annotated[
        Path | None,
        Option(
            metavar="FOLDER", help="Take corrections of tags, and add them to this folder for `textcat learn --from`."
        ),
    ] = None,
    shadow: Annotated[
        str,
        Option(
            help="Folder of a new model that tags the same documents, unseen by clients, at idle priority; "
            "NAME=FOLDER if several models are served. /metrics counts where its tags differ."
        ),
    ] = "",
    shadow_sample: Annotated[
        Path | None, Option(help="File for a sample of the documents whose tags differ, as JSON Lines.")
    ] = None,
    monitor: Annotated[
        str,
        Option(
            help="Folder of tags by the model; NAME=FOLDER if several models are served. /metrics has alarms for "
            "topics that clients' documents get more or less often than those of the folder."
        ),
    ] = "",
    max_bytes: Annotated[int, Option(min=1, help="Maximum bytes of a request's body.")] = 10_000_000,
    max_documents: Annotated[int, Option(min=1, help="Maximum documents in a request.")] = 5000,
    timeout: Annotated[float, Option(min=0.1, max=86400, help="Maximum seconds for a request.")] = 30.0,
    max_concurrency: Annotated[
        int, Option(min=1, help="Maximum requests that a process handles at the same time.")
    ] = 512,
    rate_limit: Annotated[
        float, Option(min=0, help="Maximum requests per second from one key or address; 0: no limit.")
    ] = 0.0,
    log: Annotated[
        str, Option(help="Log as JSON lines on standard output: requests (and events), or events only.")
    ] = "requests",
) -> None:
    """Serve models over HTTP: an API, a page, health and metrics.

    When a model's folder is replaced, the new model is loaded without losing a request. SIGTERM and Ctrl-C let running
    requests end; SIGHUP reads the keys and models again. If systemd passes a socket, the server listens there instead
    of at the address.
    """
    if new_key:
        _print_new_key(new_key)
        return
    if not models:
        raise BadParameter("name the folder of a model; `textcat train CORPUS --out FOLDER` makes one")
    if workers < 1 and workers != -1:
        raise BadParameter(f"--workers is {workers}; give 1 or more, or -1 for one per core")
    if vocabulary_language and not vocabulary:
        raise BadParameter("--vocabulary-language is that of the labels in --vocabulary: give both")
    if shadow_sample and not shadow:
        raise BadParameter("--shadow-sample is of --shadow: name the folder of a model")
    if log not in ("requests", "events"):
        raise BadParameter(f"--log is {log!r}; give 'requests' or 'events'")
    try:
        import fastapi  # noqa: F401

        from textcat.serving.server import serve_models
    except ImportError as error:
        raise TextcatError(f"Serving needs {error.name}: {install_hint('serve')}.") from error
    if main_text:
        from textcat.reading.formats.main_text import check_extractor

        check_extractor()
    from textcat.base.progress import cores
    from textcat.serving.http.addresses import Hosts
    from textcat.serving.http.limits import Limits
    from textcat.serving.http.log import Log
    from textcat.serving.http.processes import host_of, inherited_socket, listen, listen_at
    from textcat.serving.store import folder_for_model, named_folders

    folders, n = named_folders(models), cores() if workers == -1 else workers
    passed = inherited_socket()
    if passed or unix_socket:
        host = host_of(passed) if passed else "localhost"
    stopped_by = serve_models(
        folders,
        lambda: passed or (listen_at(unix_socket) if unix_socket else listen(host, port)),
        n,
        lambda url: terminal.say(f"serving {', '.join(folders)} at {url} by {n} processes; Ctrl-C stops."),
        Limits(max_bytes, max_documents, timeout, max_concurrency, rate_limit),
        keys=read_keys(keys, host, "use the server without a key"),
        origins=tuple(cors or ()),
        hosts=Hosts((host, *(allow_host or ()))),
        trust_proxy=trust_proxy,
        labels=_labels_of(vocabulary, vocabulary_language, next(iter(folders.values()))),
        main_text=main_text,
        corrections=None if corrections is None else _open_corrections(corrections),
        shadow=folder_for_model(shadow, [*folders]) if shadow else None,
        shadow_sample=shadow_sample,
        monitor=folder_for_model(monitor, [*folders]) if monitor else None,
        log=Log(requests=log == "requests"),
    )
    if stopped_by == signal.SIGINT:
        raise Interrupted("running requests were answered")
    terminal.say("stopped; running requests were answered.")


def _print_new_key(name: str) -> None:
    from textcat.serving.http.keys import new_key

    key, line = new_key(name)
    typer.echo(f"Give to the client, it is not stored:  {key}\nAdd to the file of --keys:  {line}")


def read_keys(path: Path | None, host: str, action: str) -> "Keys":
    """Return the API keys in a file; warn if there are no keys and other machines can reach the host.

    The warning says that anyone who can reach the host can do `action`.
    """
    from textcat.serving.http.keys import Keys
    from textcat.serving.http.processes import is_loopback

    keys = Keys(path)
    if not keys.are_needed and not is_loopback(host):
        terminal.say(f"warning: anyone who can reach {host} can {action}: give --keys FILE, or --host 127.0.0.1")
    return keys


def _open_corrections(folder: Path) -> "Corrections":
    """Open a folder of corrections, or create it; raise TextcatError if nothing can be added to it."""
    from textcat.corpus.corrections import Corrections

    corrections = Corrections(folder)
    corrections.check_writable()
    return corrections


def _labels_of(vocabulary: Path | None, language: str, model: Path) -> "Labels":
    """Return the labels of a vocabulary; raise TextcatError if it has none in the language (default: the model's)."""
    from textcat.corpus.vocabulary import Vocabulary
    from textcat.model.manifest import read_manifest
    from textcat.serving.annif import Labels

    if vocabulary is None:
        return Labels()
    return Labels(Vocabulary.read(vocabulary, language, read_manifest(model).language).labels, language)
