"""Encode the versions of a batch of news items as bytes to append to a run's file of versions."""

import struct
from collections.abc import Sequence
from hashlib import blake2b

import orjson

from textcat.base.surrogates import escape_undecodable
from textcat.reading import ItemVersion

HEAD = struct.Struct("<II")  # of a chunk: size of its sources in bytes, number of its entries
# Hash of the id; number and date of the version; position; number of the source in the chunk; state.
ENTRY = struct.Struct("<16sQqQIB")
FIELDS = [("high", "<u8"), ("low", "<u8"), ("number", "<u8"), ("date", "<i8"), ("position", "<u8"), ("source", "<u4")]
FIELDS += [("state", "u1")]


def hash_of_id(id_: str) -> bytes:
    """Return a hash of 16 bytes for the id of a news item."""
    return blake2b(escape_undecodable(id_).encode(), digest_size=16).digest()


def encode_versions(versions: Sequence[ItemVersion]) -> bytes:
    """Return the versions of a batch as a chunk of bytes; b"" if there are none."""
    numbers: dict[str, int] = {}
    entries = [
        ENTRY.pack(hash_of_id(id_), *version, position, numbers.setdefault(source, len(numbers)), state)
        for id_, version, source, position, state in versions
    ]
    sources = orjson.dumps([*map(escape_undecodable, numbers)])
    return b"".join([HEAD.pack(len(sources), len(entries)), sources, *entries]) if entries else b""
