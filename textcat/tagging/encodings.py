"""Edit items in encodings where an ASCII byte may be part of another character."""

import codecs
from collections.abc import Callable, Sequence
from functools import lru_cache

from textcat.reading import is_of_single_bytes
from textcat.tagging.concepts import Edit, Tag

#: A function of an item's bytes, its tags and their creator, which returns the edits that add the tags.
Editor = Callable[[bytes, Sequence[Tag], str], list[Edit]]


def edits_in(encoding: str, editor: Editor, data: bytes, tags: Sequence[Tag], creator: str) -> list[Edit]:
    """Return the edits that write tags into an item whose encoding extends ASCII; `editor` returns those for UTF-8.

    `encoding` "" stands for UTF-8. LookupError is raised if the encoding is unknown. UnicodeError is raised if the item
    is not valid in the encoding, if its characters can also be written as other bytes, or if the bytes of one character
    depend on others, so that edits cannot be placed.
    """
    if _is_read_by_bytes(encoding):
        return editor(data, tags, creator)
    text = data.decode(encoding)
    if text.encode(encoding) != data:
        raise UnicodeError("its characters can be written in several ways")
    edits, converted, n_encoded, place = list[Edit](), text.encode(), 0, 0
    for edit in editor(converted, tags, creator):
        bounds = []
        for bound in edit[:2]:
            n_encoded += len(converted[place:bound].decode().encode(encoding))
            place = bound
            bounds.append(n_encoded)
        edits.append(Edit(bounds[0], bounds[1], edit.data.decode().encode(encoding)))
    if edits and len(converted[place:].decode().encode(encoding)) != len(data) - n_encoded:
        raise UnicodeError("the bytes of a character depend on those before it")
    return edits


@lru_cache(maxsize=64)
def _is_read_by_bytes(encoding: str) -> bool:
    """Return whether every ASCII byte stands for its ASCII character in an encoding."""
    name = codecs.lookup(encoding or "utf-8").name
    return name in ("ascii", "utf-8", "utf-8-sig") or is_of_single_bytes(name)
