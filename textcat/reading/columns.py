"""Find the columns or fields that hold a document's texts, id, labels and date."""

import logging
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import chain
from typing import Any, NamedTuple

from textcat.base.normal_forms import normalised
from textcat.reading.faults import UnreadableError
from textcat.reading.input_settings import ALL_FIELDS, EVERY_FIELD, SETTINGS, InputSettings

log = logging.getLogger(__name__)
#: Annif's names for the columns of topics and ids, if a table has the former and no column with a usual name.
ANNIFS = ("subject_uris", "document_id")
_LABEL_FIELDS = (("id_field", "ids"), ("topics_field", "topics"), ("split_field", "parts"))
_DEFAULTS = frozenset({"title", "id", "split", "date"})
LONGEST_NAME = 100  # maximum characters of names of fields that are kept in memory, or may be default or usual ones
# Usual names (in any case) of columns, tried if the default names are missing: used only if exactly one of them
# occurs.
USUAL_NAMES = {
    kind: tuple(names.split())
    for kind, names in {
        "body": "text body story content contents article abstract description message review document comment summary "
        "full_text fulltext",
        "title": "title headline heading",
        "topics": "topics labels label cats categories category class tags tag topic section",
        "id": "id nr no number doc_id docid document_id guid uuid identifier",
    }.items()
}


class ColumnNames(NamedTuple):
    """The names of the columns or fields to read, such as title, body and topics; "" stands for no column."""

    title: str
    body: tuple[str, ...]
    id: str
    topics: str = ""
    split: str = ""
    date: str = ""
    labelled_for: str = ""
    answer: str = ""
    fields: tuple[str, ...] = ()
    topic_fields: tuple[str, ...] = ()

    def names(self) -> list[str]:
        """Return the names of all columns that are read, each once."""
        return list(dict.fromkeys([*self.used_names(), *self.fields]))

    def used_names(self) -> list[str]:
        """Return the names of the columns of ids, texts and labels that are read, each once."""
        labels = (self.topics, *self.topic_fields, self.split, self.date, self.labelled_for, self.answer)
        return list(dict.fromkeys(filter(None, (self.id, self.title, *self.body, *labels))))


def texts_among(names: Collection[str], settings: InputSettings) -> tuple[str, tuple[str, ...]]:
    """Choose the fields that hold text: return the field of the title ("": none) and the fields of the body.

    `names` are the names of all fields. UnreadableError is raised if no field holds text.
    """
    if settings.text_fields:
        for field in settings.text_fields:
            _check_field(field, names, "text_fields", "texts")
        return title_and_body(settings.text_fields)
    title = default_name(names, "title")
    if text := next((field for field in ("text", "body") if field in names), ""):
        return title, (text,)
    if usual := usual_name(names, "body"):
        return title or usual_name(names, "title"), (usual,)
    if settings.columns and title:
        return title, ()  # if the user names the columns, no others are text
    raise _no_field("text", names, "text_fields", "texts")


def check_labels(names: Collection[str], settings: InputSettings) -> None:
    """Raise UnreadableError if a field that the settings name for ids, topics, parts or dates is not among `names`.

    A table must have a column of topics even if the settings do not name one; an object without a field of topics has
    none, and it may lack a date. If the settings do not ask for labels, only the fields of ids and dates are checked.
    """
    for name, what in _LABEL_FIELDS[: 1 if settings.labels is None else None]:
        if what == "topics":
            for field in () if isinstance(names, Mapping) else settings.topic_fields or (settings.topics_field,):
                _check_field(field, names, name, what)
        elif not settings.is_default(name):
            _check_field(getattr(settings, name), names, name, what)
    if not settings.is_default("date_field") and not isinstance(names, Mapping):  # an object may lack a date
        _check_field(settings.date_field, names, "date_field", "dates")


def _with_usual_names(names: Collection[str], body: Sequence[str], settings: InputSettings) -> InputSettings:
    """Return the settings with usual names for a table's columns of labels, ids and dates if default names are missing.

    Usual names are, for example, "labels" and "number" (see `usual_name`); names given by the user are not replaced. A
    usual name of an id column other than `default_name` is used only if the text was also found by a usual name;
    otherwise, positions are the ids. Parts and dates have no other usual names.
    """
    settings = with_default_names(names, settings)
    if settings.labels is not None and settings.is_default("topics_field") and settings.topics_field not in names:
        settings = settings._replace(topics_field=usual_name(names, "topics") or settings.topics_field)
    by_usual_name = settings.is_default("text_fields") and body[:1] not in [(), ("text",), ("body",)]
    if by_usual_name and settings.is_default("id_field") and settings.id_field not in names:
        settings = settings._replace(id_field=usual_name(names, "id") or settings.id_field)
    return settings


def with_default_names(names: Collection[str], settings: InputSettings) -> InputSettings:
    """Return the settings with the default fields of ids, parts and dates as they are written in `names`."""

    def written(setting: str) -> str:
        field: str = getattr(settings, setting)
        return (settings.is_default(setting) and default_name(names, field)) or field

    return settings._replace(
        id_field=written("id_field"), split_field=written("split_field"), date_field=written("date_field")
    )


def default_name(names: Collection[str], default: str) -> str:
    """Return the name of a field among `names` that is `default`, or else the only one that looks like it but for case.

    Return "" if there is none, or several.
    """
    if default in names:
        return default
    alike = [name for name in names if _folded(name) == default]
    return alike[0] if len(alike) == 1 else ""


def has_default_names(names: Iterable[str]) -> bool:
    """Return whether no field has a default name in another case, such as "Date"."""
    return not any(map(_default_in_another_case, names))


def without_unreadable(names: Iterable[str], is_readable: Callable[[str, str], bool]) -> list[str]:
    """Leave out fields with a default name in another case, such as "ID", whose values are not those of such a field.

    `is_readable` tells, given the name of a field and the default name, whether its values can be read as its values.
    """
    return [name for name in names if not (default := _default_in_another_case(name)) or is_readable(name, default)]


def _default_in_another_case(name: str) -> str:
    """Return the default name that a name is in another case, such as "date" for "Date"; "" for any other name."""
    return default if name not in _DEFAULTS and (default := _folded(name)) in _DEFAULTS else ""


def _folded(name: str) -> str:
    """Return the name of a field in lower case, without characters that are not seen and spaces around it.

    Return "" for a name that is too long to be a default or usual one: it would only take memory.
    """
    return _folded_short(name) if len(name) <= LONGEST_NAME else ""


@lru_cache(maxsize=1024)
def _folded_short(name: str) -> str:
    return normalised(name).strip().casefold()


def columns_among(names: Sequence[str], settings: InputSettings) -> ColumnNames:
    """Choose the columns of a table to read; raise UnreadableError if a needed column is missing or occurs twice."""
    title, body = texts_among(names, settings)
    topics, name = ANNIFS
    if settings.is_default("topics_field") and settings.topics_field not in names and topics in names:
        settings = settings._replace(topics_field=topics)
        if settings.is_default("id_field") and settings.id_field not in names and name in names:
            settings = settings._replace(id_field=name)
    settings = _with_usual_names(names, body, settings)
    check_labels(names, settings)
    answer = "" if settings.topics_field == "answer" else "answer"  # Prodigy's name
    labels = [
        settings.id_field,
        settings.topics_field,
        settings.split_field,
        settings.date_field,
        "labelled_for",
        answer,
    ]
    if settings.labels is None:
        labels[1:] = ["", "", settings.date_field, "", ""]
    fields = tuple(further_fields(names, title, body, settings))
    present: Any = (name if name in names else "" for name in labels)
    which = ColumnNames(title, body, *present)._replace(fields=fields)
    if settings.topic_fields and settings.labels is not None:
        which = which._replace(topics="", topic_fields=settings.topic_fields)
    counts = Counter(names)
    for name in which.names():
        if counts[name] > 1:
            raise UnreadableError(f"has {counts[name]} columns {name!r}: rename all but one")
    return which


def _check_field(field: str, names: Collection[str], setting: str, what: str) -> None:
    if field not in names:
        raise _no_field(field, names, setting, what)


def _no_field(field: str, names: Collection[str], setting: str, what: str) -> UnreadableError:
    kind, option = "field" if isinstance(names, Mapping) else "column", SETTINGS[setting][0].option
    return UnreadableError(
        f"has no {kind} {field!r} (only {', '.join(names):.200}){hint_of_fields(names, what)}: name the {what}' {kind} "
        f"with {option} (in some files only, with --for)"
    )


def hint_of_fields(names: Iterable[str], what: str) -> str:
    """Return a clause for messages: which fields may hold "texts" or "topics"; "" if fewer than two may."""
    alike = names_alike(names, {"texts": "body", "topics": "topics"}.get(what, ""))
    return f", and {' or '.join(map(repr, alike))} may hold the {what}" if len(alike) > 1 else ""


def usual_name(names: Collection[str], what: str) -> str:
    """Return the single usual name of a kind of field among `names`, such as "headline" for titles.

    `what` is the kind: "body", "title", "topics" or "id". Return "" if none of `names` is usual, or if several are.
    """
    candidates = names_alike(names, what)
    return candidates[0] if len(candidates) == 1 else ""


def names_alike(names: Iterable[str], what: str) -> list[str]:
    """Return those of `names` that are usual for a kind of field (see `usual_name`), in their order."""
    return [name for name in names if _folded(name) in USUAL_NAMES.get(what, ())]


def has_usual_name(names: Iterable[str]) -> bool:
    """Return whether any of the column names is a default name such as "text", or a usual one such as "headline"."""
    default = ("text", "body", "title", "id", "topics", "split", "date", "labelled_for", *ANNIFS)
    return not {*map(_folded, names)}.isdisjoint({*default, *chain(*USUAL_NAMES.values())})


def title_and_body(fields: tuple[str, ...]) -> tuple[str, tuple[str, ...]]:
    """Divide the text fields in the settings into the title's field ("" if there is none) and the fields of the body.

    "title" is the field of the title if it is one of several; a single field is the body, whatever its name.
    """
    if len(fields) == 1 or "title" not in fields:
        return "", fields
    return "title", tuple(field for field in fields if field != "title")


def titled_zones(title: str, texts: Sequence[str], settings: InputSettings) -> dict[str, str]:
    """Return the zones of a document: the title, and the texts, joined by line ends, as the body.

    An empty title is a zone only if the settings ask for labels.
    """
    body = texts[0] if len(texts) == 1 else "\n".join(filter(None, texts))
    return {"title": title, "body": body} if title or settings.labels is not None else {"body": body}


def further_fields(names: Iterable[str], title: str, body: Sequence[str], settings: InputSettings) -> list[str]:
    """Return the names of the fields that records keep in addition to their zones.

    These are the fields in `settings.fields` that exist. `EVERY_FIELD` stands for all fields, and `ALL_FIELDS` for all
    except the title and a body that is a single field.
    """
    if settings.fields == EVERY_FIELD:
        return [*names]
    if settings.fields != ALL_FIELDS:
        return [name for name in settings.fields if name in names]
    return [name for name in names if name != title and [name] != [*body]]


@lru_cache(maxsize=1024)
def log_usual_names(source: str, which: ColumnNames, settings: InputSettings) -> None:
    """Log which columns or fields of a source were found by usual names (see `usual_name`), not by default names.

    `which` names the columns that are read.
    """
    body = which.body[0] if which.body and settings.is_default("text_fields") else ""
    taken = {"text": body, "title": which.title if settings.is_default("text_fields") else ""}
    further = "topics", "id", "date", "split"
    taken |= {what: getattr(which, what) for what in further if settings.is_default(f"{what}_field")}
    usual = {what: name for what, name in taken.items() if name not in ("", what, "body", *ANNIFS)}
    if usual:
        columns = ", ".join(f"{what} from {name!r}" for what, name in usual.items())
        log.warning("%s: %s, by their usual names; --text-field and others choose.", source, columns)
