"""The formats of archives, and the readers of corpora that share their code: as plain files."""

from __future__ import annotations

import io
import json
import tempfile
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from textcat.base.errors import TextcatError
from textcat.corpus.cards import Card
from textcat.corpus.documents import Document
from textcat.reading import Block, InputSettings, Record, Rejection, UnreadableError, formats, read_documents
from textcat.reading.decoding import exact_encoding
from textcat.reading.formats import annif
from textcat.reading.formats.references import common_fields, ris_entry

from .checks import LONE_RETURN, Item, check_file
from .target import Target, split_words

_BLOCKS = (1, 40, 300, 1 << 20)
_LARGEST = (30, 500, 1 << 20, 1 << 20)
_ENCODINGS = ("", "", "", "latin-1", "utf-8", "cp1252", "shift_jis", "utf-16")
_FIELDS = (("text",), ("text",), ("body",), ("title",), ("text", "body"), ("title", "text"), ("text",), ("id", "text"))
_FOLDER = tempfile.TemporaryDirectory(prefix="textcat-fuzz-", dir="/dev/shm" if Path("/dev/shm").is_dir() else None)


def settings_of(byte: int, other: int) -> InputSettings:
    """Choose settings by two bytes."""
    return InputSettings(
        text_fields=_FIELDS[other >> 3 & 7],
        plain_quotes=bool(other >> 6 & 1),
        encoding=_ENCODINGS[other & 7],
        max_bytes=_LARGEST[byte >> 2 & 3],
        block_bytes=_BLOCKS[byte & 3],
    )


def chosen(data: bytes) -> tuple[InputSettings, int, bytes]:
    """Take the settings, and whether it is a file or a pipe, off the start of an input."""
    head = data[:2].ljust(2, b"\0")
    return settings_of(*head), (head[0] >> 4) % 3, data[2:]


def with_settings(*files: bytes) -> Iterable[bytes]:
    """Put some settings before valid files."""
    for file in files:
        for head in (b"\x0f\0", b"\x0d\0", b"\x1e\x03", b"\x2d\0", b"\x0e\x0b"):
            yield head + file


def documents(reader: str, name: str, data: bytes, **options: Any) -> list[Document] | None:
    """Read a file as part of a corpus; None if it is refused."""
    path = Path(_FOLDER.name, name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    card = Card("a", path.parent, reader, [name], options=options)
    try:
        return read_documents([path], card.settings())
    except TextcatError:
        return None


# --- JSON Lines ------------------------------------------------------------------------------------------------------


def check_jsonl(data: bytes) -> None:
    settings, way, data = chosen(data)
    items = check_file("a.jsonl", "jsonl", data, settings, way)
    is_array = data.removeprefix(b"\xef\xbb\xbf").lstrip().startswith(b"[")
    if (
        len(data) <= settings.max_bytes
        and settings.encoding != "utf-16"
        and not is_array
        and not exact_encoding("", data[:4])
    ):
        assert len(items) in _numbers_of_lines(data, settings)
    # Small settings are for the cutting; with these, both readers must agree.
    _check_agreement(data)


def _check_agreement(data: bytes) -> None:
    """Check that a line which the reader of corpora takes is tagged with the same texts."""
    for line in data.split(b"\n")[:20]:
        (document, *_) = documents("jsonl", "a.jsonl", line) or [None]
        items = list(formats.block_records(Block("a.jsonl", "jsonl", line), InputSettings()))
        if document is None or LONE_RETURN.search(line):  # which end lines, but not of a block
            continue
        if b"\0" in line:
            assert isinstance(items[0], Rejection)
            continue
        (record,) = items
        assert isinstance(record, Record), (record, document)
        assert record.id == document.id, (record, document)
        assert _filled(record.zones) == _filled(document.zones)


def _filled(zones: dict[str, str]) -> dict[str, str]:
    return {name: text for name, text in zones.items() if text}


def _jsonl_seeds() -> Iterable[bytes]:
    objects = [
        {"id": "1", "text": "Wheat rose."},
        {"id": 2, "title": "Gold", "body": "Gold fell.", "topics": ["gold"], "split": "train", "date": "1987"},
        {"zones": {"title": "Tin", "body": "Tin é 🙂"}},
        {"id": None, "text": "x" * 60, "other": [1, 2.5e10, True, None, {"a": {}}]},
    ]
    lines = [json.dumps(fields).encode() for fields in objects]
    plain = json.dumps(objects[2], ensure_ascii=False).encode()
    broken = [
        b'{"text": "cut',
        b"[1]",
        b'{"text": "\\ud83d"}',
        b'{"text": 3, "text": "b"}',
        b'{"id": 1e400, "text": ""}',
    ]
    return with_settings(b"\n".join(lines), b"\xef\xbb\xbf" + plain + b"\r\n\n" + lines[0], b"\n".join(broken), b"")


_JSON = (
    *(b'"text"', b'"id"', b'"title"', b'"body"', b'"zones"', b'"topics"', b'"split"', b'"date"', b'"train"'),
    *(b"{", b"}", b"[", b"]", b'":"', b'","', b'{"text":"a"}\n', b"\\ud800", b"\\udc00", b"\\u0000", b"\\n"),
    *(b"null", b"true", b"false", b"NaN", b"-Infinity", b"1e999", b"18446744073709551616", b"-0", b"\xef\xbb\xbf"),
    *(b"\r\n", b"\n", b"\xed\xa0\x80", b"[" * 100, b'{"a":' * 100),
)


def check_array(data: bytes) -> None:
    settings, way, data = chosen(data)
    items = check_file("a.json", "json", data, settings, way)
    in_bytes = settings.encoding != "utf-16" and not exact_encoding("", data[:4])
    if in_bytes and data.lstrip().startswith(b"[") and not any(isinstance(item, Rejection) for item in items):
        assert data.rstrip(b" \t\r\n[,\xef\xbb\xbf").endswith(b"]"), "nothing tells that an array is cut off"
    documents("json", "a.json", data)


def _array_seeds() -> Iterable[bytes]:
    objects = [{"id": 1, "text": "Wheat {rose}."}, {"title": 'Gold "fell"', "body": "a \\ b", "topics": [1, "gold"]}]
    plain = json.dumps(objects).encode()
    return with_settings(
        plain,
        plain[:-1],
        json.dumps(objects * 3, indent=2).encode(),
        b"[]",
        b"[\n" + plain[1:-20],
        b'[1, {"text": "a"}, "}"]',
    )


# --- CSV and TSV -----------------------------------------------------------------------------------------------------


def check_delimited(data: bytes) -> None:
    settings, way, data = chosen(data)
    form = "tsv" if data[:1] == b"t" else "csv"
    check_file(f"a.{form}", form, data[1:], settings, way)


def _delimited_seeds() -> Iterable[bytes]:
    return with_settings(
        b'cid,text\n1,Wheat rose.\n2,"Gold, and ""silver"",\nfell."\n3,"an open quote\n4,more\n',
        b"c\xef\xbb\xbf\r\ntitle;body;id\r\na;b;3\r\n;;\r\n",
        b'c"text"\n"a"b\n"c"\n""\n',
        b"ctext|id\n" + b"a word|1\n" * 8,
        b'tid\ttext\n1\tTin "rose"\n2\t"tab\there"\n\n3\ttoo\tmany\n',
    )


_DELIMITED = (b'"', b'""', b',"', b'",', b'"\n', b'\n"', b"\r\n", b"\n", b";", b"\t", b"|", b"text", b"id", b"title")

# --- Annif -----------------------------------------------------------------------------------------------------------


def check_annif(data: bytes) -> None:
    settings, way, data = chosen(data)
    documents("annif", "a.tsv", data)
    for name in ("a.tsv", "a.key"):
        with suppress(UnreadableError):
            assert all(annif.read_subjects(name, data, settings.encoding))
    # Whatever follows a first line of Annif's is lines of its.
    data = data if settings.encoding == "utf-16" else b"x\t<urn:a>\n" + data
    items = check_file("a.tsv", "annif", data, settings._replace(format="annif"), way)
    _check_lines(items, data, settings)


def _annif_seeds() -> Iterable[bytes]:
    return with_settings(
        b"Tin rose\t<http://e.org/1> <http://e.org/2>\nno subject\t\nno tab\n\n\tno text <a:b>\n",
        b"\xef\xbb\xbfGold\t<urn:1>\t<urn:2>\r\nbroken\t<urn:1\nhttp://e.org/3\n",
        b"<http://e.org/1>\ttin\t1.1\n<http://e.org/2>\n",
        b"tin\ngold\n",
    )


_ANNIF = (b"<", b">", b"<urn:a>", b"\t", b"\t<http://e.org/1>\n", b"\n", b"\r\n", b" ", b"\x00", b"\xef\xbb\xbf")

# --- Parquet ---------------------------------------------------------------------------------------------------------


def check_parquet(data: bytes) -> None:
    settings, way, data = chosen(data)
    if settings.encoding == "utf-16":
        settings = settings._replace(encoding="")
    items = check_file("a.parquet", "parquet", data, settings, way)
    rows = [item.position for item in items if item.position]
    assert rows == list(range(1, len(rows) + 1)), f"rows {rows}"


def _parquet_seeds() -> Iterable[bytes]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    texts = ["Wheat rose.", None, "Gold é", "", "x" * 50]
    tables = [
        pa.table({"id": [1, 2, 3, 4, None], "text": texts}),
        pa.table({"id": list("abcde"), "title": texts, "body": pa.array(texts).dictionary_encode()}),
        pa.table({"text": [text and text.encode() for text in texts], "n": [[1], [], None, [2, 3], [4]]}),
    ]
    files = []
    for table in tables:
        for how in ({"compression": "none", "row_group_size": 2}, {"compression": "snappy"}, {"compression": "zstd"}):
            sink = io.BytesIO()
            pq.write_table(table, sink, store_schema=False, **how)
            files.append(sink.getvalue())
    return (head + file for file in files for head in (b"\x0f\0", b"\x1d\0"))


# --- news stories: Reuters-21578's SGML, RCV1's XML ------------------------------------------------------------------


def check_reuters(data: bytes) -> None:
    settings, way, data = chosen(data)
    items = check_file("a.sgm", "reuters", data, settings, way)
    if len(data) <= settings.max_bytes and settings.encoding != "utf-16":
        assert len(items) >= data.count(b"<REUTERS")
    for split in ("modapte", "modhayes"):
        documents("reuters", "a.sgm", data, split=split)


_STORY = (
    b'<REUTERS TOPICS="YES" LEWISSPLIT="TRAIN" CGISPLIT="TRAINING-SET" OLDID="5544" NEWID="%d">\n'
    b"<DATE>26-FEB-1987</DATE><TOPICS><D>cocoa</D><D>tin</D></TOPICS><PLACES></PLACES>\n<TEXT%s>&#2;\n"
    b"<TITLE>A &lt;TITLE></TITLE><AUTHOR>B</AUTHOR>loose<DATELINE> SALVADOR, </DATELINE><BODY>Showers &amp; rain\n&#3;"
    b"</BODY></TEXT>\n</REUTERS>\n"
)


def _reuters_seeds() -> Iterable[bytes]:
    head = b'<!DOCTYPE lewis SYSTEM "lewis.dtd">\n'
    stories = [_STORY % (1, b""), _STORY % (2, b' TYPE="BRIEF"'), _STORY % (3, b' TYPE="UNPROC"')]
    return with_settings(head + b"".join(stories), stories[0][:-20] + stories[1], b"text\n" + stories[2] + b"rest")


_SGML = (
    *(b"<REUTERS", b"</REUTERS>", b"<TEXT>", b"</TEXT>", b"<TITLE>", b"</TITLE>", b"<BODY>", b"</BODY>", b"<TOPICS>"),
    *(b"</TOPICS>", b"<D>", b"</D>", b"<DATE>", b"</DATE>", b"<DATELINE>", b"</DATELINE>", b"<AUTHOR>", b"</AUTHOR>"),
    *(b'NEWID="', b'TOPICS="YES"', b'LEWISSPLIT="TEST"', b'TYPE="BRIEF"', b'TYPE="UNPROC"', b"&#0;", b"&#x10ffff;"),
    *(b"&#9999999;", b"&#xd800;", b"&lt;", b"&Eacute;", b"&nosuch;", b"<!DOCTYPE lewis>", b"\x03", b"\x7f"),
)


def check_rcv1(data: bytes) -> None:
    settings, way, data = chosen(data)
    items = check_file("a.xml", "rcv1", data, settings, way)
    assert len(items) == 1 or (way == 2 and not data)
    for version, span in (("1", ""), ("2", "1996-08-20 to 1996-08-31"), ("2", "1 to 99999")):
        documents("rcv1", "a.xml", data, version=version, train=span)


_NEWSITEM = """<?xml version="1.0" encoding="%s" ?>
<newsitem itemid="2286" id="root" date="1996-08-20" xml:lang="en"><title>MEXICO: Récovery.</title>
<headline>Recovery &amp; more &#233;</headline><byline>A</byline><dateline>MEXICO CITY</dateline>
<text><p>Emerging &lt; evidence</p><p><![CDATA[second]]></p></text><copyright>R</copyright><metadata>
<codes class="bip:countries:1.0"><code code="MEX"></code></codes><codes class="bip:topics:1.0">
<code code="E11"><editdetail attribution="R" action="confirmed" date="1996-08-20"/></code><code code="ECAT"/>
<code code="GSPO"/><code code="C1511"/></codes></metadata></newsitem>
"""


def _rcv1_seeds() -> Iterable[bytes]:
    bomb = b'<!DOCTYPE a [<!ENTITY b "bb"><!ENTITY c "&b;&b;">]><newsitem itemid="1" date="1996-08-20">&c;</newsitem>'
    return with_settings(
        *((_NEWSITEM % encoding).encode(encoding) for encoding in ("iso-8859-1", "utf-8", "utf-16")),
        b'<newsitem itemid="1" date="1996-08-20"/>',
        bomb,
    )


_XML = (
    *(b"<newsitem", b"</newsitem>", b' itemid="1"', b' date="1996-08-20"', b"<code", b' code="', b"<codes", b"/>"),
    *(b'class="bip:topics:1.0"', b'class="bip:countries:1.0"', b"<title>", b"<headline>", b"<p>", b"</p>", b"<text>"),
    *(b"<![CDATA[", b"]]>", b"<!--", b"-->", b"<!DOCTYPE a [", b"<!ENTITY a 'b'>", b"]>", b"&a;", b"&#0;", b"&#55296;"),
    *(b'<?xml version="1.0" encoding="', b'utf-16"', b'cp037"', b'rot13"', b'idna"', b"?>", b"<a>" * 50, b"%a;"),
    *(b"<!ENTITY % a SYSTEM 'file:///etc/passwd'>", b'utf-7"', b'unknown"', b'ascii"', b'hz"', b'big5"', b'koi8-r"'),
)

# --- mail and texts --------------------------------------------------------------------------------------------------


def check_mbox(data: bytes) -> None:
    settings, way, data = chosen(data)
    items = check_file("a.mbox", "mbox", data, settings, way)
    if data.strip() and len(data) <= settings.max_bytes and settings.encoding != "utf-16":
        assert items


MAIL = (
    b"From a@b.org Thu Jan  1 00:00:00 1970\nMessage-ID: <%d@b>\nSubject: =?utf-8?q?Gr=C3=BC=C3=9Fe?= and =?x?b?!!?=\n"
    b"Content-Type: %s\nContent-Transfer-Encoding: %s\n\n%s\n\n"
)
MAIL_PARTS = (
    b"preamble\n--b\nContent-Type: text/plain; charset=latin-1\n\nh\xe9\n--b\nContent-Type: text/html\n\n<p>a<style>x"
    b"</style></p>\n--b\nContent-Type: text/plain\nContent-Disposition: attachment\n\nno\n--b--\n"
)


def _mbox_seeds() -> Iterable[bytes]:
    plain = MAIL % (1, b"text/plain; charset=us-ascii", b"8bit", b"Wheat rose.\n>From here\n")
    coded = MAIL % (2, b"text/html; charset=utf-8", b"base64", b"PHA+R29sZCBmZWxsLjwvcD4=")
    quoted = MAIL % (3, b"text/plain; charset=nosuch", b"quoted-printable", b"Gold =C3=A9 =\nfell=ZZ")
    parts = MAIL % (4, b'multipart/mixed; boundary="b"', b"7bit", MAIL_PARTS)
    uu = MAIL % (5, b"text/plain", b"x-uuencode", b"begin 644 a\n#86)C\n`\nend")
    inner = MAIL % (6, b"message/rfc822", b"7bit", b"Subject: inner\n\ninside")
    return with_settings(plain + coded, quoted + parts, uu + inner, b"no mail\n\n" + plain)


MAIL_HEADERS = (
    *(b"\n\nFrom a@b Thu Jan  1 00:00:00 1970\n", b"From ", b"Subject: ", b"Message-ID: ", b"Content-Type: "),
    *(b"text/plain", b"text/html", b"multipart/mixed; boundary=b", b"\n--b\n", b"--b--", b"message/rfc822"),
    *(b"message/external-body", b"message/partial", b"message/delivery-status", b"multipart/digest"),
    *(b"Content-Transfer-Encoding: ", b"base64", b"quoted-printable", b"x-uuencode", b"charset=utf-7"),
    *(b"charset*=utf-8''x", b"charset*0=a", b"charset=idna", b"charset=rot13", b"charset=undefined", b"=?utf-8?b?"),
    *(b"?=", b"=?utf-8?q?", b"=?unknown-8bit?q?", b"Content-Disposition: attachment", b"<script>", b"<![", b"<!--"),
    *(b"&#xd800;", b"&#1114112;", b"begin 644 a\n", b"charset=utf-16", b"charset=punycode", b"charset=unicode_escape"),
)


def check_text(data: bytes) -> None:
    settings, way, data = chosen(data)
    items = check_file("a.txt", "text", data, settings, way)
    assert len(items) == 1 or (way == 2 and not data)
    items = check_file("b.txt", "lines", data, settings._replace(lines=True), way)
    _check_lines(items, data, settings)
    for headers in ("keep", "title", "subject", "drop"):
        documents("folders", "train/tin/1", data, headers=headers, encoding=settings.encoding or "utf-8")


def _check_lines(items: list[Item], data: bytes, settings: InputSettings) -> None:
    if len(data) <= settings.max_bytes and settings.encoding in ("", "latin-1"):
        assert len(items) in _numbers_of_lines(data, settings)


def _numbers_of_lines(data: bytes, settings: InputSettings) -> set[int]:
    """Return how many lines have something in them, if lone carriage returns end lines, and if they do not."""
    data = data.removeprefix(b"\xef\xbb\xbf") if settings.encoding in ("", "utf-8") else data
    return {sum(bool(line.strip()) for line in text.split(b"\n")) for text in (data, LONE_RETURN.sub(b"\n", data))}


def _text_seeds() -> Iterable[bytes]:
    mail = b"From: a@b\nSubject: Tin\n and gold\nLines: 3\n\nTin rose.\n"
    return with_settings(
        b"Wheat rose.\r\n\r\nGold \xc3\xa9 fell.\n\n", b"\xef\xbb\xbfone\ntwo\x00\n\xff", mail, b"a" * 90, b""
    )


JSONL = Target(check_jsonl, _jsonl_seeds, _JSON)
ARRAY = Target(check_array, _array_seeds, (*_JSON, b'\\"', b"},{", b"]"))
ANNIF = Target(check_annif, _annif_seeds, _ANNIF)
DELIMITED = Target(check_delimited, _delimited_seeds, _DELIMITED)
# pyarrow asks for as much as the header of a page claims, up to 2 GB.
PARQUET = Target(check_parquet, _parquet_seeds, (b"PAR1", b"text", b"body", b"title", b"id"), None, 2560, 60)


def _references(form: str, ending: str) -> Callable[[bytes], None]:
    """Return a check of a list of references, each of which must come back from RIS with its title."""

    def check(data: bytes) -> None:
        settings, way, data = chosen(data)
        settings = settings._replace(format=form, fields=("authors", "year") if settings.plain_quotes else ("*",))
        for item in check_file(f"a{ending}", form, data, settings, way):
            if isinstance(item, Record):
                fields = {**item.zones, **common_fields(item.fields or {})}
                _check_ris(ris_entry(fields), fields)
        documents(form, f"a{ending}", data, encoding=settings.encoding or "utf-8")

    return check


def _check_ris(entry: str, fields: Mapping[str, object]) -> None:
    title = " ".join(str(fields.get("title", "")).split())
    if title:
        block = Block("a", "ris", entry.encode("utf-8", "replace"))
        (again,) = formats.block_records(block, InputSettings())
        assert isinstance(again, Record)
        assert again.zones["title"] == title


_RIS = (
    b"TY  - JOUR\nID  - 1\nAU  - Li, Y.\nTI  - Tin\n rose\nAB  - So.\nPY  - 2002///\nSP  - 1\nEP  - 9\n"
    b"DO  - 10.1000/a\nER  - \n"
)
_MEDLINE = (
    b"PMID- 1\nTI  - Tin\n      rose\nAB  - So.\nFAU - Li, Y\nAU  - Li\nDP  - 2002 Jan\nLID - 10.1000/a [doi]\n"
    b"MH  - tin\n\n"
)
_BIBTEX = (
    b'@article{a,\n title = {Tin {R}ose \\"{o}\\ss},\n author = "Li, Y and {A B}",\n year = 2002 # "a",\n'
    b" keywords = {a; b}}\n"
)
_ENDNOTE = (
    b'<?xml version="1.0"?><xml><records><record><ref-type name="Book">6</ref-type><titles><title><style>Tin</style>'
    b"</title></titles><abstract>So &amp; so</abstract><dates><year>2002</year></dates></record></records></xml>"
)
_REFER = (
    b"%0 Journal Article\n%T Tin\n  rose\n%A Li, Y.\n%D 2002\n%P 1-9\n%X So.\n\nSo.\n%K tin\nore; gold\n"
    b"%R 10.1000/a\n\n%0 Book\n%T Gold\n\n%A Doe\n%T Ore\n"
)
_WOS = (
    b"FN Clarivate Analytics Web of Science\nVR 1.0\nPT J\nAU Li, Y\n   Doe, J\nTI Tin\n   rose\nAB So.\n"
    b"DE tin; ore\nPY 2002\nBP 1\nEP 9\nDI 10.1000/a\nUT WOS:1\nER\n\nPT B\nTI Gold\nER\n\nEF"
)
_TAGS_OF_REFER = (
    *(b"\n%0 Book", b"\n%T Tin", b"\n%A Li", b"\n%K a;b", b"\n\n%", b"\r\n\r\n%X ", b"\xef\xbb\xbf", b"\x0b"),
)
_TAGS_OF_WOS = (b"\nPT J\n", b"\nER\n", b"\n   ", b"\nTI ", b"\nAU ", b"\nDE a; b", b"\nEF", b"\xef\xbb\xbf", b"\r")
_TAGS_OF_RIS = split_words("\nTY  - ¦\nER  - ¦  - ¦\nTI  - ¦\nAU  - ¦\nSP  - ¦\nKW  - a;b¦\xef\xbb\xbf¦\x0b")
_TAGS_OF_MEDLINE = split_words("\nPMID- 1¦\nTI  - ¦\n      ¦\nLID - ¦ [doi]¦\nGN  - ¦\x1c¦\xe2\x80\xa8")
_WORDS_OF_BIBTEX = (
    *(b"@article{", b"@comment{", b"@string(", b" = ", b" # ", b"{", b"}", b'"', b"\\", b"\\'e", b"\\c{c}", b"\n@a{b,"),
    *(b" and ", b"keywords={", b"title=", b"\\u\\i", b"---", b"~", b"\\textendash"),
)
_TAGS_OF_ENDNOTE = (
    *(b"<record>", b"</record>", b"<titles>", b"<title>", b"<style>", b"</style>", b"<authors>", b"<author>", b"&amp;"),
    *(b"<!DOCTYPE a [<!ENTITY b 'c'>]>", b"&b;", b"<!--", b"-->", b"<![CDATA[", b"]]>", b"<record ", b"<a:b>", b"&#0;"),
)
RIS = Target(_references("ris", ".ris"), lambda: with_settings(_RIS, _RIS * 2, b""), _TAGS_OF_RIS)
NBIB = Target(_references("nbib", ".nbib"), lambda: with_settings(_MEDLINE, _MEDLINE * 2), _TAGS_OF_MEDLINE)
REFER = Target(_references("refer", ".enw"), lambda: with_settings(_REFER, _REFER * 2), _TAGS_OF_REFER)
WOS = Target(_references("wos", ".ciw"), lambda: with_settings(_WOS, _WOS * 2), _TAGS_OF_WOS)
BIBTEX = Target(_references("bibtex", ".bib"), lambda: with_settings(_BIBTEX, _BIBTEX * 2), _WORDS_OF_BIBTEX)
ENDNOTE = Target(_references("endnote", ".xml"), lambda: with_settings(_ENDNOTE), _TAGS_OF_ENDNOTE)
REUTERS = Target(check_reuters, _reuters_seeds, _SGML)
RCV1 = Target(check_rcv1, _rcv1_seeds, _XML)
MBOX = Target(check_mbox, _mbox_seeds, MAIL_HEADERS)
TEXT = Target(check_text, _text_seeds, (b"\n", b"\r\n", b"Subject: ", b"\xef\xbb\xbf", b"\x00", b"\x81\x40", b"\n\n"))
