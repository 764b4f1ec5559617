"""Files that are one document each, which has to be taken out of its layout."""

from __future__ import annotations

import io
import re
import zipfile
import zlib
from collections.abc import Callable, Iterable
from contextlib import suppress
from random import Random

from textcat.base.errors import TextcatError
from textcat.reading import Rejection, text_of_file

from .checks import check_file
from .inputs import MAIL, MAIL_HEADERS, MAIL_PARTS, chosen, documents, with_settings
from .target import Target, split_words


def _check(form: str, ending: str) -> Callable[[bytes], None]:
    def check(data: bytes) -> None:
        settings, way, data = chosen(data)
        items = check_file(f"a{ending}", form, data, settings, way)
        assert len(items) == 1 or (way == 2 and not data)
        zones = None
        with suppress(TextcatError):
            zones = text_of_file(f"a{ending}", data)
            assert all(text.encode() or True for text in zones.values())
        if not settings.encoding and len(data) <= settings.max_bytes and items:
            # What is small enough is read alike everywhere; a longest record holds for what is unpacked, too.
            assert zones == getattr(items[0], "zones", None) or isinstance(items[0], Rejection)
        with suppress(TextcatError):
            text_of_file("", data)
        documents("folders", f"train/tin/1{ending}", data, encoding=settings.encoding or "utf-8")

    return check


_PAGE = (
    b'<!DOCTYPE html><html><head><meta charset="%s"><title>T&amp;n</title><style>x</style></head>'
    b"<body><nav>n</nav><main><p>Tin<br>r&ouml;se<script>no</script><table><tr><td>a<td>b</table><pre> a\n b</pre>"
    b"<p hidden>no</main></body></html>"
)
_TAGS = split_words(
    "<p>¦<div>¦</div>¦<title>¦</title>¦<main>¦</main>¦<table>¦<td>¦<svg>¦</p>¦<template>¦<script>¦</script>¦<!--¦"
    '-->¦<![CDATA[¦]]>¦<plaintext>¦<select>¦ hidden¦ style="display:none"¦ role=main¦&#xd800;¦&#0;¦&nbsp¦'
    "&#1114112;¦<pre>¦<?x¦<frameset>¦<noscript>¦<textarea>¦<body>¦<html>¦<math>¦\xc2\xad¦\xff¦</br>¦<b>¦"
    "<meta charset=¦utf-7>¦utf-16>¦idna>¦big5>¦gbk>¦hz>¦x-user-defined>¦<base href=/>"
)


def _html_seeds() -> Iterable[bytes]:
    pages = [_PAGE % encoding for encoding in (b"utf-8", b"latin-1", b"shift_jis", b"rot13")]
    return with_settings(*pages, pages[0].decode().encode("utf-16"), b"\xef\xbb\xbf<p>Tin", b"")


def _eml_seeds() -> Iterable[bytes]:
    plain = MAIL % (1, b"text/plain; charset=us-ascii", b"8bit", b"Wheat rose.\n")
    page = MAIL % (2, b"text/html; charset=utf-8", b"base64", b"PHA+R29sZCBmZWxsLjwvcD4=")
    parts = MAIL % (4, b'multipart/mixed; boundary="b"', b"7bit", MAIL_PARTS)
    return with_settings(plain, page.partition(b"\n")[2], parts.partition(b"\n")[2], b"Subject: h\xc3\xa9\n\n\xc3\xa9")


_MARKDOWN = (
    b"---\ntitle: Tin\n---\n# Head\n\nTin [rose](x) *a* **b** `c` ![d](e)\n\n| a | b |\n|---|---|\n| c | d |\n\n"
    b"```\nx\n```\n<div>\ny\n</div>\n\n- one\n  1. two\n\n> three [four]\n\n[four]: http://x\n"
)
_MARKS = split_words(
    "[¦](¦)¦![¦*¦**¦_¦~~¦`¦```¦> ¦- ¦1. ¦|¦|-|-|\n¦# ¦<¦<!--¦<a b=¦\\¦&¦&#0;¦    ¦\t¦\n\n¦---\n¦+++\n¦title = x¦"
    "===\n¦[a]: x\n"
)


def zipped(files: dict[str, bytes]) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return file.getvalue()


_OFFICE = "http://schemas.openxmlformats.org"
_TYPE = "application/vnd.openxmlformats-"
_WORD = {
    "[Content_Types].xml": f'<Types xmlns="{_OFFICE}/package/2006/content-types"><Default Extension="rels" '
    f'ContentType="{_TYPE}package.relationships+xml"/><Default Extension="xml" ContentType="application/xml"/>'
    f'<Override PartName="/word/document.xml" '
    f'ContentType="{_TYPE}officedocument.wordprocessingml.document.main+xml"/></Types>',
    "_rels/.rels": f'<Relationships xmlns="{_OFFICE}/package/2006/relationships"><Relationship Id="r1" Type="{_OFFICE}/'
    'officeDocument/2006/relationships/officeDocument" Target="word/document.xml"/></Relationships>',
    "word/document.xml": f'<w:document xmlns:w="{_OFFICE}/wordprocessingml/2006/main"><w:body><w:p><w:r><w:t>Tin</w:t>'
    "<w:tab/><w:br/></w:r><w:del><w:r><w:t>no</w:t></w:r></w:del></w:p><w:tbl><w:tr><w:tc><w:p><w:r><w:rPr><w:vanish/>"
    "</w:rPr><w:t>no</w:t></w:r></w:p></w:tc></w:tr></w:tbl></w:body></w:document>",
}
_PARTS_OF_WORD = (
    *split_words(
        "<w:p>¦</w:p>¦<w:t>¦</w:t>¦<w:r>¦<w:del>¦<!DOCTYPE a [<!ENTITY b 'c'>]>¦&b;¦<!--¦Target=\"¦../../a¦"
        "TargetMode=\"External\"¦file:///etc/passwd¦<?xml version='1.0'?>"
    ),
    b"<w:p>" * 300,
)


def _docx_seeds() -> Iterable[bytes]:
    files = {name: text.encode() for name, text in _WORD.items()}
    return with_settings(zipped(files), zipped(dict([*files.items()][:2])), b"\xd0\xcf\x11\xe0")


def _change_docx(data: bytes, change: Callable[[bytes], bytes], random: Random) -> bytes:
    """Change one of the files inside, or the whole."""
    head, body = data[:2], data[2:]
    with suppress(Exception):
        with zipfile.ZipFile(io.BytesIO(body)) as archive:
            files = {name: archive.read(name)[: 1 << 16] for name in archive.namelist()[:8]}
        if random.random() < 0.8:
            name = random.choice([*files])
            return head + zipped({**files, name: change(files[name])})
    return change(data)


_OBJECTS = (
    b"<</Type/Catalog/Pages 2 0 R>>",
    b"<</Type/Pages/Kids[3 0 R 3 0 R]/Count 2>>",
    b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 99 99]/Contents 4 0 R/Resources<</Font<</F 5 0 R>>"
    b"/XObject<</X 7 0 R>>>>>>",
    b"",
    b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica/ToUnicode 8 0 R/Widths[500 500]/FirstChar 65/LastChar 66>>",
    b"<</Title(Tin)>>",
)
_DRAWN = b"BT /F 12 Tf 10 20 Td (Tin) Tj [(ro)-500(se)] TJ T* <4142> ' ET q 1 0 0 1 0 0 cm /X Do Q"
_FORM = b"BT /F 12 Tf (form) Tj ET /X Do"
_CMAP = (
    b"begincmap 1 begincodespacerange <00> <ff> endcodespacerange 1 beginbfrange <41> <42> <0391> endbfrange endcmap"
)


def pdf_of(drawn: bytes, form: bytes = _FORM, cmap: bytes = _CMAP, packed: bool = False) -> bytes:
    def stream(data: bytes, entries: bytes = b"") -> bytes:
        data, coded = (zlib.compress(data), b"/Filter/FlateDecode") if packed else (data, b"")
        return b"<</Length %d%s%s>>stream\n%s\nendstream" % (len(data), coded, entries, data)

    objects = [*_OBJECTS, stream(form, b"/Type/XObject/Subtype/Form/BBox[0 0 9 9]"), stream(cmap)]
    objects[3] = stream(drawn)
    data, offsets = b"%PDF-1.4\n", []
    for number, body in enumerate(objects, 1):
        offsets.append(len(data))
        data += b"%d 0 obj%s endobj\n" % (number, body)
    table = b"".join(b"%010d 00000 n \n" % offset for offset in offsets)
    end = b"trailer<</Size %d/Root 1 0 R/Info 6 0 R>>\nstartxref\n%d\n%%%%EOF" % (len(offsets) + 1, len(data))
    return data + b"xref\n0 %d\n0000000000 65535 f \n%s%s" % (len(offsets) + 1, table, end)


_WORDS_OF_PDF = split_words(
    "<<¦>>¦[¦]¦(¦)¦ 0 R¦ obj¦endobj¦stream\n¦endstream¦/Kids¦/Parent¦/Length ¦/Filter¦/FlateDecode¦/LZWDecode¦"
    "/ASCII85Decode¦/ASCIIHexDecode¦/RunLengthDecode¦/Encrypt¦/Prev 9¦/XRefStm 9¦/Type/ObjStm¦/Type/XRef¦"
    "/W[1 1 1]¦/Count 999999999¦%%EOF¦BT ¦ ET¦ Tj¦ TJ¦ Tf¦ Do¦ cm¦/Widths¦/Encoding/Identity-H¦/Differences¦ID ¦"
    "xref\n¦trailer¦startxref\n¦beginbfrange¦beginbfchar¦<ffffffff>¦99999999999¦-1¦BI "
)


def _pdf_seeds() -> Iterable[bytes]:
    return with_settings(pdf_of(_DRAWN), pdf_of(_DRAWN, packed=True), pdf_of(b""))


def _change_pdf(data: bytes, change: Callable[[bytes], bytes], random: Random) -> bytes:
    """Draw something else, or change the whole."""
    if random.random() < 0.6:
        return change(data)
    found = re.search(rb"stream\n(.*?)\nendstream", data, re.DOTALL)
    parts = [found[1] if found else _DRAWN, _FORM, _CMAP]
    which = random.randrange(3)
    parts[which] = change(parts[which])
    return data[:2] + pdf_of(*parts, packed=random.random() < 0.5)


HTML = Target(_check("html", ".html"), _html_seeds, _TAGS)
EML = Target(_check("eml", ".eml"), _eml_seeds, MAIL_HEADERS)
MARKDOWN = Target(_check("markdown", ".md"), lambda: with_settings(_MARKDOWN, b"", b"a\r\nb"), _MARKS)
DOCX = Target(_check("docx", ".docx"), _docx_seeds, _PARTS_OF_WORD, _change_docx)
PDF = Target(_check("pdf", ".pdf"), _pdf_seeds, _WORDS_OF_PDF, _change_pdf)
