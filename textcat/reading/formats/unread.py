"""Name the formats that are known and not read, so that a message can say what a file is, and what to do with it."""

import re

_PICTURE = "a picture; its text would have to be recognised first"
_SCHEMA = rb'\{.{0,80}"\$schema"\s*:\s*"https?://json-schema\.org/'
# What a file is, with the remedy; the endings of its names; how its content begins. An ending counts before content.
_KINDS: tuple[tuple[str, str, bytes], ...] = (
    ("an Excel workbook; save it as CSV", "xlsx xlsm xlsb xls", b""),
    (
        "an OpenDocument spreadsheet; save it as CSV",
        "ods",
        rb"PK.{28}mimetypeapplication/vnd\.oasis\.[a-z.]{1,40}sheet",
    ),
    ("an OpenDocument text; save it as .docx", "odt", rb"PK.{28}mimetypeapplication/vnd\.oasis\.[a-z.]{1,40}text"),
    ("a presentation; save its text as .docx or PDF", "pptx ppt odp", b""),
    ("an e-book; convert it to HTML", "epub mobi azw3", rb"PK.{28}mimetypeapplication/epub\+zip"),
    ("an old Word document; save it as .docx", "doc dot", rb"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"),
    ("a text in RTF; save it as .docx", "rtf", rb"\{\\rtf"),
    (_PICTURE, "jpg jpeg jpe", rb"\xff\xd8\xff"),
    (_PICTURE, "png", rb"\x89PNG\r\n"),
    (_PICTURE, "gif", rb"GIF8[79]a"),
    (_PICTURE, "tif tiff", rb"II\*\0|MM\0\*"),
    (_PICTURE, "webp bmp heic jp2", rb"RIFF.{4}WEBP"),
    ("a drawing; leave it out", "svg eps ps", rb"%!PS|<svg[\s>]"),
    ("audio; leave it out, or transcribe it first", "mp3 wav ogg flac m4a", rb"ID3|OggS|fLaC|RIFF.{4}WAVE"),
    ("a video; leave it out, or transcribe it first", "mp4 mov avi mkv webm", rb".{4}ftyp|\x1aE\xdf\xa3"),
    ("a database of SQLite; export its table as CSV", "sqlite sqlite3 db", rb"SQLite format 3\0"),
    ("a 7z archive; unpack it, or make it a zip", "7z", rb"7z\xbc\xaf\x27\x1c"),
    ("a RAR archive; unpack it, or make it a zip", "rar", rb"Rar!\x1a\x07"),
    ("mail of Outlook; export it as mbox or .eml", "msg pst ost", rb"!BDN"),
    ("Arrow or Feather; write it as Parquet", "feather arrow", rb"ARROW1|FEA1"),
    ("a file of Python's or numpy's; write it as Parquet or JSON Lines", "pkl pickle npy npz", rb"\x93NUMPY"),
    ("a story of a wire in IPTC 7901 or ANPA 1312; name it with --format text", "", rb"\x16*\x01[ -~]{3,40}[\r\n\x1f]"),
    ("a JSON Schema, which holds no documents; leave it out", "", _SCHEMA),
)
_BY_ENDING = {ending: what for what, endings, _ in _KINDS for ending in endings.split()}
_BY_START = [(what, re.compile(start, re.DOTALL)) for what, _, start in _KINDS if start]


# Formats of XML, with the remedy, by the names of their roots.
_KINDS_OF_XML = {
    "PcGts": "PAGE, the text of a scanned page; convert it to ALTO",
    "mediawiki": "a dump of MediaWiki; convert its pages to JSON Lines",
    **dict.fromkeys(("mods", "modsCollection", "OAI-PMH"), "a list of catalogue records; export it as RIS"),
    **dict.fromkeys(("urlset", "sitemapindex"), "a list of addresses, which holds no documents; leave it out"),
    "schema": "an XML Schema, which holds no documents; leave it out",
}


def unread_xml(root: str) -> str:
    """Return what XML is, given the name of its root, with the remedy, if its format is known and not read; or ""."""
    return _KINDS_OF_XML.get(root, "")


def unread_format(name: str, head: bytes) -> str:
    """Return what a file is, with the remedy, if it is of a known format that is not read; otherwise return "".

    `name` is its name without the ending of a compression, and `head` has its first bytes.
    """
    by_name = _BY_ENDING.get(name.lower().rpartition(".")[2], "") if "." in name else ""
    return by_name or next((what for what, start in _BY_START if start.match(head)), "")
