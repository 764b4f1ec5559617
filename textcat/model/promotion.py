"""Promote a new model to the folder in use, unless conditions forbid it; roll back; log both in a journal."""

import os
import shutil
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from textcat.base.disk import expanded, resolved
from textcat.base.errors import TextcatError
from textcat.base.folders import MANIFEST
from textcat.base.journal import append_to_journal, read_whole_journal, when_and_who
from textcat.base.progress import Stages
from textcat.evaluation.significance import GateResult
from textcat.model import CARD, ModelError, storage
from textcat.model.card import card_bytes
from textcat.model.compare import compare
from textcat.model.manifest import MODEL, read_manifest
from textcat.model.previous import check_rules, lock_model, remove_leftovers_of_model, replace_model, restore_previous

JOURNAL = ".promotions.jsonl"  # suffix of the journal, which lies beside the model's folder


@dataclass(frozen=True)
class Promotion:
    """A promotion or rollback, with the entries of a line of the journal.

    Attributes
    ----------
    action : str
        "promote" or "rollback"; in the journal also "found": since the previous line, the model was replaced by another
        command, such as `learn`, or by a promotion that was killed before it was logged.
    at, who : str
        UTC in ISO 8601, and the user's name.
    model, replaced : str, str or None
        The checksums of the manifests of the model in the folder afterwards, and of the one before, if there was one.
    source : str or None
        The folder of the model that was promoted.
    gates : tuple of GateResult
        The conditions checked, with their results.
    """

    action: str
    at: str
    who: str
    model: str
    replaced: str | None = None
    source: str | None = None
    gates: tuple[GateResult, ...] = ()


class GateError(TextcatError):
    """Raised if a new model fails a condition and is therefore not promoted; `gates` has the results."""

    gates: tuple[GateResult, ...] = ()


def promote(
    new: str | os.PathLike[str],
    served: str | os.PathLike[str],
    corpus: Any = None,
    *,
    fail_if: str | Iterable[str] = (),
    strict: bool = False,
    n_resamples: int = 1000,
    seed: int = 0,
    stages: Stages | None = None,
) -> Promotion:
    """Replace the model in use by a copy of a new one, atomically, and keep the old one for `rollback`.

    A process that reads the folder meanwhile finds the old model or the new one, even if this process is killed; a
    server loads the new one within seconds. A line is added to the journal beside the folder,
    ``SERVED.promotions.jsonl``.

    Parameters
    ----------
    new, served : path
        The folder of the new model, which is not changed, and the folder to copy it to, which need not exist.
    corpus : Corpus, DataFrame, iterable of dict, str or Path, optional
        With `fail_if`: the documents to measure both models on, as for `compare`.
    fail_if, strict, n_resamples, seed, stages
        Conditions under which the new model fails, as for `compare`; if it fails, nothing changes.

    Returns
    -------
    Promotion

    Raises
    ------
    GateError
        If the new model fails a condition.
    TextcatError
        If a folder is no model or damaged, the old model is being changed, or the conditions cannot be decided.
    """
    source, folder = resolved(new), resolved(served)
    if source == folder:
        raise TextcatError(f"{folder} cannot be promoted to its own place: name the folder of another model.")
    storage.load(source, prepare=False, with_rules=False)  # checks its files
    check_rules(expanded(served), read_manifest(source))  # a link has rules of its own
    with lock_model(folder):
        remove_leftovers_of_model(folder)
        journal, model, replaced = _Journal.of(folder), read_manifest(source).sha256, _checksum(folder)
        gates: tuple[GateResult, ...] = ()
        if fail_if:
            if replaced is None:
                raise ModelError(f"There is no model {folder} to compare with: leave out the conditions once.")
            options: dict[str, Any] = {"fail_if": fail_if, "strict": strict, "stages": stages}
            gates = compare([folder, source], corpus, n_resamples=n_resamples, seed=seed, **options).gates
            if failed := [repr(gate.gate) for gate in gates if gate.failed]:
                error = GateError(
                    f"The new model fails by {', '.join(failed)}: train it anew; {folder} stays as it is."
                )
                error.gates = gates
                raise error
        copy = partial(_copy_model, source, model)
        if replaced is None:
            with MODEL.replacing(folder) as sibling:
                copy(sibling)
        elif model != replaced:
            replace_model(folder, copy, replaced, keep=True)
        return journal.add(Promotion("promote", *when_and_who(), model, replaced, str(source), gates))


def rollback(served: str | os.PathLike[str]) -> Promotion:
    """Restore the model that the last `promote` or `learn` replaced, byte for byte; only one step can be undone.

    Parameters
    ----------
    served : path
        The model's folder.

    Returns
    -------
    Promotion

    Raises
    ------
    TextcatError
        If there is no earlier model, or the folder is being changed.
    """
    folder = resolved(served)
    with lock_model(folder):
        remove_leftovers_of_model(folder)
        journal, replaced = _Journal.of(folder), read_manifest(folder).sha256
        restore_previous(folder)
        return journal.add(Promotion("rollback", *when_and_who(), read_manifest(folder).sha256, replaced))


def _checksum(folder: Path) -> str | None:
    """Return the checksum of the manifest of the model in a folder; None if there is no model that can be read."""
    try:
        return read_manifest(folder).sha256
    except ModelError:
        return None


def _copy_model(source: Path, expected: str, target: Path) -> None:
    """Copy a model's files and its card to an empty folder, after checking them."""
    with MODEL.open(source) as opened:
        if opened.manifest.sha256 != expected:
            raise ModelError(f"The model {source} was replaced meanwhile: run the command again.")
        opened.check(opened.manifest.files)
        opened.files[MANIFEST].seek(0)
        for name in (*opened.manifest.files, MANIFEST):
            with open(target / name, "xb") as file:
                shutil.copyfileobj(opened.files[name], file)
        written = os.fstat(opened.files[MANIFEST].fileno())  # the command `show` prints it
        os.utime(target / MANIFEST, ns=(written.st_atime_ns, written.st_mtime_ns))
    if (card := card_bytes(source)) is not None:
        (target / CARD).write_bytes(card)


class _Journal(NamedTuple):
    """The journal of a model's folder, and the checksum of the model in its last line."""

    path: Path
    model: str | None

    @classmethod
    def of(cls, folder: Path) -> "_Journal":
        path = folder.with_name(folder.name + JOURNAL)
        lines = read_whole_journal(path)
        return cls(path, lines[-1].get("model") if lines else None)

    def add(self, promotion: Promotion) -> Promotion:
        """Append a line; before it, append a "found" line if the model was replaced by another command."""
        lines = [promotion]
        if promotion.replaced not in (None, self.model):
            lines.insert(0, Promotion("found", promotion.at, promotion.who, str(promotion.replaced)))
        append_to_journal(self.path, map(asdict, lines), "make room or allow it; the model is in its place")
        return promotion
