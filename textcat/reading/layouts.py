"""Derive the topics and parts of documents from the paths of their files: folders per topic, or train and test."""

import posixpath
import re
from collections import defaultdict
from collections.abc import Collection, Container, Iterable
from functools import lru_cache, partial

from textcat.reading.formats import DOCUMENTS
from textcat.reading.maildir import placed
from textcat.reading.recognition import is_archive

BY_PLACE = DOCUMENTS | {"lines", "mbox", "mets", "warc"}  # formats whose topics come from the paths of files
_PART = re.compile(
    r"(?:^|[-_. ])(?:(train(?:ing)?)|(test(?:ing)?)|(?:validation|valid|val|dev(?:elopment)?))"
    r"(?:[-_. ]?(?:set|data|split))?(?:-\d{5}-of-\d{5})?$",
    re.IGNORECASE,
)


class Layout:
    """Derive topics and the part (training or test) of documents from the folders and names of a corpus's files.

    `names` are the paths of all files inside the corpus; `names_by_place` are the paths of the files whose folder or
    name gives their topic. The attribute `alone` is the path of a test part without a training part next to it; "" if
    there is none.
    """

    def __init__(self, names: Collection[str], names_by_place: Iterable[str]) -> None:
        pairs, self.alone = _pairs(names)
        # Cached, because consecutive records are often of the same file.
        self.topics_of = lru_cache(maxsize=8)(partial(_topic_by_place, depth=shared_depth(names_by_place)))
        self.part_of = lru_cache(maxsize=8)(partial(_part_by_place, pairs=pairs))
        self.lies_in_part = lru_cache(maxsize=8)(partial(_lies_in_part, pairs=pairs))


def part_of(name: str) -> str:
    """Return the part of a corpus that the name of a file or folder indicates, such as "train"; "" if none.

    The name of a file is given without its extension. A validation part is "unused": it is for neither training nor
    testing.
    """
    match = _PART.search(name)
    return "" if not match else "train" if match[1] else "test" if match[2] else "unused"


def without_part(name: str) -> str:
    """Return a name without the word that indicates a part: "spam" for "spam-train"."""
    return _PART.sub("", name)


def shared_depth(names: Iterable[str]) -> int:
    """Return the number of leading folders that all files share.

    If all files lie in the same folder, this folder is not counted, because its name may be their topic.
    """
    folders = [placed(name).split("/")[:-1] for name in names]
    return max(min(len(posixpath.commonprefix(folders)), max(map(len, folders), default=0) - 1), 0)


def _topic_by_place(name: str, form: str, depth: int) -> tuple[str, ...]:
    *folders, file = placed(name).split("/")
    if form in DOCUMENTS:
        named = folders_of(name)[-1:] if len(folders) > depth else []
        return tuple(named or folders[depth:][-1:])
    named = [folder for folder in folders[depth:] if folder in folders_of(name) and not part_of(folder)]
    return (named[-1] if named else without_part(_stem(file)),)


def folders_of(name: str) -> list[str]:
    """Return the names of the folders on the path of a file, outermost first, without archives (``a.zip``)."""
    return [folder for folder in placed(name).split("/")[:-1] if not is_archive(folder)]


def _pairs(names: Collection[str]) -> tuple[set[str], str]:
    """Return the folders that hold both a training and a test part, and a test part without a training part.

    A folder with train.csv and test.csv is an example of the former; in the set, "" is the outermost folder. The latter
    is the name of a file or folder that is named like a test part and has other files around it, but no training part
    next to it; it is "" if there is none.
    """
    parts_in: dict[str, dict[str, str]] = defaultdict(dict)
    names = {*map(placed, names)}
    folders_above = {name.rpartition("/")[0] for name in names}
    stems = {_stem(name) for name in names}
    for path in folders_above | {stem for stem in stems if part_of(posixpath.basename(stem))}:
        entries = path.split("/")
        for depth, entry in enumerate(entries):
            if part := part_of(entry):
                parts_in["/".join(entries[:depth])][part] = "/".join(entries[: depth + 1])
    tests = [path for parts in parts_in.values() if "train" not in parts for path in parts.values()]
    alone = min((test for test in tests if not all(name.startswith(test) for name in names)), default="")
    alone = next((name for name in names if _stem(name) == alone), alone)
    return {folder for folder, parts in parts_in.items() if "train" in parts and len(parts) > 1}, alone


def _lies_in_part(name: str, pairs: Container[str]) -> bool:
    above, _, folder = placed(name).rpartition("/")[0].rpartition("/")
    return bool(part_of(folder)) and above in pairs


def _part_by_place(name: str, form: str, pairs: Container[str]) -> str:
    if form in ("reuters", "rcv1") or not pairs:
        return ""
    *folders, file = placed(name).split("/")
    names = folders[:-1] if form in DOCUMENTS else [*folders, _stem(file)]
    for depth in reversed(range(len(names))):
        if (part := part_of(names[depth])) and "/".join(folders[:depth]) in pairs:
            return part
    return ""


def _stem(file: str) -> str:
    return file.rpartition(".")[0] or file
