"""Files that repeat the bytes at which the reader of their format stops → seconds a megabyte, and their growth."""

from __future__ import annotations

import bz2
import gzip
import io
import logging
import lzma
import tarfile
import time
import zipfile
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial
from itertools import permutations
from pathlib import Path

from harness import Row, Work

from textcat.base.errors import TextcatError
from textcat.reading import FORMATS, Batch, Block, InputSettings, batch_records, find_sources, read_batches
from textcat.tagging.concepts import Tag, concept_of
from textcat.tagging.edit_news import EDITORS
from textcat.tagging.encodings import edits_in

SIZES = (1 << 16, 1 << 18)  # bytes
QUICK = ("csv", "pdf")
_PER_FORMAT = 100  # patterns, or more
_SLOWEST = 3  # of each format are shown, and what grows
_GROWN = 1.5  # times the time per byte
_LEAST = 0.01  # seconds at the smaller size: growth from less is noise
_TAGS = [Tag(concept_of("wheat"), 90, 100)]  # written into news
_ENDINGS = {"docx": "docx", "pdf": "pdf", "eml": "eml", "html": "html", "markdown": "md"}
_XML = "<¦>¦</¦/>¦<!--¦-->¦<![CDATA[¦]]>¦<?¦?>¦<!¦\"¦'¦=¦&¦&amp;¦:¦ ¦ a='' ¦ xmlns:a=\"b\"¦<a>¦</a>¦<a:¦\n¦x¦-¦]"
_JSON = '{¦}¦[¦]¦"¦\\¦\\"¦:¦,¦1¦-¦.¦e¦null¦"a":¦[[¦{"a":¦\n¦ ¦\\ud83d'
_MAIL = (
    "\n¦\nFrom ¦From a@b Thu Jan  1 00:00:00 1970\n¦:¦a:¦\n ¦Subject: ¦=?utf-8?q?¦?=¦\n--b\n¦--¦"
    'Content-Type: text/html\n\n¦Content-Type: multipart/mixed; boundary=b\n\n¦<¦>¦"¦;¦=¦\n>From ¦&¦'
    "<p>¦\r"
)
_ITEM = "¦<ITEM ¦</ITEM ¦<ITEM>¦</ITEM>¦<ITEM/>¦<ITEM a='¦<a:ITEM"
# The bytes at which the reader of each format stops, between broken bars.
_PIECES = {
    "jsonl": _JSON,
    "json": _JSON + '¦{"text":"a"},',
    "ninjs": _JSON + '¦"uri":"a",¦"items":[¦"subject":¦<p>',
    "json-feed": _JSON + '¦"id":"a",¦"items":[¦"content_html":"¦<p>',
    "csv": ',¦"¦""¦\n¦\r¦;¦\t¦ ¦a¦",¦,"¦\n"¦=¦\\¦\'',
    "tsv": ';¦\t¦"¦""¦\n¦\r¦ ¦a¦"\t¦\t"¦\n"¦\\¦\'',
    "reuters": "<REUTERS¦<REUTERS ¦</REUTERS>¦<TEXT¦</TEXT>¦<TITLE>¦</TITLE>¦<BODY>¦</BODY>¦<DATELINE>¦<DATE>¦"
    '<TOPICS>¦<D>¦</D>¦&¦&#¦;¦>¦"¦ A="¦<AUTHOR>¦\n',
    "rcv1": _XML + "¦<newsitem>¦<p>¦</p>¦<code code='a'/>¦<codes>",
    "text": "\n¦ ¦:¦a¦a:¦\r¦Subject: ¦\t¦é¦中¦\0¦-",
    "lines": '\n¦ ¦a¦\r¦\t¦é¦中¦\0¦-¦,¦"',
    "mbox": _MAIL,
    "eml": _MAIL,
    "alto": _XML + "¦<String CONTENT='a'/>¦<TextLine>¦<HYP/>¦<SP/>¦<TextBlock ID='a'>¦<ComposedBlock>¦<alto>",
    "mets": _XML + "¦<mets>¦<div>¦<fptr FILEID='a'/>¦<area FILEID='a' BEGIN='b'/>¦<file ID='a'>¦<FLocat href='a'/>¦"
    "<dmdSec ID='a'>¦<div DMDID='a' TYPE='ARTICLE'>",
    "ris": "TY  - JOUR\n¦ER  - \n¦AB  - ¦TI  - ¦  - ¦\n¦ ¦a¦AU  - ¦KW  - ¦-¦\r¦PY  - 1",
    "nbib": "PMID- 1\n¦TI  - ¦AB  - ¦      ¦\n¦ ¦a¦- ¦MH  - ¦AU  - ¦\r¦\n\n",
    "bibtex": "@¦@article{¦{¦}¦\"¦=¦,¦#¦a¦\\¦\n¦ ¦a = {¦@string{a = ¦@comment¦%¦a # ¦\\'¦$",
    "endnote": _XML + "¦<record>¦<record ¦</record>¦<titles>¦<title>¦<keyword>a</keyword>",
    "annif": '\t¦<¦>¦<http://a>¦\n¦ ¦a¦"¦http://¦\r',
    "warc": "WARC/1.0\r\n¦\r\n\r\n¦WARC-Type: response\r\n¦Content-Length: 0\r\n¦Content-Length: 99\r\n¦"
    "HTTP/1.1 200 OK\r\n¦Transfer-Encoding: chunked\r\n¦0\r\n¦1\r\na\r\n¦:¦ ¦\n¦\r¦<¦>¦a¦"
    "Content-Type: text/html\r\n",
    "html": _XML + "¦<p>¦<div>¦</div>¦<script>¦</script>¦<table>¦<td>¦<meta ¦charset=¦<title>¦<main>¦<pre>¦<select>¦"
    "<svg>¦&#",
    "markdown": "#¦*¦_¦`¦```\n¦[¦](¦)¦!¦> ¦- ¦1. ¦\n¦ ¦    ¦<¦>¦|¦&¦\\¦~¦---\n¦[a]: b\n¦---\na: ¦\t",
    "docx": _XML + "¦<w:p>¦</w:p>¦<w:t>a</w:t>¦<w:r>¦<w:tbl>¦<w:br/>",
    "wos": "PT J\n¦ER\n\n¦EF\n¦TI ¦AB ¦   ¦DE ¦AU ¦; ¦\n¦ ¦a¦\r¦PY 1",
    "refer": "%0 a\n¦%T ¦%X ¦%K ¦%¦%A ¦%D 1¦\n¦\n\n¦ ¦a¦\r",
    "pdf": "BT ¦ET ¦(a) Tj ¦[(a)] TJ ¦q ¦Q ¦1 0 0 1 0 0 cm ¦/F1 12 Tf ¦<¦>¦(¦)¦\\¦[¦]¦%¦/¦ ¦\n¦1 ¦BI ¦EI ¦T* ¦"
    "1 0 0 1 0 0 Tm ",
    "newsml-g2": _XML + _ITEM.replace("ITEM", "newsItem"),
    "nitf": _XML + _ITEM.replace("ITEM", "nitf"),
    "newsml": _XML + _ITEM.replace("ITEM", "NewsItem"),
    "rss": _XML + _ITEM.replace("ITEM", "item"),
    "atom": _XML + _ITEM.replace("ITEM", "entry"),
    "tei": _XML + _ITEM.replace("ITEM", "TEI"),
}
# What stands before and after the pieces inside of a valid file.
_FRAMES = {
    "jsonl": ('{"text":"', '"}\n'),
    "json": ('[{"text":"a","b":', "}]"),
    "ninjs": ('{"uri":"a","version":"1","body_text":"a","b":', "}"),
    "json-feed": ('{"version":"https://jsonfeed.org/version/1.1","items":[{"id":"a","content_text":"a","b":', "}]}"),
    "csv": ("id,text\n", ""),
    "tsv": ("id\ttext\n", ""),
    "reuters": ('<REUTERS TOPICS="YES" NEWID="1"><TEXT><BODY>', "</BODY></TEXT></REUTERS>"),
    "rcv1": ('<?xml version="1.0"?><newsitem itemid="1" date="1996-08-20"><text><p>', "</p></text></newsitem>"),
    "mbox": ("From a@b Thu Jan  1 00:00:00 1970\nSubject: a\n\n", "\n"),
    "eml": ("Subject: a\nContent-Type: multipart/mixed; boundary=b\n\n", "\n"),
    "alto": ("<alto><Layout><Page><PrintSpace>", "</PrintSpace></Page></Layout></alto>"),
    "mets": ("<mets><structMap><div>", "</div></structMap></mets>"),
    "ris": ("TY  - JOUR\nAB  - ", "\nER  - \n"),
    "nbib": ("PMID- 1\nAB  - ", "\n"),
    "wos": ("FN a\nVR 1.0\nPT J\nAB ", "\nER\n\nEF\n"),
    "refer": ("%0 a\n%T b\n%X ", "\n"),
    "bibtex": ("@article{a, abstract = {", "}}\n"),
    "endnote": ("<xml><records><record><titles><title>", "</title></titles></record></records></xml>"),
    "annif": ("text\t<http://a>\n", ""),
    "warc": ("WARC/1.0\r\nWARC-Type: response\r\n", "\r\n\r\n"),
    "html": ("<!DOCTYPE html><title>a</title><body>", "</body>"),
    "markdown": ("# a\n\n", "\n"),
    "docx": (
        "<w:document xmlns:w='http://schemas.openxmlformats.org/wordprocessingml/2006/main'><w:body>",
        "</w:body></w:document>",
    ),
    "pdf": ("BT ", "ET"),
    "newsml-g2": (
        "<newsMessage><itemSet><newsItem guid='a'><contentSet><inlineXML>",
        "</inlineXML></contentSet></newsItem></itemSet></newsMessage>",
    ),
    "nitf": ("<nitf><body><body.content>", "</body.content></body></nitf>"),
    "newsml": ("<NewsML><NewsItem><NewsComponent>", "</NewsComponent></NewsItem></NewsML>"),
    "rss": ("<rss><channel><item><description>", "</description></item></channel></rss>"),
    "atom": ("<feed><entry><content>", "</content></entry></feed>"),
    "tei": ("<TEI><text><body>", "</body></text></TEI>"),
}


def measure(work: Work) -> list[Row]:
    """Read the files of each format, as `tag` reads them, and of news look for the places of tags.

    Shown are the slowest patterns of each format, and those that grow: growth is the time per byte at the larger size,
    divided by that at the smaller one, both without the time of a file of one piece.
    """
    logging.disable()
    forms = QUICK if work.quick else [*_PIECES, *_CONTAINERS]
    rows = [row for form in forms for row in _measured(form, work.folder)]
    logging.disable(logging.NOTSET)
    return rows


def patterns(form: str) -> dict[str, Callable[[int], bytes]]:
    """Return what makes a file of a format, of a size, by a name that tells its pieces."""
    if form in _CONTAINERS:
        return _CONTAINERS[form]()
    pieces, (before, behind) = _PIECES[form].split("¦"), _FRAMES.get(form, ("", ""))
    made: dict[str, tuple[str, str, str]] = {}
    for piece in pieces:
        made[f"{piece!r} alone"] = piece, "", ""
        made[f"{piece!r} inside"] = piece, before, behind
        made[f"{piece!r} cut off"] = piece, before, ""
    pairs = ["".join(pair) for pair in permutations(pieces, 2)]
    n_pairs = max(_PER_FORMAT - len(made), len(pieces))
    for pair in pairs[:: max(len(pairs) // n_pairs, 1)]:
        made[f"{pair!r} inside"] = pair, before, behind
    return {name: partial(_file, form, *parts) for name, parts in made.items()}


def _file(form: str, piece: str, before: str, behind: str, size: int) -> bytes:
    data = (before + piece * max(size // len(piece.encode()), 1) + behind).encode()
    return {"docx": _docx_of, "pdf": _pdf_of}.get(form, bytes)(data)


def _zip_of(files: Iterable[tuple[str, bytes]]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, data in files:
            archive.writestr(zipfile.ZipInfo(name), data)
    return buffer.getvalue()


def _tar_of(files: Iterable[tuple[str, bytes]]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for name, data in files:
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return buffer.getvalue()


# The names and contents of the files that fill an archive, by what is hard about them.
_MEMBERS: dict[str, Callable[[int], tuple[str, bytes]]] = {
    "empty files": lambda i: (f"{i}.txt", b""),
    "files of a line": lambda i: (f"{i}.txt", b"Wheat rose.\n"),
    "one name": lambda i: ("a.txt", b"Wheat."),
    "deep names": lambda i: ("a/" * 40 + f"{i}.txt", b"Wheat."),
    "long names": lambda i: ("a" * 200 + f"{i}.txt", b""),
    "hidden files": lambda i: (f".a/{i}", b""),
    "unsafe names": lambda i: (f"../{i}", b""),
    "names like those of repeated ones": lambda i: (f"#{i + 2}/a.txt" if i % 2 else "a.txt", b"Wheat."),
    "names without ending": lambda i: (f"{i}", b"Wheat."),
    "unknown endings": lambda i: (f"{i}.xyz", b"a"),
    "lists of subjects": lambda i: (f"{i}.key", b"a"),
    "news": lambda i: (f"{i}.xml", b"<rss><channel><item><title>a</title></item></channel></rss>"),
    "JSON Lines": lambda i: (f"{i}.jsonl", b'{"text":"a"}\n'),
    "pages": lambda i: (f"{i}.xml", b"<alto><Layout/></alto>"),
    "METS": lambda i: (f"mets{i}.xml", b"<mets><fileSec><file><FLocat href='1.xml'/></file></fileSec></mets>"),
    "METS in folders": lambda i: (f"{i}/mets.xml", b"<mets/>"),
    "zips": lambda i: (f"{i}.zip", b"PK\x05\x06" + bytes(18)),
    "compressed files": lambda i: (f"{i}.txt.gz", gzip.compress(b"a", mtime=0)),
}


def _archives(make: Callable[[Iterable[tuple[str, bytes]]], bytes]) -> dict[str, Callable[[int], bytes]]:
    def filled(member: Callable[[int], tuple[str, bytes]], size: int) -> bytes:
        n_bytes = (len(make(map(member, range(99)))) - len(make([]))) // 99
        return make(map(member, range(max(size // n_bytes, 1))))

    return {name: partial(filled, member) for name, member in _MEMBERS.items()}


def _compressed(compress: Callable[[bytes], bytes]) -> dict[str, Callable[[int], bytes]]:
    def repeated(part: bytes, size: int) -> bytes:
        return part * max(size // len(part), 1)

    parts = (b"", b"a", b"Wheat.\n", b"a" * 1024)
    return {f"parts of {len(part)} bytes": partial(repeated, compress(part)) for part in parts}


def _zst() -> dict[str, Callable[[int], bytes]]:
    import zstandard

    return _compressed(zstandard.compress)


def _parquet() -> dict[str, Callable[[int], bytes]]:
    import pyarrow as pa
    import pyarrow.parquet

    def table(n: int, columns: int, rows: int, text: str) -> bytes:
        buffer = io.BytesIO()
        names = ["text", *(f"c{i}" for i in range(1, columns))]
        pa.parquet.write_table(pa.table({name: [text] * n for name in names}), buffer, row_group_size=rows)
        return buffer.getvalue()

    # A row takes no byte where it is as the one before: their number is given, so that it grows with the size.
    return {
        "empty rows": lambda size: table(max(size // 8, 1), 1, 1 << 20, ""),
        "groups of a row": lambda size: table(max(size // 300, 1), 1, 1, "a"),
        "columns": lambda size: table(1, max(size // 300, 1), 1, "a"),
        "one text": lambda size: table(max(size // 1024, 1), 1, 1 << 20, "a" * 1024),
    }


_CONTAINERS: dict[str, Callable[[], dict[str, Callable[[int], bytes]]]] = {
    "zip": lambda: _archives(_zip_of),
    "tar": lambda: _archives(_tar_of),
    "tar.gz": lambda: _archives(lambda files: gzip.compress(_tar_of(files), 1)),
    "gz": lambda: _compressed(gzip.compress),
    "bz2": lambda: _compressed(bz2.compress),
    "xz": lambda: _compressed(lzma.compress),
    "zst": _zst,
    "parquet": _parquet,
}


def _docx_of(content: bytes) -> bytes:
    kind = "http://schemas.openxmlformats.org/officeDocument/2006/relationships/officeDocument"
    of_word = "application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"
    types = (
        "<Types xmlns='http://schemas.openxmlformats.org/package/2006/content-types'><Default Extension='rels' "
        "ContentType='application/vnd.openxmlformats-package.relationships+xml'/>"
        f"<Override PartName='/word/document.xml' ContentType='{of_word}'/></Types>"
    )
    relations = (
        "<Relationships xmlns='http://schemas.openxmlformats.org/package/2006/relationships'>"
        f"<Relationship Id='a' Type='{kind}' Target='word/document.xml'/></Relationships>"
    )
    return _zip_of(
        [
            ("[Content_Types].xml", types.encode()),
            ("_rels/.rels", relations.encode()),
            ("word/document.xml", content),
        ]
    )


def _pdf_of(content: bytes) -> bytes:
    objects = [
        b"<</Type/Catalog/Pages 2 0 R>>",
        b"<</Type/Pages/Kids[3 0 R]/Count 1>>",
        b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 99 99]/Contents 4 0 R/Resources<</Font<</F1 5 0 R>>>>>>",
        b"<</Length %d>>stream\n%s\nendstream" % (len(content), content),
        b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
    ]
    data, places = b"%PDF-1.4\n", b""
    for number, body in enumerate(objects, 1):
        places += b"%010d 00000 n \n" % len(data)
        data += b"%d 0 obj %s endobj\n" % (number, body)
    end = b"xref\n0 6\n0000000000 65535 f \n%strailer<</Size 6/Root 1 0 R>>\nstartxref\n%d\n%%%%EOF"
    return data + end % (places, len(data))


def _measured(form: str, folder: Path) -> list[Row]:
    makers, costs = patterns(form), {}
    for name, make in makers.items():
        fixed, small, large = (_spent(form, make(size), folder) for size in (0, *SIZES))
        growth = (large - fixed) / max(small - fixed, _LEAST) * SIZES[0] / SIZES[1]
        costs[name] = large / SIZES[1] * 1e6, growth
    slowest = sorted(costs, key=lambda name: -costs[name][0])
    return [
        {
            "format": form,
            "patterns": len(makers),
            "pattern": f"`` {name} ``".replace("|", "&#124;"),
            "s/MB": f"{costs[name][0]:.2f}",
            "growth": f"{costs[name][1]:.2f}",
        }
        for rank, name in enumerate(slowest)
        if rank < _SLOWEST or costs[name][1] > _GROWN
    ]


def _spent(form: str, data: bytes, folder: Path) -> float:
    """Return the processor seconds of reading a file."""
    ending = {"gz": "txt.gz", "bz2": "txt.bz2", "xz": "txt.xz", "zst": "txt.zst"}.get(form, form)
    path = folder / f"a.{ending if form in _CONTAINERS else _ENDINGS.get(form, 'x')}"
    path.write_bytes(data)
    settings = InputSettings(format=form if form in _PIECES else "", fields=("*",))
    start = time.process_time()
    with suppress(TextcatError):
        for batch in read_batches(find_sources([path], settings), settings):
            for _ in batch_records(batch, settings, all_versions=True):
                pass
            _edit(batch, settings)
    return time.process_time() - start


def _edit(batch: Batch, settings: InputSettings) -> None:
    """Look for the places of tags in news."""
    for block in batch.blocks:
        if isinstance(block, Block) and block.format in EDITORS:
            for span in FORMATS[block.format].spans(block, settings):
                with suppress(Exception):  # no tags are written into what cannot be parsed
                    edits_in("", EDITORS[block.format], span.data, _TAGS, "textcat:a")
