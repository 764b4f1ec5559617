"""Recognise formats that are not supported, so that a message can name the format and the remedy."""

import re
from functools import cache

_PICTURE = "a picture; its text would have to be recognised first"
_SCHEMA = rb'\{.{0,80}"\$schema"\s*:\s*"https?://json-schema\.org/'
# Description with remedy; endings of names; first bytes. An ending takes precedence over content.
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
    ("an old Word document; save it as .docx", "doc dot", b""),
    (
        "a file of an old program of Office or of Windows; save it as .docx or CSV, or leave it out",
        "",
        rb"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1",
    ),
    ("a text in RTF; save it as .docx", "rtf", b""),
    (_PICTURE, "jpg jpeg jpe", rb"\xff\xd8\xff"),
    (_PICTURE, "png", rb"\x89PNG\r\n"),
    (_PICTURE, "gif", rb"GIF8[79]a"),
    (_PICTURE, "tif tiff", rb"II\*\0|MM\0\*"),
    (_PICTURE, "webp bmp heic jp2", rb"RIFF.{4}WEBP"),
    ("a drawing; leave it out", "svg eps ps", rb"%!PS|<svg[\s>]"),
    ("audio; leave it out, or transcribe it first", "mp3 wav ogg flac m4a", rb"ID3|OggS|fLaC|RIFF.{4}WAVE"),
    ("a video; leave it out, or transcribe it first", "mp4 mov avi mkv webm", rb".{4}ftyp|\x1aE\xdf\xa3"),
    ("a database of SQLite; export its table as CSV", "sqlite sqlite3", rb"SQLite format 3\0"),
    ("a 7z archive; unpack it, or make it a zip", "7z", rb"7z\xbc\xaf\x27\x1c"),
    ("a RAR archive; unpack it, or make it a zip", "rar", rb"Rar!\x1a\x07"),
    ("mail of Outlook; export it as mbox or .eml", "msg pst ost", rb"!BDN"),
    ("Arrow or Feather; write it as Parquet", "feather arrow", rb"ARROW1|FEA1"),
    ("a file of Avro, ORC or TensorFlow; write it as Parquet or JSON Lines", "avro orc tfrecord", rb"Obj\x01|ORC"),
    (
        "a file of Python's or numpy's; write it as Parquet or JSON Lines",
        "pkl pickle npy npz joblib",
        rb"\x93NUMPY|\x80[\x02-\x05]",
    ),
    ("a table of R, SPSS, Stata or SAS; write it as CSV", "rda rdata rds sav dta sas7bdat", rb"\$FL2"),
    ("HDF5; write its texts as Parquet or JSON Lines", "h5 hdf5", rb"\x89HDF"),
    ("a notebook of Jupyter; export it as Markdown", "ipynb", b""),
    ("YAML; write it as JSON Lines", "yaml yml", b""),
    ("a story of a wire in IPTC 7901 or ANPA 1312; name it with --format text", "", rb"\x16*\x01[ -~]{3,40}[\r\n\x1f]"),
    ("a JSON Schema, which holds no documents; leave it out", "", _SCHEMA),
)
# Text formats, whose content is examined whatever a file's name is.
_LABEL = rb"[-+]?\d[\d.,]*(?: +qid:\d+)?"
_VALUE = rb"(?: *\d+:[-+]?\d[\d.]*(?:e[-+]?\d+)?(?=\s|\Z))"
_KINDS_OF_TEXT: tuple[tuple[str, bytes], ...] = (
    ("a text in RTF; save it as .docx", rb"\{\\rtf"),
    ("fastText, whose labels begin with __label__; convert it to JSON Lines", rb"__label__\S"),
    (
        "a file of vectors (SVMLight, Extreme Classification Repository), which holds no texts; give the texts",
        rb"\d+ \d+ \d+\r?\n(?:%b)?%b|%b%b{2}|(?:%b%b\r?\n){2}" % (_LABEL, _VALUE, _LABEL, _VALUE, _LABEL, _VALUE),
    ),
    ("ARFF, a table of Weka; write it as CSV", rb"(?i:@relation)\s[^\n]*\n\s*@"),
    ("LaTeX; convert it to HTML, Markdown or text", rb"(?:%[^\n]*\n\s*)*\\document(?:class|style)\b"),
    ("an ARC, the older web archive; convert it to WARC", rb"filedesc://[^\n]{1,400}\n"),
    (
        "a list of references of Ovid; export it as RIS",
        rb"(?:<1>|1\.)[ \t]*\r?\n(?:VN|UI|AN|DB)[ \t]{1,3}- |<1>[ \t]*\r?\n(?:Accession Number|Authors?|Database|"
        rb"Link to the Ovid|Title|Unique Identifier)\b|VN[ \t]{1,3}- Ovid |"
        rb"(?:Database|Databases): [^\n]{1,400}\n\s*Search Strategy:",
    ),
    ("a list of references of the Cochrane Library; export it as RIS", rb"Record #1 of \d+\r?\n"),
    ("a list of references of EBSCO; export it as RIS", rb"Record: 1\r?\n"),
    ("a list of references of Scopus; export it as RIS or CSV", rb"Scopus\r?\nEXPORT DATE:"),
    ("a list of references of ProQuest; export it as RIS", rb"_{20,}\s*(?:Report Information|Document 1 of \d)"),
    (
        "a list of references in RefWorks' tagged format; export it as RIS",
        rb"RT [A-Z][A-Za-z ]{2,30}\r?\n[A-Z][A-Z0-9] \S",
    ),
    (
        "PubMed's list of abstracts or summaries; export it in the format PubMed",
        rb"1[.:] [^\n]{3,200}\b(?:1[89]|20)\d\d\b[^\n]{0,80};[^\n]{0,100}(?:doi: ?10\.|PMID: ?\d)",
    ),
    ("a table of Web of Science; export it as a plain text file or RIS", rb"PT\tA[UBC]\t"),
)
_BY_ENDING = {ending: what for what, endings, _ in _KINDS for ending in endings.split()}
# Compiled at their first use, which takes a millisecond.
_BY_START = cache(lambda: [(what, re.compile(start, re.DOTALL)) for what, _, start in _KINDS if start])
_BY_START_OF_TEXT = cache(lambda: [(what, re.compile(start)) for what, start in _KINDS_OF_TEXT])


# Metadata and data files of a folder saved by Hugging Face datasets.
_DATASET = "part of a dataset as Hugging Face's datasets save it to disk; write it by its to_parquet or to_json"
_OF_DATASETS = ("dataset_dict.json", "dataset_info.json", "state.json")


# XML formats with the remedy, by the names of their roots.
_KINDS_OF_XML = {
    "PcGts": "PAGE, the text of a scanned page; convert it to ALTO",
    "mediawiki": "a dump of MediaWiki; convert its pages to JSON Lines",
    **dict.fromkeys(("mods", "modsCollection", "OAI-PMH"), "a list of catalogue records; export it as RIS"),
    **dict.fromkeys(("urlset", "sitemapindex"), "a list of addresses, which holds no documents; leave it out"),
    "schema": "an XML Schema, which holds no documents; leave it out",
}


def unread_xml(root: str) -> str:
    """Return a description of an XML format that is recognised but not read, by its root; "" otherwise.

    The description includes the remedy.
    """
    return _KINDS_OF_XML.get(root, "")


def unread_format(name: str, head: bytes) -> str:
    """Return a description of a file whose format is recognised but not read, with the remedy; "" for other files.

    `name` is its name without the ending of a compression, and `head` has its first bytes.
    """
    if name.rpartition("/")[2].lower() in _OF_DATASETS:
        return _DATASET
    by_name = _BY_ENDING.get(name.lower().rpartition(".")[2], "") if "." in name else ""
    return by_name or next((what for what, start in _BY_START() if start.match(head)), "") or unread_text(head)


def unread_text(head: bytes) -> str:
    """Return a description of a text whose format is recognised but not read, with the remedy; "" for other texts.

    `head` has its first bytes, without a byte order mark and blank lines.
    """
    return next((what for what, start in _BY_START_OF_TEXT() if start.match(head)), "")
