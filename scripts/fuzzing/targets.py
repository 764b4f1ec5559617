"""All targets by name."""

from . import configs, documents, inputs, models, news, packed, scans, tagging, web
from .target import Target

TARGETS: dict[str, Target] = {
    "jsonl": inputs.JSONL,
    "array": inputs.ARRAY,
    "delimited": inputs.DELIMITED,
    "annif": inputs.ANNIF,
    "parquet": inputs.PARQUET,
    "reuters": inputs.REUTERS,
    "rcv1": inputs.RCV1,
    "mbox": inputs.MBOX,
    "ris": inputs.RIS,
    "nbib": inputs.NBIB,
    "bibtex": inputs.BIBTEX,
    "endnote": inputs.ENDNOTE,
    "ninjs": news.NINJS,
    "newsml-g2": news.G2,
    "nitf": news.NITF,
    "newsml": news.NEWSML,
    "rss": news.RSS,
    "atom": news.ATOM,
    "alto": scans.ALTO,
    "mets": scans.METS,
    "warc": web.WARC,
    "warc-gz": web.WARC_GZ,
    "text": inputs.TEXT,
    "html": documents.HTML,
    "eml": documents.EML,
    "markdown": documents.MARKDOWN,
    "docx": documents.DOCX,
    "pdf": documents.PDF,
    "packed": packed.PACKED,
    "configs": configs.CONFIGS,
    "model": models.MODEL,
    "tagging": tagging.TAGGING,
}
