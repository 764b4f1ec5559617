"""Compressed files and archives: as they are, and made of instructions, so that what lies behind sums is met, too."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import tarfile
import tempfile
import zipfile
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from unittest import mock

from textcat.base.errors import TextcatError
from textcat.reading import InputSettings, Rejection, compression, read_documents
from textcat.reading.containers import hidden
from textcat.reading.faults import FaultKind

from .checks import Item, check_sources, source
from .inputs import settings_of
from .target import Target, split_words

NAMES = (
    *("a.jsonl.gz", "a.csv.bz2", "a.txt.xz", "a.sgm.zst", "a.zip", "a.tar", "a.tar.gz", "a.tar.bz2", "a.tar.xz"),
    *("a.tar.zst", "a.tgz", "a", "a.zip.gz", "a.mbox.zst", "a.parquet.gz", "a.xml.xz"),
)
NEXT = b"\n--\n"  # between the files of an archive
_FOLDER = tempfile.TemporaryDirectory(prefix="textcat-fuzz-", dir="/dev/shm" if Path("/dev/shm").is_dir() else None)


def _zstandard(data: bytes) -> bytes:
    import zstandard

    return zstandard.compress(data)


_PACKERS: dict[str, Callable[[bytes], bytes]] = {
    ".gz": lambda data: gzip.compress(data, mtime=0),
    ".tgz": lambda data: gzip.compress(data, mtime=0),
    ".bz2": bz2.compress,
    ".xz": lambda data: lzma.compress(data, preset=0),
    ".zst": _zstandard,
}


# 16 MiB are no bomb. With less, the limit itself is met, and the checks can hold what several readings gave.
@mock.patch.object(compression, "FLOOR", 1 << 20)
def check(data: bytes) -> None:
    how, byte, other, place, flipped = data[:5].ljust(5, b"\0")
    name, settings = NAMES[how & 15], settings_of(byte, other)
    packed = built(name, data[5:], how >> 4)
    if flipped and packed:
        at = place * len(packed) >> 8
        packed = packed[:at] + bytes([packed[at] ^ flipped]) + packed[at + 1 :]
    as_file, forwards, piped = (check_sources([source(name, packed, settings, way)], settings)[1] for way in range(3))
    assert as_file == forwards, "what can be sought in is read otherwise"
    broken = any(isinstance(item, Rejection) and item.kind is FaultKind.DAMAGE for item in as_file)
    # How much can be had of what is damaged, or a bomb, depends on how much of it comes at a time. And what is typed
    # is a text, unless something else shows.
    if "." in name and name != "a.zip.gz" and not broken:
        # An empty file is a document, or rejected; an empty pipe is neither.
        assert as_file == piped or not (piped or _filled(as_file)), "what comes through a pipe is read otherwise"
    _check_corpus(name, packed)


def _filled(items: Iterable[Item]) -> list[Item]:
    """Leave out what has nothing in it."""
    return [item for item in items if (item.length if isinstance(item, Rejection) else any(item.zones.values()))]


def _check_corpus(name: str, data: bytes) -> None:
    """Check that a corpus in the same packing is read or refused in a sentence, and that no name leads out of it."""
    path = Path(_FOLDER.name, name)
    path.write_bytes(data)
    names: list[str] = []
    with suppress(TextcatError):
        read_documents([path], InputSettings(), names.append)  # which returns nothing, so that no file is read
        for inside in names:
            assert not hidden(inside)
            assert ".." not in inside.split("/")
    with suppress(TextcatError):
        read_documents([path], InputSettings())


def built(name: str, data: bytes, how: int) -> bytes:
    """Take the bytes as they are (0, with a tar's sums made to fit), or make of them what the name says."""
    if how & 3 == 0:
        return _summed(data)
    if ".zip" in name:
        data = _zip(data)
    elif ".tar" in name or ".tgz" in name:
        data = _tar(data) if how & 1 else _summed(data)
    packer = next((pack for ending, pack in _PACKERS.items() if name.endswith(ending)), None)
    if packer is None:
        return data
    return packer(data[: len(data) // 2]) + packer(data[len(data) // 2 :]) if how & 8 else packer(data)


def _files(data: bytes) -> Iterable[tuple[bytes, str, bytes]]:
    for part in data.split(NEXT)[:20]:
        head, _, content = part.partition(b"\n")
        yield head[:1], head[1:].decode("utf-8", "surrogateescape"), content


def _zip(data: bytes, depth: int = 0) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for kind, name, content in _files(data):
            name = name.encode("utf-8", "replace").decode()
            info = zipfile.ZipInfo(name or "a")
            if kind == b"z" and depth < 5:
                content = _zip(content.replace(b"\n-\n", NEXT), depth + 1)
            if kind == b"l":
                info.external_attr = 0o120777 << 16
            method = {b"d": zipfile.ZIP_DEFLATED, b"b": zipfile.ZIP_BZIP2, b"x": zipfile.ZIP_LZMA}.get(kind, 0)
            if kind == b"m":
                content, method = content[:10] * 20_000, zipfile.ZIP_DEFLATED
            with suppress(ValueError, UserWarning):
                archive.writestr(info, content, compress_type=method)
            if kind == b"e":
                info.flag_bits |= 1
            if kind == b"s":
                info.file_size = 1 << 40
            if kind == b"u":
                info.compress_type = 77
    return buffer.getvalue()


_TYPES = {
    b"l": tarfile.SYMTYPE,
    b"h": tarfile.LNKTYPE,
    b"c": tarfile.CHRTYPE,
    b"p": tarfile.FIFOTYPE,
    b"d": tarfile.DIRTYPE,
    b"s": tarfile.GNUTYPE_SPARSE,
    b"k": tarfile.CONTTYPE,
    b"g": tarfile.XGLTYPE,
    b"x": tarfile.XHDTYPE,
    b"n": tarfile.GNUTYPE_LONGNAME,
    b"q": b"Z",
}


def _tar(data: bytes) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.GNU_FORMAT) as archive:
        for kind, name, content in _files(data):
            info = tarfile.TarInfo(name)
            info.type = _TYPES.get(kind, tarfile.REGTYPE)
            info.size = len(content) * (1000 if kind == b"b" else 1)
            with suppress(ValueError, OSError):
                buffer.write(info.tobuf(tarfile.GNU_FORMAT, errors="surrogateescape") + content)
                buffer.write(bytes(-len(content) % 512))
                archive.offset = buffer.tell()
    return buffer.getvalue()


def _summed(data: bytes) -> bytes:
    """Make the sums of a tar's headers fit."""
    blocks = [data[i : i + 512] for i in range(0, len(data), 512)]
    for i, block in enumerate(blocks):
        if block[257:262] == b"ustar" and len(block) == 512:
            total = 256 + sum(block[:148]) + sum(block[156:])
            blocks[i] = block[:148] + b"%06o\0 " % total + block[156:]
    return b"".join(blocks)


def _seeds() -> Iterable[bytes]:
    line = b'{"text": "Wheat rose."}\n'
    files = NEXT.join(
        [b"fa.jsonl\n" + line, b"d./b/c.txt\nGold fell.\n", b"l../up.txt\n", b"m.hidden\nx", b"dbig.txt\n" + b"a" * 99]
    )
    nested = NEXT.join([b"zin.zip\nfd.txt\ntin\n-\nzon.zip\nfe.jsonl\n" + line, b"hlink\nx", b"f/etc/a.txt\nno"])
    for how, name in enumerate(NAMES):
        settings = b"\x0f\0\0\0" if how % 2 else b"\x0d\0\0\0"
        content = files if ".tar" in name or ".zip" in name or "tgz" in name else line * 3
        yield bytes([how | 16]) + settings + content
        yield bytes([how]) + settings + built(name, content, 1)
    yield bytes([4 | 16]) + b"\x0f\0\0\0" + nested
    yield bytes([5 | 16]) + b"\x0f\0\0\0" + nested
    yield bytes([0 | 144]) + b"\x0f\0\0\0" + line * 2
    pax = io.BytesIO()
    with tarfile.open(fileobj=pax, mode="w", format=tarfile.PAX_FORMAT) as archive:
        info = tarfile.TarInfo("ä" * 110 + ".txt")
        info.size, info.pax_headers = 4, {"comment": "x", "GNU.sparse.major": "1", "GNU.sparse.minor": "0"}
        archive.addfile(info, io.BytesIO(b"text"))
    yield bytes([5]) + b"\x0f\0\0\0" + pax.getvalue()


_WORDS = (
    *split_words(
        "\n--\n¦\n-\n¦../¦/etc/¦C:\\¦..\\¦\x1f\x8b\x08¦BZh9¦\xfd7zXZ\x00¦PK\x03\x04¦PK\x01\x02¦PK\x05\x06¦PK\x06\x06¦"
        "ustar\x0000¦ustar  \x00¦(\xb5/\xfd¦P*M\x18¦.jsonl¦.zip¦.tar¦.gz¦77777777777¦"
        "\x80\xff\xff\xff\xff\xff\xff\xff¦GNU.sparse.map=¦GNU.sparse.realsize=¦GNU.sparse.size=¦9 size=¦12 path=¦"
        "hdrcharset=BINARY\n"
    ),
    b"\0" * 512,
    b"\xff" * 8,
)

PACKED = Target(check, _seeds, _WORDS)
