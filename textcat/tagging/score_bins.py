"""Store the log odds of tagged documents in bins, beside each shard, to estimate prevalences.

A shard (numbered output file) has a file of frames; a frame holds documents that were scored together, in the order of
the shard's rows. For each document, it has source and position, the day, and the topics that the document got or whose
log odds are above the lowest bin. Rows that are later removed from a shard keep their entries, which readers ignore.
"""

import zlib
from base64 import b64decode, b64encode
from collections.abc import Iterator, Sequence
from datetime import date
from functools import lru_cache
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import msgspec
import numpy as np

from textcat.base import disk
from textcat.base.calibration import Calibration
from textcat.base.errors import TextcatError
from textcat.base.surrogates import escape_undecodable
from textcat.model.manifest import HELD_OUT, read_manifest
from textcat.reading import START_OVER, Record
from textcat.runs.records import write_whole
from textcat.runs.shard_writer import held_out_path, score_bins_path
from textcat.tagging.groups import FIELD, group_at
from textcat.trends.bins import FLOOR, bins_of
from textcat.trends.held_out import HeldOut

if TYPE_CHECKING:
    from textcat.model.tagger import Tagger

NO_DAY = np.iinfo(np.int32).min  # in place of days since 1970, for a document without a date
_EPOCH = date(1970, 1, 1)
_MARGIN = 1e-3  # margin in log odds, because scores are rounded
_LENGTH, _GIVEN = 4, 0x80  # bytes of a frame's length; bit that marks a topic that the document got


class _Frame(msgspec.Struct, array_like=True):
    """Documents that were scored together, as stored; arrays are stored as little-endian bytes."""

    model: str  # the id of the model
    sources: list[tuple[str, int]]  # each source, with the number of consecutive documents from it
    positions: bytes  # int64: differences between consecutive positions
    days: bytes  # int32: differences between consecutive days
    reprints: bytes  # bool: whether the document repeats another one
    entries: bytes  # int32: number of topics of each document
    topics: bytes  # int32
    bins: bytes  # uint8


class FrameArrays(NamedTuple):
    """Documents that were scored together (a frame), with their bins, as parallel arrays."""

    model: str
    sources: list[str]
    positions: np.ndarray  # (n_documents,)
    days: np.ndarray  # days since 1970, or `NO_DAY`
    reprints: np.ndarray
    rows: np.ndarray  # (n_entries,): the document of each entry
    topics: np.ndarray  # (n_entries,): columns of the topics
    bins: np.ndarray  # (n_entries,)
    given: np.ndarray  # whether the document got the topic


def encode_frame(
    tagger: "Tagger",
    model: str,
    records: Sequence[Record],
    days: Sequence[str],
    scores: np.ndarray,
    given: np.ndarray,
) -> bytes:
    """Encode the scores of records, in bins, as a frame (an entry of a shard's file of bins).

    Return b"" if the tagger has no calibration or no held-out counts.

    Parameters
    ----------
    tagger : Tagger
    model : str
        The model's id.
    records : sequence of Record
    days : sequence of str
        The day of each record's date, as `day_of` returns it.
    scores, given : ndarray of shape (n_records, n_topics)
        The scores of the records, and whether they got the topics.
    """
    curves = tagger.decisions.calibration
    if tagger.decisions.held_out is None or curves is None:
        return b""
    # Few topics of a document are above the floor; bins are computed for these only.
    rows, topics = np.nonzero((scores > _floors(curves)) | given)
    in_bins = bins_of(scores[rows, topics] * curves.a[topics] + curves.b[topics])
    is_given = given[rows, topics]
    rows, topics, in_bins, is_given = (values[(in_bins > 0) | is_given] for values in (rows, topics, in_bins, is_given))
    sources = [(escape_undecodable(source), len([*run])) for source, run in groupby(records, lambda one: one.source)]
    frame = _Frame(
        model,
        sources,
        _differences([record.position for record in records], np.int64),
        _differences([*map(_days, days)], np.int32),
        np.array([_is_reprint(record) for record in records], bool).tobytes(),
        np.bincount(rows, minlength=len(records)).astype(np.int32).tobytes(),
        topics.astype(np.int32).tobytes(),
        (in_bins | np.where(is_given, np.uint8(_GIVEN), np.uint8(0))).tobytes(),
    )
    data = zlib.compress(msgspec.msgpack.encode(frame))
    return len(data).to_bytes(_LENGTH, "little") + data


def _floors(curves: Calibration) -> np.ndarray:
    """Return for each topic a score whose log odds are just below `FLOOR`, the upper end of the lowest bin."""
    with np.errstate(divide="ignore"):
        floors = (FLOOR - _MARGIN - curves.b) / curves.a
    return np.where(curves.a > 0, floors, -np.inf).astype(np.float32)


def _differences(values: Sequence[int], dtype: type) -> bytes:
    return np.diff(np.array(values, dtype), prepend=dtype(0)).tobytes()


@lru_cache(maxsize=4096)
def _days(day: str) -> int:
    """Return the days from 1970 to a day in ISO 8601; `NO_DAY` for "", no day."""
    return (date.fromisoformat(day) - _EPOCH).days if day else NO_DAY


def _is_reprint(record: Record) -> bool:
    own = group_at(escape_undecodable(record.source), record.position)
    return (record.fields or {}).get(FIELD, own) != own


def read_frames(shard: Path) -> Iterator[FrameArrays]:
    """Yield a shard's frames (documents scored together); raise TextcatError if their file is missing or damaged."""
    path = score_bins_path(shard)
    try:
        with open(path, "rb") as file:
            while length := file.read(_LENGTH):
                data = zlib.decompress(file.read(int.from_bytes(length, "little")))
                yield _arrays(msgspec.msgpack.decode(data, type=_Frame))
    except FileNotFoundError:
        raise TextcatError(
            f"{shard.parent} does not say how all documents scored, as the model has counted no held-out documents, "
            "or there is a model for each language: train one with probabilities, and tag again with --restart."
        ) from None
    except (OSError, ValueError, zlib.error):
        raise TextcatError(f"{path} is damaged: restore it, or {START_OVER}.") from None


def _arrays(frame: _Frame) -> FrameArrays:
    counts = np.frombuffer(frame.entries, np.int32)
    in_bins = np.frombuffer(frame.bins, np.uint8)
    return FrameArrays(
        frame.model,
        [source for source, n in frame.sources for _ in range(n)],
        np.frombuffer(frame.positions, np.int64).cumsum(),
        np.frombuffer(frame.days, np.int32).cumsum(dtype=np.int32),
        np.frombuffer(frame.reprints, bool),
        np.repeat(np.arange(len(counts)), counts),
        np.frombuffer(frame.topics, np.int32),
        in_bins & ~np.uint8(_GIVEN),
        (in_bins & _GIVEN) > 0,
    )


class ModelCounts(msgspec.Struct):
    """The topics of a model, and the counts of its held-out documents, as stored in a folder of tags."""

    topics: list[str]
    names: dict[str, str]
    table: str

    @property
    def held_out(self) -> HeldOut:
        """The counts of held-out documents."""
        values = np.frombuffer(zlib.decompress(b64decode(self.table)), np.float32)
        return HeldOut.from_table(values.reshape(len(self.topics), -1), len(self.topics))


def write_model_counts(folder: Path, model: str, topics: Sequence[str]) -> None:
    """Write the counts of a model's held-out documents into a folder of tags, if the model has any.

    `model` is the model's folder; `topics` are those that the run writes, () for all.
    """
    manifest = read_manifest(model)
    path = held_out_path(folder, manifest.id)
    if f"{HELD_OUT}.npy" not in manifest.files or path.is_file():
        return
    chosen = set(topics or manifest.topics)
    columns = [j for j, topic in enumerate(manifest.topics) if topic in chosen]
    of_columns = [manifest.topics[j] for j in columns]
    table = np.ascontiguousarray(np.load(Path(model) / f"{HELD_OUT}.npy")[columns])
    packed = b64encode(zlib.compress(table.tobytes())).decode()
    names_of = manifest.names
    names = {topic: names_of[topic] for topic in of_columns if topic in names_of}
    with disk.raise_write_errors(folder, "fix that, and give the command again"):
        write_whole(path, [msgspec.json.encode(ModelCounts(of_columns, names, packed)), b"\n"])


def read_model_counts(folder: Path, model: str) -> ModelCounts:
    """Read the counts of a model's held-out documents from a folder of tags; raise TextcatError if it has none."""
    path = held_out_path(folder, model)
    try:
        return msgspec.json.decode(path.read_bytes(), type=ModelCounts)
    except (OSError, msgspec.DecodeError):
        raise TextcatError(f"{path} is missing or damaged: restore it, or {START_OVER}.") from None
