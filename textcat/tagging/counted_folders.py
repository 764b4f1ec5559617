"""Check folders whose tags are counted together, and tell present tags from those by former models or rules."""

import os
from collections.abc import Mapping, Set
from pathlib import Path
from typing import NamedTuple

from textcat.base.disk import expanded
from textcat.base.errors import TextcatError
from textcat.base.paths import Paths, named_paths
from textcat.base.surrogates import escape_undecodable
from textcat.reading import Share
from textcat.runs.files import KnownFile, tagged_files
from textcat.runs.parts import PART, warn_of_lacks
from textcat.runs.records import facts_of_run
from textcat.tagging.output import MODEL, RULES
from textcat.tagging.shards import TagShard, shards_of

_ALL_AGAIN = "give `textcat tag` the option --model-changes all"


class CountedFolders(NamedTuple):
    """Folders that were last tagged by the same model and house rules, and have no file in common."""

    shards: Mapping[Path, list[TagShard]]  # by folder
    models: Set[str]  # the id of the model; with models by language, all their ids
    rules: str | None  # digest of the house rules; None: there are none

    @property
    def paths(self) -> list[Path]:
        """The folders."""
        return [*self.shards]

    def has(self, shard: TagShard, model: str) -> bool:
        """Return whether a document counts, given its shard and the id of the model that tagged it.

        It does not if only former models or rules have tagged it. The id is "" if no model has its language.
        """
        return shard.rules == self.rules and (not model or model in self.models)


def counted_folders(folders: Paths) -> CountedFolders:
    """Return folders to count together; log a warning if runs are unfinished, or parts of a run are missing.

    A TextcatError is raised if a folder is named twice or has no tags, if the folders were last tagged by different
    models or rules, or if two of them have tags of the same file.
    """
    paths = _distinct(folders)
    shards = {path: shards_of(path) for path in paths}
    facts = {path: facts_of_run(path) for path in paths}
    models = sorted({str(facts[path].get(MODEL, "")) for path in paths})
    if len(models) > 1:
        raise TextcatError(
            f"The folders have tags by the models {' and '.join(models)}, which differ by themselves: name folders of "
            f"one model, or {_ALL_AGAIN}."
        )
    rules = [facts[path].get(RULES) for path in paths]
    if other := next((path for path, of_path in zip(paths, rules, strict=True) if of_path != rules[0]), None):
        raise TextcatError(
            f"The tags in {paths[0]} and {other} were chosen by different house rules, so they differ by themselves: "
            f"name folders of the same rules, or {_ALL_AGAIN}."
        )
    if len(paths) > 1:
        _check_apart({path: str(facts[path].get(PART, "")) for path in paths})
    warn_of_lacks(paths)
    by_language = {named.rpartition(" ")[2] for text in models for named in text.split(", ")}
    return CountedFolders(shards, by_language, rules[0] if rules else None)


def _distinct(folders: Paths) -> list[Path]:
    """Return the paths of folders; raise a TextcatError if two of them are the same folder, even by different names."""
    paths: dict[str, Path] = {}
    for path in map(expanded, named_paths(folders)):
        if (before := paths.setdefault(os.path.realpath(path), path)) is not path:
            other = "" if before == path else f", also as {before}"
            raise TextcatError(f"The folder {path} is named twice{other}: name it once, as its documents count once.")
    return [*paths.values()]


def _check_apart(parts: Mapping[Path, str]) -> None:
    """Raise a TextcatError if two folders have tags of the same file: one of the same name and content.

    `parts` has for each folder the part of a run that it is, such as "2/3"; "": it is a whole run. Different parts of a
    run have different documents of the same files.
    """
    readers: dict[str, list[tuple[Path, KnownFile]]] = {}
    for path, part in parts.items():
        for source, item in tagged_files(path).items():
            for other, same in readers.get(source, ()):
                if _is_same(item, same) and not _are_apart(part, parts[other]):
                    raise TextcatError(
                        f"{path} and {other} both have tags of {escape_undecodable(source)}: name one of these "
                        "folders, as its documents count once."
                    )
            readers.setdefault(source, []).append((path, item))


def _is_same(item: KnownFile, other: KnownFile) -> bool:
    """Return whether two files of the same name have the same content, and documents at all."""
    if not item.file.size:
        return False
    if item.checksum and other.checksum:
        return item.checksum == other.checksum
    return item.file.content == other.file.content


def _are_apart(part: str, other: str) -> bool:
    if not part or not other:
        return False
    share, of_other = Share.parse(part), Share.parse(other)
    return share.n == of_other.n and share.number != of_other.number


def check_has_present_tags(has_some: bool, left_out: int) -> None:
    """Raise a TextcatError if the present model and rules have tagged no document, but former ones have."""
    if left_out and not has_some:
        raise TextcatError(
            f"There are tags of {left_out:,} documents by former models or rules, and none by the present ones: "
            f"{_ALL_AGAIN}, or the model and the rules before."
        )


def note_of_left_out(left_out: int) -> str:
    """Return a sentence for error messages about documents that only former models or rules have tagged; "": none."""
    if not left_out:
        return ""
    documents = f"{left_out:,} documents that only former models or rules have tagged"
    return f" {documents} are left out: to count them, {_ALL_AGAIN}."
