"""News files that are written again with their tags: nothing else changes, and writing twice gives what once does."""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Iterable, Sequence
from functools import lru_cache
from pathlib import Path
from unittest import mock

from textcat import Tagger
from textcat.base.errors import TextcatError
from textcat.model.manifest import read_manifest
from textcat.reading import Block, InputSettings, Record, batch_records, find_sources, open_file, read_batches
from textcat.reading.compression import unpacked_stream
from textcat.tagging import job
from textcat.tagging.edit_news import EditJob, creator_of, edit_batch
from textcat.tagging.output import OutputSettings
from textcat.tagging.planning import make_plan
from textcat.tagging.write_back import WriteBackSummary, check_inputs, write_back

from .inputs import settings_of
from .models import models
from .news import ATOM, G2, MARKUP, NINJS, NITF, RSS
from .packed import NEXT, built
from .target import Target

_FOLDER = tempfile.TemporaryDirectory(prefix="textcat-fuzz-", dir="/dev/shm" if Path("/dev/shm").is_dir() else None)
_NAMES = ("a.json", "a.jsonl", "a.xml", "a", "a.json", "a.xml", "a.xml", "a.json.gz", "a.xml.zst")
_OUTPUTS = (OutputSettings(top=2), OutputSettings(top=1), OutputSettings(min_probability=1.0), OutputSettings())
_load_taggers = job.load_taggers
_AROUND = re.compile(rb"[\s,]*")


@lru_cache(maxsize=len(_OUTPUTS))
def _taggers(model: str, output: OutputSettings) -> dict[str, Tagger]:
    return _load_taggers(job.Job(model, read_manifest(model).sha256, output=output))


# A model is not loaded again for other settings of the input, which would take most of the time.
@mock.patch.object(job, "load_taggers", new=lambda one: _taggers(one.model, one.output))
def check(data: bytes) -> None:
    how, byte, other, choice = data[:4].ljust(4, b"\0")
    name, settings = (
        _NAMES[how % len(_NAMES)],
        settings_of(byte, other)._replace(text_fields=("text",), max_bytes=1 << 20),
    )  # of which tags take more
    folder = Path(_FOLDER.name, "in")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    source = folder / name
    source.write_bytes(built(name, data[4:], how >> 4))
    model = models()[0]
    output = _OUTPUTS[choice >> 4 & 3]
    before = source.read_bytes()
    written = _written(model, source, "out", settings, output)
    assert source.read_bytes() == before, "the input has changed"
    if written is None:
        return
    assert _unpacked(written)[:4] == _unpacked(source)[:4], "it is packed otherwise"
    assert _records(written, settings) == _records(source, settings), "another text is read"
    again = _written(model, written, "again", settings, output)
    assert again is not None, "what was written cannot be written again"
    assert _unpacked(again) == _unpacked(written), "writing again changes it"
    if name in ("a.json", "a.jsonl", "a.xml", "a"):
        _check_edits(model, source, written, settings, output)


def _written(model: Path, source: Path, folder: str, settings: InputSettings, output: OutputSettings) -> Path | None:
    """Write a file back; return the file that is written, None if it is left out with a reason."""
    out = Path(_FOLDER.name, folder)
    shutil.rmtree(out, ignore_errors=True)
    reasons: list[str] = []
    try:
        plan = make_plan(model, [str(source)], settings, output, jobs=1)
        check_inputs(plan, out)
        summary = write_back(plan, out, str(source.parent), on_rejection=lambda one: reasons.append(one.reason))
    except TextcatError:
        return None
    names = sorted(path.name for path in out.iterdir() if not path.name.startswith("."))
    assert names == ([source.name] if summary.written else []), names
    _check_summary(summary, reasons)
    return out / source.name if summary.written else None


def _check_summary(summary: WriteBackSummary, reasons: Sequence[str]) -> None:
    assert summary.written + summary.left_out + summary.formats.total() <= 1
    assert not any("cannot be written into it" in reason for reason in reasons), reasons
    if not (summary.written or summary.formats or summary.counts.records == 0):
        assert reasons, "nothing is written, and it is not said why"


def _unpacked(path: Path) -> bytes:
    stored = open_file(str(path))
    try:
        stream = unpacked_stream(stored, path.name)
        return b"".join(iter(lambda: stream.read(1 << 16), b""))
    finally:
        stored.close()


def _records(path: Path, settings: InputSettings) -> list[tuple[object, ...]]:
    """Return what is read of a file, but for the places and the topics."""
    batches = read_batches(find_sources([str(path)], settings), settings)
    found = [item for batch in batches for item in batch_records(batch, settings, all_versions=True)]
    return [
        (one.id.removeprefix(str(path)), one.zones, one.date, one.language, one.version)
        for one in found
        if isinstance(one, Record)
    ]


def _check_edits(model: Path, source: Path, written: Path, settings: InputSettings, output: OutputSettings) -> None:
    """Check that what a plain file loses are tags of ours, and that the rest of it is there byte for byte."""
    plan = make_plan(model, [str(source)], settings, output, jobs=1)
    work = EditJob(plan.job, creator_of(model))
    expected, place, data = list[bytes](), 0, source.read_bytes()
    for batch in read_batches(plan.sources, settings):
        for block, part in zip(batch.blocks, edit_batch(work, batch)[1], strict=True):
            if isinstance(block, Block) and block.decoded:
                return
            for edit in part.edits:
                assert place <= edit.start <= edit.end, "changes overlap"
                lost = data[edit.start : edit.end]
                assert b"textcat" in lost or b"\\u00" in lost or lost == b"/>" or _AROUND.fullmatch(lost), lost
                expected += [data[place : edit.start], edit.data]
                place = edit.end
    assert written.read_bytes() == b"".join([*expected, data[place:]]), "it is not the input with its changes"


def _seeds() -> Iterable[bytes]:
    models()  # which takes longer than an input may
    own = b'<subject creator="textcat:old" literal="x"/>'
    json_own = b'"subjects": [{"name": "old", "creator": "textcat:old"}, {"name": "b"}], '
    files: list[tuple[int, bytes]] = []
    for number, target in ((0, NINJS), (2, G2), (2, NITF), (2, RSS), (2, ATOM)):
        seeds = [seed[2:] for seed in target.seeds()]
        for seed in (seeds[0], seeds[5] if len(seeds) > 5 else seeds[0]):
            files += [(number, seed), (3, seed), (16 + (number > 0), seed)]  # which packs it
            tagged = seed.replace(b"<contentMeta>", b"<contentMeta>" + own)
            tagged = tagged.replace(b'"headline"', json_own + b'"headline"')
            tagged = tagged.replace(b"classifier type", b'classifier class="textcat:x" type')
            files.append((number, tagged))
    for number, data in files:
        for head in (b"\x0f\0\0", b"\x0d\0\x11", b"\x0e\x03\x22"):
            yield bytes([number]) + head + data


_WORDS = (
    *MARKUP,
    *(
        b'creator="textcat:x"',
        b'class="textcat:x"',
        b'domain="textcat:x"',
        b'scheme="textcat:x"',
        b'"creator": "textcat:x"',
        b'"rel": "textcat:x"',
        b'"subjects": [',
    ),
    *(b'domain="textcat:x"', b'scheme="textcat:x"', b"<category ", b"<item>", b"</entry>"),
    *(b"<contentMeta>", b"</contentMeta>", b"<contentMeta/>", b"<docdata>", b"<identified-content>", b"<head/>"),
    *(b"<subject ", b"<classifier ", b'"standard": {"version": "', b"1.5", b"},{", b"\n", NEXT),
)

WRITE_BACK = Target(check, _seeds, _WORDS)
