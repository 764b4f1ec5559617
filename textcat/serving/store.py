"""The models that a server uses: each is loaded from a folder, and loaded again if the folder is replaced."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import orjson

from textcat.base.disk import expanded, resolved
from textcat.base.errors import TextcatError, first_of
from textcat.model import manifest_status
from textcat.model.card import read_card
from textcat.model.manifest import model_id
from textcat.model.rules import path_beside
from textcat.serving.http.problems import Problem
from textcat.serving.work import Answer, Choice, Work

if TYPE_CHECKING:
    from textcat.model.tagger import Tagger
    from textcat.serving.http.front import Call

_NAME = re.compile(r"[A-Za-z0-9._-]{1,64}")
_CACHE_BYTES = 64 * 2**20  # limit of the token cache: a server that runs for long meets many words only once
_AGAIN = 10  # checks until a folder that could not be loaded is tried again
Identity: TypeAlias = tuple[int, ...] | None


@dataclass(eq=False)
class Served:
    """A loaded version of a served model; a request uses the same version from beginning to end."""

    name: str
    version: str  # the first digits of the sha256 of its manifest
    tagger: Tagger
    work: Work
    loaded: float  # when the manifest was written: seconds since 1970

    def __post_init__(self) -> None:
        self.named = {"model": self.name, "version": self.version}
        self._begin = orjson.dumps(self.named)[:-1]
        self.columns = {topic: j for j, topic in enumerate(self.tagger.topics)}
        rows = getattr(self.tagger.evaluation, "topics", ())
        self.quality = {row.topic: row for row in rows}

    @property
    def rules(self) -> str:
        """The text of the house rules in the file beside the model; "" if there is none."""
        rules = self.tagger.decisions.rules
        return "" if rules is None else rules.source

    def answer(self, entries: dict[str, Any]) -> bytes:
        """Return an answer to a request as JSON: the model's name and version, and the given entries."""
        return b"%b,%b" % (self._begin, orjson.dumps(entries)[1:])

    def column_of(self, topic: str) -> int:
        """Return the column of a topic in the model's scores.

        Raise a Problem if the model does not have the topic.
        """
        try:
            return self.columns[topic]
        except KeyError:
            raise Problem(404, f"The model has no topic {topic!r:.100}: GET …/topics lists them.") from None

    def summary(self) -> dict[str, Any]:
        """Return a description of the model, which can be written as JSON."""
        recipe = self.tagger.facts.recipe
        return {
            **self.named,
            "topics": len(self.tagger.topics),
            "corpus": self.tagger.facts.corpus,
            "recipe": recipe.title or recipe.learner["name"],
            "train_documents": int(self.tagger.facts.train_documents),
            "names_language": self.tagger.names_language or None,
        }


@dataclass
class _Folder:
    path: Path
    seen: Identity = None  # the last manifest that was loaded, or failed to load
    checks: int = 0  # checks since then
    error: str = ""  # the error, with the path
    damage: str = ""  # the error for clients, without the path


@dataclass(eq=False)
class Store:
    """The served models by name; `folders` has the folder from which each model is loaded."""

    folders: Mapping[str, Path]
    # Called when a replaced model was loaded, with its version, or could not be loaded, with the error; the outcome is
    # "loaded" or "failed".
    on_load: Callable[[str, str, str], object] = lambda name, outcome, what: None
    on_batch: Callable[[int], object] = lambda n: None  # called with the number of documents that are tagged together
    # Called with the name of a model, the documents that it has tagged, the requested choice, and the answers.
    on_tagged: list[Callable[[str, Sequence[Any], Choice, list[Answer]], object]] = field(default_factory=list)
    seconds: float = 30.0  # maximum processor time for tagging documents together
    models: dict[str, Served] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._folders = {name: _Folder(expanded(path).absolute()) for name, path in self.folders.items()}

    def __getitem__(self, name: str) -> Served:
        try:
            return self.models[name]
        except KeyError:
            if name in self.folders:
                damage = self._folders[name].damage or "its folder is damaged"
                sentence = f"The model {name!r} cannot be loaded, as {damage}: try again later."
                raise Problem(503, sentence, {"Retry-After": "10"}) from None
            raise Problem(404, f"No model {name!r:.80} is served here: GET /api/v1/models lists them.") from None

    def failed(self) -> str | None:
        """Return the name of a model that was never loaded, because its folder is damaged; None if there is none."""
        names = (name for name, folder in self._folders.items() if folder.error and name not in self.models)
        return next(names, None)

    def card(self, name: str) -> str | None:
        """Return the present card in a model's folder; None if there is none, or it cannot be read."""
        try:
            return read_card(self._folders[name].path)
        except TextcatError:
            return None

    def versions(self) -> list[tuple[str, str]]:
        """Return the name and version of each model."""
        return [(served.name, served.version) for served in self.models.values()]

    def load(self) -> None:
        """Load all models; raise a TextcatError if one cannot be loaded."""
        for name, folder in self._folders.items():
            folder.seen = _identity(folder.path)
            self.models[name] = self._loaded(name, folder.path)

    def load_again(self) -> None:
        """Load all models again, in a process that replaces one that died, perhaps of a damaged model.

        Leave out models that cannot be loaded.
        """
        self.models = {}
        for name, folder in self._folders.items():
            folder.seen, folder.checks, folder.error, folder.damage = _identity(folder.path), 0, "", ""
            try:
                self.models[name] = self._loaded(name, folder.path)
            except Exception as error:
                folder.seen = ()  # the first check will try again
                self._failed(folder, name, error)

    async def check(self, *, now: bool = False) -> None:
        """Load the models whose folders were replaced; if a model cannot be loaded, keep its old version.

        A folder that could not be loaded is tried again at every tenth check; with `now`, it is tried again at once.
        """
        for name, folder in self._folders.items():
            identity = _identity(folder.path)
            folder.checks += 1
            if identity == folder.seen and not (folder.error and (now or folder.checks >= _AGAIN)):
                continue
            folder.seen, folder.checks = identity, 0
            try:
                served = await asyncio.get_running_loop().run_in_executor(None, self._loaded, name, folder.path)
            except Exception as error:  # whatever the error of the new model, keep the old one
                self._failed(folder, name, error)
                continue
            folder.error = folder.damage = ""
            before = self.models.get(name)
            if before is None or (served.version, served.rules) != (before.version, before.rules):
                self.models[name] = served  # atomic: a request sees either the old or the new model
                self.on_load(name, "loaded", served.version)

    def _failed(self, folder: _Folder, name: str, error: Exception) -> None:
        said = str(error) or repr(error)
        if folder.error != said:
            self.on_load(name, "failed", said)
        folder.error, folder.damage = said, _damage(error)

    def _loaded(self, name: str, path: Path) -> Served:
        from textcat.model.storage import load_versioned

        tagger, digest = load_versioned(path, prepare=False)
        tagger.features.tokens_.memo_bytes = _CACHE_BYTES
        tagger.tag(["The first text is slow."])  # builds lookup tables of the vocabulary
        status = manifest_status(path)
        written = status.st_mtime if status else 0.0
        work = Work(tagger, lambda n: self.on_batch(n), lambda: self.seconds, lambda *batch: self._tagged(name, *batch))
        return Served(name, model_id(digest), tagger, work, written)

    def _tagged(self, *batch: Any) -> None:
        for watch in self.on_tagged:
            watch(*batch)


def folder_for_model(text: str, names: Sequence[str]) -> tuple[str, Path]:
    """Parse the argument `NAME=FOLDER`, or `FOLDER` if one model is served; return the model's name and the folder.

    Raise TextcatError if no model of that name is served, or if several are served and none is named.
    """
    name, equals, folder = text.partition("=")
    if equals and name in names:
        return name, Path(folder)
    if len(names) == 1 and (not equals or Path(text).exists()):
        return names[0], Path(text)
    known = first_of([*names])
    raise TextcatError(f"It is not clear for which model {text!r} is: give NAME=FOLDER, with a NAME of {known}.")


def served_model(call: Call, name: str, n_documents: int = 0) -> Served:
    """Return the model with a name; for the log, note the model and the number of documents in `call`.

    Raise a Problem if there is no such model.
    """
    served: Served = call.app.store[name]
    call.model, call.version, call.documents = served.name, served.version, n_documents
    return served


def _damage(error: Exception) -> str:
    return error.damage if isinstance(error, TextcatError) else ""


def _identity(folder: Path) -> Identity:
    status = manifest_status(folder)
    try:
        rules = os.stat(path_beside(folder)).st_mtime_ns
    except OSError:
        rules = 0
    return status and (status.st_dev, status.st_ino, status.st_mtime_ns, status.st_size, rules)


def named_folders(models: list[str]) -> dict[str, Path]:
    """Parse arguments `NAME=FOLDER` or `FOLDER`, and return the folders by name.

    Without `NAME=`, the last part of the folder's path is the name. TextcatError is raised if a name is not allowed, or
    occurs twice.
    """
    folders: dict[str, Path] = {}
    for model in models:
        name, equals, folder = model.partition("=")
        if not equals or not _NAME.fullmatch(name) or Path(model).exists():
            folder, path = model, expanded(model)
            name = resolved(path).name if path.name in ("", "..") else path.name
        if not _NAME.fullmatch(name) or name in (".", ".."):
            raise TextcatError(
                f"A model cannot be served as {name!r}: give NAME={folder}, with a NAME of letters, digits, . _ -"
            )
        if name in folders:
            raise TextcatError(
                f"Two models would be served as {name!r}: give one of them another name by NAME={folder}."
            )
        folders[name] = Path(folder)
    return folders
