"""From inputs to tags, as `textcat tag` does it: some files of several formats, through batches, to encoded rows."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from textcat.model.manifest import read_manifest
from textcat.reading import Record, Rejection
from textcat.runs.results import Counts, encode_rejection
from textcat.tagging.job import Job, tag_batch
from textcat.tagging.output import OutputSettings

from .checks import check_sources, source
from .inputs import settings_of
from .models import models
from .packed import NAMES, built
from .target import Target, split_words

_PLAIN = ("a.jsonl", "b.csv", "c.tsv", "d.sgm", "e.xml", "f.mbox", "g.txt", "h")
_BETWEEN = b"\n==\n"  # the files


def check(data: bytes) -> None:
    byte, other, choice = data[:3].ljust(3, b"\0")
    settings = settings_of(byte, other)
    parts = data[3:].split(_BETWEEN)[:4]
    sources = [
        source(f"{i}/{_name(part)}", _content(part), settings, way=(choice >> i) & 1) for i, part in enumerate(parts)
    ]
    batches, items = check_sources(sources, settings)
    model = str(models()[choice % len(models())])
    output = OutputSettings(top=1 if choice & 32 else None, explain=2 if choice & 64 else 0)
    job = Job(model, read_manifest(model).sha256, input=settings, output=output)
    done = [tag_batch(job, batch) for batch in batches]
    _check_counts(done, len(items))
    rows = [json.loads(line) for tagged in done for part in tagged.rows for line in part.splitlines()]
    _check_rows(rows, [item for item in items if isinstance(item, Record)])
    rejected = [rejection for tagged in done for rejection in tagged.rejections]
    assert rejected == [item for item in items if isinstance(item, Rejection)], "not what the readers reject"
    for rejection in rejected:
        json.loads(encode_rejection(rejection))


def _name(part: bytes) -> str:
    number = part[0] if part else 0
    return _PLAIN[number % 8] if number < 128 else NAMES[number % 16]


def _content(part: bytes) -> bytes:
    name = _name(part)
    return part[1:] if name in _PLAIN else built(name, part[1:], 1)


def _check_counts(done: Iterable[Any], n: int) -> None:
    total = Counts()
    for tagged in done:
        total.add(tagged.counts)
    assert total.records == total.tagged + total.rejected == n, (total, n)


def _check_rows(rows: list[dict[str, object]], records: list[Record]) -> None:
    assert [row["position"] for row in rows] == [record.position for record in records]
    assert [row["id"] for row in rows] == [record.id for record in records]
    for row in rows:
        assert isinstance(row["topics"], list)


def _seeds() -> Iterable[bytes]:
    line = b'{"id": "1", "text": "Corn and wheat rose."}\n'
    mail = b"From a@b Thu Jan  1 00:00:00 1970\nSubject: Gold\n\nSilver fell.\n"
    files = [
        *(
            b"\x00" + line * 3,
            b'\x01id,text\n1,"Gold, silver"\n2,tin\n',
            b"\x02text\tid\nWheat\t3\n",
            b"\x06Gold fell.",
        ),
        *(
            b"\x05" + mail,
            b"\x80" + line,
            b"\x84fa.jsonl\n" + line + b"\n--\nd../x\ny",
            b"\x87" + line,
            b"\x00not json\n" + line,
        ),
    ]
    for i in range(len(files)):
        for head in (b"\x0f\0\0", b"\x0d\0\x23", b"\x0d\0\x42"):
            yield head + _BETWEEN.join(files[i : i + 3])


_WORDS = (
    *split_words(
        '\n==\n¦\n--\n¦{"text": "¦"}\n¦\n==\n\x00¦\n==\n\x06¦\xed\xa0\x80¦\\ud800¦\xe2\x80\xa8¦corn¦'
        "gold and silver¦http://¦\xf0\x9f\x99\x82¦\xe2\x80\x8b¦'s"
    ),
    b"\xcc\x81" * 20,
)

TAGGING = Target(check, _seeds, _WORDS)
