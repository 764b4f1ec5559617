"""Parse labels: the topics in the value of a topics field, in records of any format."""

import json
import logging
import re
import unicodedata
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from numbers import Integral, Real
from sys import intern
from typing import Any, NamedTuple

from textcat.base.errors import TextcatError
from textcat.base.frames import plain_value
from textcat.base.normal_forms import nfc
from textcat.base.surrogates import join_surrogates
from textcat.reading.columns import USUAL_NAMES, hint_of_fields
from textcat.reading.document import Document
from textcat.reading.faults import UnreadableError

_log = logging.getLogger(__name__)
_SCORE = 0.5  # minimum score of a document's topic, as in spaCy
_BEGINS_LIST = re.compile(r"[\[({]\s*['\"]")
_CLOSED_BY = {"[": "]", "(": ")", "{": "}"}
_CALLS = frozenset({"array", "np.array", "set", "frozenset", "Index", "tensor"})  # prefix before a list in brackets
_SCALAR = re.compile(r"\bnp\.\w+\(([^()]*)\)")  # numpy's notation for its own values inside a Python list
_QUOTED = re.compile(r"""([^'"]*)('[^'\\]*(?:\\.[^'\\]*)*'|"[^"\\]*(?:\\.[^"\\]*)*")""", re.DOTALL)
#: An element of a list of PostgreSQL: a name in quotes, or one without, and the comma after it.
_ELEMENT = re.compile(r"""\s*(?:"([^"\\]*(?:\\.[^"\\]*)*)"\s*|([^\s"'{},\\][^"{},\\]*))(,|\Z)""", re.DOTALL)
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)
_NAN = re.compile(r"\bnan\b")
_NO_NAMES = "they must be a list of names, or one name"
_VECTOR = re.compile(r"[01](?:[ ,;\t][01]){2,}")
_NUMBERS = re.compile(r"\[[\s\d.eE+-]+\]")
_UNSEEN = re.compile("[\xad\u061c\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff]")  # in names of any script
_WHOLE_FLOAT = re.compile(r"-?\d+\.0")
#: Words, in lower case, for whether a document has a topic.
YES, NO = frozenset({"1", "true", "yes", "y", "t"}), frozenset({"0", "-1", "false", "no", "n", "f"})
_BOOLEANS = frozenset({"true", "false"})


class Labels(NamedTuple):
    """The topics of a document, each once, and the topics that it was judged for (None: all)."""

    topics: tuple[str, ...] = ()
    labelled_for: tuple[str, ...] | None = None


_NO_LABELS = Labels()


def label_name(name: str) -> str:
    """Return the name of a topic in one form, whatever its code points, which looks the same.

    The form has no white space around the name, single spaces inside, no lone surrogates, Unicode's normal form C, and
    no characters that are not seen: soft hyphens, zero-width spaces, marks of direction and of byte order.
    """
    if not name.isascii():
        name = nfc(_UNSEEN.sub("", join_surrogates(name)))
    return intern(" ".join(name.split()))


def seen_name(name: str) -> str:
    """Return a key that is equal for names of topics that look the same, whatever their code points.

    Joiners (U+200C and U+200D) are seen in some scripts, such as those of Persian and Hindi.
    """
    seen = unicodedata.normalize("NFKC", name)
    return "".join(c for c in seen if c in "\u200c\u200d" or unicodedata.category(c) != "Cf")


def folded_name(name: str) -> str:
    """Return a key that is equal for names of topics that look the same but for case: see `seen_name`."""
    return unicodedata.normalize("NFKC", seen_name(name).casefold())


def unique_names(names: Iterable[str]) -> tuple[str, ...]:
    """Return normalised names of topics (see `label_name`), each once, without blank ones."""
    return tuple(dict.fromkeys(filter(None, map(label_name, names))))


def labels_in(value: Any, field: str, separator: str = "") -> Labels:
    """Parse the labels in the value of a field.

    A value is a name, a list of names, or a text that is a list as Python, numpy or JSON writes it; or an object with a
    score between 0 and 1 for each topic that the document was judged for. Whole numbers and True become names, too,
    which `with_meanings` interprets. A missing value, such as NaN, means that the document has no topic.

    Parameters
    ----------
    value : object
    field : str
        The name of the field.
    separator : str
        The separator of topics in a text; "": a text that is not a list is one topic.

    Raises
    ------
    UnreadableError
        If it is unclear which topics are meant.
    """
    if type(value) is not str:
        value = plain_value(value)
    if isinstance(value, str):
        if separator:
            parts = [*filter(None, map(str.strip, value.split(separator)))]
            return Labels(unique_names(_names(parts, field)))
        text = value.strip()
        if not text:
            return _NO_LABELS
        if _VECTOR.fullmatch(text):
            value = text.split(text[1])
        elif text[0] not in _CLOSED_BY and text[-1] != ")":
            return Labels(unique_names([text]))
        else:
            value = _listed(text, field)
            return Labels(unique_names([value])) if isinstance(value, str) else labels_in(value, field)
    if type(value) is list:  # first, because most values are lists
        return Labels(unique_names(_names(value, field)))
    if value is None:
        return _NO_LABELS
    if isinstance(value, bool) and field not in ("topics", "labelled_for"):
        return Labels((str(value),))  # see `with_meanings`
    if isinstance(value, dict):
        return _labels_of_object(value, field)
    return Labels((_name(value, field, value),))


def refuse_shared_field(texts: Collection[str], topics: str | Sequence[str]) -> None:
    """Raise TextcatError if a field is named as one of texts and as one of topics: texts would tell the topics."""
    if shared := [name for name in texts if name in ((topics,) if isinstance(topics, str) else topics)]:
        raise TextcatError(
            f"{shared[0]!r} cannot hold both the texts and the topics: name another field or column for one of the two."
        )


def warn_of_missing_parts(n_without: int, n: int, location: str = "") -> None:
    """Log a warning that `n_without` of `n` documents have no part, while others do, and count for training."""
    if 0 < n_without < n:
        _log.warning(
            "%s%s of %s documents have no split, and others do: those without are training documents; write 'unused' "
            "to leave them out.",
            *(f"{location}: " if location else "", f"{n_without:,}", f"{n:,}"),
        )


def labels_of_fields(values: Mapping[str, Any]) -> Labels:
    """Return the labels of a document whose record has one field per topic, with 1 or 0 in `values`.

    The document was judged for the topics that have a field, and for no others.
    """
    values = plain_value(values)
    for field, value in values.items():
        if _as_flag(value) not in (0, 1):
            raise UnreadableError(
                f"has {_shown(value)} in the field {field!r}: give 1 in the field of a topic if the document has it, "
                "else 0; or, if the field holds names of topics, name it alone"
            )
    return Labels(unique_names(field for field, value in values.items() if _as_flag(value)), _judged(tuple(values)))


@lru_cache(maxsize=64)  # so that the documents of a table share one tuple
def _judged(fields: tuple[str, ...]) -> tuple[str, ...]:
    return unique_names(fields)


def _labels_of_object(value: dict[str, Any], field: str) -> Labels:
    if [*value] == ["choices"]:  # as Label Studio writes several
        return labels_in(value["choices"], field)
    if type(value.get("uri", value.get("label"))) is str:
        return Labels(unique_names([_name(value, field, value)]))
    scores = {label_name(str(name)): _as_flag(score) for name, score in value.items() if score is not None}
    scores = {name: score for name, score in scores.items() if name and score != ""}
    for score in scores.values():
        if not (isinstance(score, Real) and 0 <= float(score) <= 1):
            raise _fault(value, field, "for each topic, there must be a score between 0 and 1")
    if any(score not in (0, 1) for score in scores.values()):
        _warn_of_scores(field)
    return Labels(tuple(name for name, score in scores.items() if score >= _SCORE), tuple(scores))


def _as_flag(value: Any) -> Any:
    """Return 1 or 0 for a text that means yes or no; return other texts in lower case, and other values unchanged."""
    word = value.strip().casefold().removesuffix(".0") if isinstance(value, str) else ""
    return 1 if word in YES else 0 if word in NO else word if isinstance(value, str) else value


@lru_cache(maxsize=64)
def _warn_of_scores(field: str) -> None:
    _log.warning("%r holds scores from 0 to 1: a document has the topics whose score is at least %s.", field, _SCORE)


def _names(values: list[Any], field: str) -> list[str]:
    """Return the names in a list, without missing values; raise UnreadableError if the list is no list of names."""
    if values and all(value is None for value in values):
        raise _fault(values, field, _NO_NAMES)
    if len(values) > 1 and not all(type(value) is str and (len(value) > 2 or value.isalpha()) for value in values):
        written = [str(value).strip() for value in values]
        are_numbers = all(value is None or isinstance(value, Real) for value in values)
        is_vector = are_numbers and any(isinstance(value, bool | float) for value in values)
        if is_vector or ({*written} <= {"0", "1", "-1"} and len({*written}) < len(written)):
            raise _fault(
                values,
                field,
                "numbers that say for each topic whether the document has it do not name the topics: give a list of "
                "the names of those that it has, or a table with a column of 0 and 1 for each topic",
            )
        if _is_span(values):
            raise _span_fault(values, field)
    return [
        value if type(value) is str and value.strip() else _name(value, field, values)
        for value in values
        if value is not None
    ]


def _is_span(values: Any) -> bool:
    return isinstance(values, list | tuple) and [*map(type, values)] == [int, int, str]


def _span_fault(values: Any, field: str) -> UnreadableError:
    return _fault(values, field, "spans label parts of a text, and topics the whole document: name another field")


def _name(value: Any, field: str, whole: Any) -> str:
    """Return a value as a name; `whole` is shown in the error if it is not one."""
    if isinstance(value, str) and value.strip():
        return value
    if isinstance(value, Real) and not isinstance(value, bool) and float(value).is_integer():
        return str(int(value) if isinstance(value, Integral) else int(float(value)))
    if isinstance(value, Mapping) and type(name := value.get("uri", value.get("label"))) is str:
        return name
    if _is_span(value):
        raise _span_fault(whole, field)
    raise _fault(whole, field, _NO_NAMES)


def _fault(value: Any, field: str, remedy: str) -> UnreadableError:
    return UnreadableError(f"has the {field} {_shown(value)}: {remedy}")


def _shown(value: Any) -> str:
    try:
        shown = json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError):
        shown = repr(value)
    return shown if len(shown) <= 60 else f"{shown[:59]}…"


def unlabelled_because(looked_for: Sequence[str], names: Iterable[str]) -> str:
    """Return why no record has a topic, as the end of a sentence.

    `looked_for` has the names of the fields in which topics were looked for, and `names` those of all fields.
    """
    names = list(names)
    has = f"only {', '.join(names):.200}" if names else "none"
    present = [name for name in looked_for if name in names]
    which = " or ".join(map(repr, present or looked_for))
    what = f"the field {which} of all records is empty" if present else f"no record has a field {which}"
    others = "" if present else hint_of_fields(names, "topics")
    return f"{what} ({has}){others}: name the topics' field with --topics-field (in Python topics=)"


# --- lists written as texts ------------------------------------------------------------------------------------------


def _listed(text: str, field: str) -> Any:
    """Parse a text that is a list in the notation of Python, numpy, JSON or a database; return others unchanged."""
    head, _, inside = text.partition("(")
    inner = text
    if head in _CALLS and text[-1] == ")":
        listed, _, kind = inside[:-1].rpartition(", dtype=")
        inner = (listed if listed and kind.strip("<>|").isalnum() else inside[:-1]).strip() or "[]"
    if inner[0] not in _CLOSED_BY:
        return text
    value = _value(inner)
    if value is not None:
        return value
    begins_list = _BEGINS_LIST.match(inner)
    if begins_list and inner[0] == "{" and inner[-1] == "}" and (names := _in_braces(inner[1:-1])) is not None:
        return names
    if begins_list:
        raise _fault(
            text, field, 'it begins like a list, and must be one such as ["corn", "wheat"], with a comma between names'
        )
    return text


def _in_braces(text: str) -> list[str] | None:
    """Return the names in a list as PostgreSQL writes it, such as corn,"winter rye",NULL; None if it is no such list.

    NULL without quotes is no name.
    """
    names, end = [], 0
    while match := _ELEMENT.match(text, end):
        quoted, plain, comma = match.groups()
        if quoted is not None:
            names.append(_ESCAPED.sub(r"\1", quoted))
        elif plain.strip() != "NULL":
            names.append(plain)
        if not comma:
            return names
        end = match.end()
    return None


def _value(text: str) -> Any:
    """Return the list, tuple, set or dict that a text writes, or the name in brackets; None if it writes none."""
    for read in (json.loads, _literal):
        try:
            return read(text)
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            continue
    return None


def _literal(text: str) -> Any:
    import ast

    if "np." in text:
        text = _SCALAR.sub(r"\1", text)
    if _NUMBERS.fullmatch(text):
        return ast.literal_eval(",".join(text.split()).replace("[,", "["))
    value = ast.literal_eval(_with_commas(text))
    if not isinstance(value, list | tuple | set | dict | str):
        raise ValueError
    return value


def _with_commas(text: str) -> str:
    """Return a list with a comma where numpy writes only white space between two strings.

    Python would join the two. ValueError is raised if two strings touch each other, or if one is not closed.
    """
    parts, end = [], 0
    while match := _QUOTED.match(text, end):
        between, string = match.groups()
        if end and not between:
            raise ValueError
        parts += ["," if end and between.isspace() else _NAN.sub("None", between), string]
        end = match.end()
    return "".join([*parts, _NAN.sub("None", text[end:])])


# --- names that can only be interpreted for a whole corpus -----------------------------------------------------------


def with_meanings(documents: list[Document], field: str) -> list[Document]:
    """Interpret the names of a corpus' topics, such as 1 and 0; return its documents with the resulting topics.

    If all are whole numbers written as fractions, as pandas does if values are missing, they become whole numbers. If
    all are in brackets, and some contain commas, they are lists as databases write them, such as [corn, wheat]. If all
    names say yes or no, such as 1 and 0, yes is the topic with the name of the field. A field with a usual name such as
    "label" names no topic: there, only "true" and "false" say yes and no.

    Parameters
    ----------
    documents : list of Document
    field : str
        The field of topics named by the user; "" if none was named.
    """
    topics_of = _meanings({name for document in documents for name in document.topics}, field)
    if not topics_of:
        return documents

    def meant(names: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(dict.fromkeys(topic for name in names for topic in topics_of.get(name, (name,))))

    return [replace(document, topics=meant(document.topics)) for document in documents]


def _meanings(names: Collection[str], field: str) -> dict[str, tuple[str, ...]]:
    """Return the topics that names stand for; {}: each name stands for itself."""
    if names and all(name[0] + name[-1] in ("[]", "{}") for name in names) and any("," in name for name in names):
        listed = {name: _in_braces(name[1:-1]) for name in names}
        return {name: unique_names(name[1:-1].split(",") if of is None else of) for name, of in listed.items()}
    whole = {name: name[:-2] for name in names if _WHOLE_FLOAT.fullmatch(name)}
    numbers = whole if len(whole) == len(names) else {name: name for name in names}
    said = {name: number.casefold() for name, number in numbers.items()}
    flags = _BOOLEANS if field.casefold() in USUAL_NAMES["topics"] else YES | NO
    if field and {*said.values()} <= flags:
        return {name: (label_name(field),) if word in YES else () for name, word in said.items()}
    return {name: (number,) for name, number in whole.items()} if numbers is whole else {}
