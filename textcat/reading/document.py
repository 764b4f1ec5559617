"""Define the document: its texts, its id, and its labels."""

from dataclasses import dataclass
from typing import Any

PARTS = ("train", "test", "unused")


@dataclass(frozen=True, slots=True)
class Document:
    """A document: its texts by zone, and its id, topics, date, split and language.

    Parameters
    ----------
    id : str
        Unique in its corpus.
    zones : dict of str to str
        Its texts by zone, such as title and body, in this order.
    topics : tuple of str
        Names of the topics that the document has, each once; the tuple may be empty.
    date : str
        The date in ISO 8601, with the zone that the source gives; a date in an unknown form is as the source writes it,
        and "" if the source gives none.
    split : {"", "train", "test", "unused"}
        The part of the corpus it belongs to; "" if the source has no parts.
    labelled_for : tuple of str, optional
        The topics that the document was judged for, besides those in `topics`; its label for any other topic is
        unknown. None: it was judged for all topics.
    fields : dict, optional
        Further fields of the record, such as authors and year, by name; the values are those of JSON. None:
        `InputSettings.fields` did not ask for fields, or the source has none.
    language : str
        The language that the source names, such as "en-GB"; "" if it names none.
    """

    id: str
    zones: dict[str, str]
    topics: tuple[str, ...] = ()
    date: str = ""
    split: str = ""
    labelled_for: tuple[str, ...] | None = None
    fields: dict[str, Any] | None = None
    language: str = ""

    def __reduce__(self) -> tuple[type["Document"], tuple[Any, ...]]:
        """Return the constructor and its arguments: a dataclass would pickle slower, by looking up its fields."""
        labels = self.topics, self.date, self.split, self.labelled_for
        return Document, (self.id, self.zones, *labels, self.fields, self.language)

    def __repr__(self) -> str:
        text = " ".join(" ".join(self.zones.values()).split())
        return f"Document({self.id!r}, {text if len(text) <= 60 else text[:59] + '…'!r}, topics={self.topics!r})"
