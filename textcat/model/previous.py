"""Replace a model atomically, keep the previous one beside it, and restore it; one replacement can be undone."""

import os
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from glob import escape
from pathlib import Path

from textcat.base.disk import lock_folder
from textcat.base.folders import MANIFEST, remove_leftovers
from textcat.model import CARD, ModelError, storage
from textcat.model.manifest import COUNTS, MODEL, Manifest, model_id, read_manifest
from textcat.model.rules import rules_of_model

# part of the name of the previous model's folder, MODEL.before-SUM, where SUM is the checksum of the present manifest
_BEFORE = ".before-"


@contextmanager
def lock_model(folder: Path) -> Iterator[None]:
    """Lock a model's folder during the ``with`` block, so that no other process changes the model.

    Raise ModelError if another process has locked it.
    """
    with lock_folder(folder) as is_locked:
        if not is_locked:
            raise ModelError(f"The model {folder} is being changed by another process: wait until it has ended.")
        yield


def replace_model(
    folder: Path,
    write: Callable[[Path], None],
    expected: str,
    *,
    keep: bool,
    note: Callable[[str], None] | None = None,
    skips_same: bool = False,
) -> bool:
    """Replace the model in a folder atomically; if `keep`, keep the old model for `restore_previous`.

    `write` is called with an empty folder, and writes the new model's files to it. `expected` is the checksum that the
    old model must have; raise ModelError if it was replaced by another. `note` is called with the checksum of the new
    model just before the new model is put in place. If `skips_same`, and the new model is the old one, `note` is not
    called, and what was kept before the old model stays. Return whether the model was replaced by another, or noted.
    """
    with MODEL.replacing(folder) as sibling:
        write(sibling)
        if read_manifest(folder).sha256 != expected:
            raise ModelError(f"The model {folder} was replaced meanwhile: run the command again.")
        check_rules(folder, manifest := read_manifest(sibling))
        replacing = manifest.sha256
        if skips_same and replacing == expected:
            with suppress(FileNotFoundError):
                shutil.copyfile(folder / CARD, sibling / CARD)  # of another model, it would no longer be true
            return False
        kept = _previous_folder(folder, replacing)
        if keep:
            with MODEL.replacing(kept) as earlier:
                link_files(folder, earlier)
        else:
            _remove_previous(folder)
        if note:
            note(replacing)
    if keep:  # deleted only now: if the process is killed earlier, the old model still has its predecessor
        _remove_previous(folder, but=kept)
    remove_leftovers_of_model(folder)  # deleted because they may contain documents that were to be removed
    return True


def check_rules(folder: Path, manifest: Manifest) -> None:
    """Raise TextcatError if the rules beside a folder do not fit a model that is to be put into it."""
    rules_of_model(folder, manifest.topics, manifest.names, manifest.broader_topics)


def _remove_previous(folder: Path, but: Path | None = None) -> None:
    for earlier in folder.parent.glob(f"{escape(folder.name)}{_BEFORE}*"):
        if earlier != but and (earlier / MANIFEST).exists():
            shutil.rmtree(earlier)


def restore_previous(folder: Path, note: Callable[[str], None] | None = None) -> None:
    """Restore the model that the last change replaced, byte for byte.

    `note` is called with its checksum just before it is put in place. Raise ModelError if it was not kept, or is
    damaged.
    """
    before = _previous_folder(folder, read_manifest(folder).sha256)
    if not (before / MANIFEST).exists():
        raise ModelError(
            f"Of the model {folder} no earlier state is kept: since it was trained or restored, nothing was learnt or "
            "promoted, or documents were removed, which cannot be undone. Restore it from a copy, if there is one."
        )
    storage.load(before, prepare=False, with_rules=False)  # checks the checksums of the tagger's files,
    if COUNTS in read_manifest(before).files:
        storage.load_training_counts(before)  # and those of all other files
    check_rules(folder, read_manifest(before))
    with MODEL.replacing(folder) as sibling:
        link_files(before, sibling)
        if note:
            note(read_manifest(sibling).sha256)
    shutil.rmtree(before)


def remove_leftovers_of_model(folder: Path) -> None:
    """Remove unfinished folders beside a model that killed processes have left: new models, and old ones to be kept."""
    remove_leftovers(folder, rf"{re.escape(_BEFORE)}[0-9a-f]+")


def _previous_folder(folder: Path, manifest_sum: str) -> Path:
    """Return the folder that keeps the previous model, given the checksum of the model that replaced it."""
    return folder.with_name(f"{folder.name}{_BEFORE}{model_id(manifest_sum)}")


def link_files(source: Path, target: Path, but: str = "") -> None:
    """Hard-link the files of a folder into another, or copy them where links cannot be made; skip the file `but`."""
    for path in sorted(source.iterdir()):
        if path.name == but:
            continue
        try:
            os.link(path, target / path.name)
        except OSError:  # the file system has no links
            shutil.copyfile(path, target / path.name)
