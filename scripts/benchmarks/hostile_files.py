"""Files that repeat the bytes at which the reader of their format stops → seconds a megabyte, and their growth."""

from __future__ import annotations

import argparse
import io
import logging
import time
import zipfile
from collections.abc import Callable
from contextlib import suppress
from itertools import permutations
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from pages import Conditions, Page, publish

from textcat.base.errors import TextcatError
from textcat.reading import InputSettings, batch_records, find_sources, read_batches

SIZES = (1 << 16, 1 << 18)  # bytes
_PER_FORMAT = 100  # patterns, or more
_SLOWEST = 3  # of each format are shown, and what grows
_GROWN = 1.5  # times the time per byte
_LEAST = 0.01  # seconds at the smaller size: growth from less is noise
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


def main(arguments: list[str]) -> None:
    """Measure the formats, and write the page."""
    parser = argparse.ArgumentParser(prog="scripts/benchmark hostile-files", description=__doc__)
    parser.add_argument("--formats", nargs="*", default=[*_PIECES], choices=[*_PIECES], help="only these")
    parser.add_argument("--out", type=Path, help="also write the page to this folder, such as docs/benchmarks")
    options = parser.parse_args(arguments)
    logging.disable()
    conditions = Conditions("none: files are only read")
    with TemporaryDirectory(prefix="textcat-hostile-") as folder:
        rows = [row for form in options.formats for row in _measured(form, Path(folder))]
    publish([Page("hostile-files", "Hostile files", conditions.head(), _TEXT, rows)], options.out)


_TEXT = f"""Each file repeats one or two of the pieces at which the reader of its format stops: alone, inside of a valid
file, or cut off. It is read as `tag` reads it. Seconds are processor time of one run, with {SIZES[1] // 1024} KiB.
Growth is the time per byte at that size, divided by that at {SIZES[0] // 1024} KiB, both without the time of a file of
one piece. Shown are the {_SLOWEST} slowest patterns of each format, and those that grow more than {_GROWN} times."""


def patterns(form: str) -> dict[str, Callable[[int], bytes]]:
    """Return what makes a file of a format, of a size, by a name that tells its pieces."""
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
    return {name: lambda size, parts=parts: _file(form, size, *parts) for name, parts in made.items()}


def _file(form: str, size: int, piece: str, before: str, behind: str) -> bytes:
    data = (before + piece * max(size // len(piece.encode()), 1) + behind).encode()
    return {"docx": _docx_of, "pdf": _pdf_of}.get(form, bytes)(data)


def _docx_of(content: bytes) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("[Content_Types].xml", b"<Types/>")
        archive.writestr("word/document.xml", content)
    return buffer.getvalue()


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


def _measured(form: str, folder: Path) -> list[dict[str, Any]]:
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
    path = folder / f"a.{_ENDINGS.get(form, 'x')}"
    path.write_bytes(data)
    settings = InputSettings(format=form, fields=("*",))
    start = time.process_time()
    with suppress(TextcatError):
        for batch in read_batches(find_sources([path], settings), settings):
            for _ in batch_records(batch, settings, all_versions=True):
                pass
    return time.process_time() - start
