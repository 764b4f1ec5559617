"""Cut files between records, and read the records: one module per format."""

from collections.abc import Iterator

from textcat.reading.faults import UnreadableError
from textcat.reading.formats import (
    alto,
    annif,
    bibtex,
    delimited,
    docx,
    endnote,
    feeds,
    html,
    json_feed,
    jsonl,
    mail,
    markdown,
    mets,
    newsml,
    newsml_g2,
    ninjs,
    nitf,
    parquet,
    pdf,
    rcv1,
    refer,
    references,
    reuters,
    tei,
    text,
    warc,
    wos,
    xml_items,
)
from textcat.reading.input_settings import InputSettings
from textcat.reading.records import Batch, Block, Record, Rejection
from textcat.reading.versions_of_news import ItemVersion, without_superseded

FORMATS = {
    "jsonl": jsonl.LINES,
    "csv": delimited.FORMAT,
    "tsv": delimited.FORMAT,
    "parquet": parquet.FORMAT,
    "reuters": reuters.FORMAT,
    "rcv1": rcv1.FORMAT,
    "text": text.WHOLE,
    "lines": text.LINES,
    "mbox": mail.MBOX,
    "json": jsonl.ARRAY,
    "ninjs": ninjs.FORMAT,
    "json-feed": json_feed.FORMAT,
    "newsml-g2": newsml_g2.FORMAT,
    "nitf": nitf.FORMAT,
    "newsml": newsml.FORMAT,
    "rss": feeds.RSS,
    "atom": feeds.ATOM,
    "tei": tei.FORMAT,
    "alto": alto.FORMAT,
    "mets": mets.FORMAT,
    "ris": references.RIS,
    "nbib": references.MEDLINE,
    "bibtex": bibtex.FORMAT,
    "endnote": endnote.FORMAT,
    "refer": refer.FORMAT,
    "wos": wos.FORMAT,
    "annif": annif.FORMAT,
    "warc": warc.FORMAT,
    "html": html.FORMAT,
    "eml": mail.FILE,
    "markdown": markdown.FORMAT,
    "docx": docx.FORMAT,
    "pdf": pdf.FORMAT,
}
#: Formats in which a file is one document, whose topic is the name of its folder.
DOCUMENTS = frozenset({"text", "html", "eml", "markdown", "docx", "pdf", "alto"})
#: Formats of news agencies and feeds, which have versions, and TEI, whose files are divided in the same way.
NEWS = frozenset({"ninjs", "json-feed", *xml_items.TAGS})
#: Formats of scanned pages; a METS file refers to ALTO files.
SCANS = frozenset({"alto", "mets"})
#: Formats of lists of references.
REFERENCES = frozenset({"bibtex", "endnote", "nbib", "refer", "ris", "wos"})
#: Formats that are not text in a single encoding; their files are not converted to UTF-8 before they are parsed.
BINARY = frozenset({"eml", "docx", "pdf", "warc"})
#: Formats in which a file is one document.
WHOLE = DOCUMENTS | {"rcv1"}


def batch_records(
    batch: Batch, settings: InputSettings, all_versions: bool = False, versions: list[ItemVersion] | None = None
) -> Iterator[Record | Rejection]:
    """Parse a batch; yield its records in the order of the input, and a Rejection for each part that is not a record.

    In formats of news, documents that are canceled or under embargo become Rejections, too. So do older versions of a
    document that has a newer version in the batch, unless `all_versions` is True. The version of each news document
    that has one is appended to the list `versions`. `settings` must be those with which the batch was read.
    """
    items = _items(batch, settings)
    has_versions = any(isinstance(block, Block) and block.format in NEWS for block in batch.blocks)
    return without_superseded(items, all_versions, versions) if has_versions else items


def _items(batch: Batch, settings: InputSettings) -> Iterator[Record | Rejection]:
    for block in batch.blocks:
        if isinstance(block, Rejection):
            yield block
        else:
            yield from block_records(block, settings)


def block_records(block: Block, settings: InputSettings) -> Iterator[Record | Rejection]:
    """Parse a block; iterate over its records, and Rejections of unreadable ones: see `RecordFormat.read`."""
    return FORMATS[block.format].records(block, _settings_of(block, settings))


def block_zones(block: Block, settings: InputSettings) -> dict[str, str]:
    """Return the texts by zone of the only document in a block; raise UnreadableError if it cannot be read."""
    form, settings = FORMATS[block.format], _settings_of(block, settings)
    (span,) = form.spans(block, settings)
    content = form.parser(block, settings)(span)
    if fault := content.left_out:
        raise UnreadableError(f"{fault}")
    return content.zones


def _settings_of(block: Block, settings: InputSettings) -> InputSettings:
    settings = settings.for_file(block.source)
    return settings._replace(encoding="utf-8") if block.decoded else settings
