"""Read a vocabulary, the names of topics, from TSV, CSV or SKOS, and replace deprecated topics."""

import csv
import logging
import os
import re
from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, NamedTuple

from textcat.base.disk import expanded
from textcat.base.errors import TextcatError, install_hint, similar_files
from textcat.corpus.descriptions import decoded_text
from textcat.corpus.documents import Document
from textcat.reading import STEP, ByteStream, UnreadableError, open_file, plain_name, unpacked_stream
from textcat.reading.labels import seen_name

if TYPE_CHECKING:
    import rdflib

_SKOS = {".ttl": "turtle", ".rdf": "xml", ".xml": "xml", ".nt": "nt"}  # rdflib's names of these formats
_LANGUAGE = "en"  # default language of names
_DEPRECATED = re.compile(r"\W*deprecated\b", re.IGNORECASE)  # beginning of a note of a deprecated concept
_URI = re.compile(r"https?://[^\s<>\"']+[\w/#]")
_NOTES = ("historyNote", "changeNote")  # SKOS notes that may say that a concept is deprecated

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Vocabulary:
    """The names of topics by id: for each topic, the preferred name, followed by synonyms.

    Parameters
    ----------
    names : dict of str to tuple of str
    place : str
        The path of the file, for messages.
    language : str
        The language of the preferred names; "" if unknown.
    descriptions : dict of str to str
        Descriptions of topics: definitions and scope notes. Topics may have none.
    labels : dict of str to dict of str to str
        By language, the preferred names of topics by id; the language is "" if the file does not say it.
    broader : dict of str to tuple of str
        For each concept of SKOS, by id: its direct broader concepts, including nameless ones.
    replacements : dict of str to tuple of str
        For each deprecated topic, by id and by preferred name: the topics that replace it, named in the same way; () if
        there are none.
    """

    names: dict[str, tuple[str, ...]]
    place: str = ""
    language: str = ""
    descriptions: dict[str, str] = field(default_factory=dict)
    labels: dict[str, dict[str, str]] = field(default_factory=dict)
    replacements: dict[str, tuple[str, ...]] = field(default_factory=dict)
    broader: dict[str, tuple[str, ...]] = field(default_factory=dict)

    @classmethod
    def read(cls, path: str | os.PathLike[str], language: str | None = None, default: str = "") -> "Vocabulary":
        """Read a vocabulary from a file, which may be compressed.

        ``.tsv``: each line has an id, or a URI in ``<>``, a name, and optionally a notation, which is ignored; another
        line with the same id adds a synonym. ``.csv``: columns ``uri`` and ``label_en`` or ``label``. ``.ttl``,
        ``.rdf``, ``.xml`` and ``.nt``: SKOS; this needs rdflib. All other labels of a concept are synonyms: alternative
        and hidden labels, and the labels in other languages. Definitions and scope notes are its description.
        Deprecated concepts have no names, but possibly replacements, by ``dct:isReplacedBy``.

        Parameters
        ----------
        path : path
        language : str, optional
            Language of the preferred names, such as "fi". In SKOS, concepts without a preferred label in it are left
            out; in CSV, it chooses the column ``label_fi``. The default is "en" for both.
        default : str, optional
            The language if none is given, except in TSV, whose names have one language, which the file does not state.

        Returns
        -------
        Vocabulary

        Raises
        ------
        TextcatError
            If the file is missing or malformed, has no name in that language, or needs rdflib, which is not installed.
        """
        path = expanded(path)
        if ".tsv" not in path.suffixes:
            language = language or default
        try:
            stored = open_file(str(path))
            try:
                return read_vocabulary_stream(path.name, unpacked_stream(stored, path.name), language, str(path))
            finally:
                stored.close()
        except UnreadableError as fault:
            raise TextcatError(f"The vocabulary {path} {fault}: check the path.{similar_files(path)}") from None

    def of(self, topics: Iterable[str]) -> dict[str, tuple[str, ...]]:
        """Return the names of the given topics, each of which is an id or a preferred name.

        Unknown topics are left out; TextcatError is raised if all topics are unknown.
        """
        topics = list(topics)
        ids = self._ids(topics)
        if topics and not ids:
            raise TextcatError(
                f"The vocabulary {self.place} has none of the corpus' topics: they are such as {min(topics)!r}, its "
                f"own such as {next(iter(self.names))!r}. Give the vocabulary that the corpus was indexed with."
            )
        return {topic: self.names[id_] for topic, id_ in ids.items()}

    def descriptions_of(self, topics: Iterable[str]) -> dict[str, str]:
        """Return the descriptions of those given topics that have one; topics are given by id or preferred name."""
        described = ((topic, self.descriptions.get(id_, "")) for topic, id_ in self._ids(topics).items())
        return {topic: text for topic, text in described if text}

    def broader_of(self, topics: Iterable[str]) -> dict[str, tuple[str, ...]]:
        """Return the nearest broader topics, among the given ones, of each given topic that has any.

        Topics are given by id or preferred name. A broader concept that is not a topic is replaced by its own broader
        concepts.
        """
        id_of = self._concepts([*topics])
        topic_of = {id_: topic for topic, id_ in id_of.items()}

        def nearest(concept: str) -> Iterator[str]:
            seen, waiting = {concept}, deque(self.broader.get(concept, ()))
            while waiting:
                other = waiting.popleft()
                if other not in seen:
                    seen.add(other)
                    if other in topic_of:
                        yield topic_of[other]
                    else:
                        waiting += self.broader.get(other, ())

        found = {topic: tuple(nearest(id_)) for topic, id_ in id_of.items() if id_ in self.broader}
        return {topic: others for topic, others in found.items() if others}

    def broader_after(self, topics: Iterable[str], before: Mapping[str, tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
        """Return the nearest broader topics of topics, after this vocabulary was added to an earlier one.

        Parameters
        ----------
        topics : iterable of str
        before : dict of str to tuple of str
            The nearest broader topics by the earlier vocabulary. Topics that are not in this one keep theirs; all do,
            if no concept of this one has a broader one.

        Returns
        -------
        dict of str to tuple of str
            As `broader_of` returns.
        """
        topics = [*topics]
        here = self._concepts(topics) if self.broader else ()
        return {**{topic: others for topic, others in before.items() if topic not in here}, **self.broader_of(topics)}

    def current(self, documents: Iterable[Document], *, warn: bool = True) -> list[Document]:
        """Return documents in which deprecated topics are replaced, or removed if they have no replacement.

        Parameters
        ----------
        documents : iterable of Document
        warn : bool, default=True
            Log as warnings which topics are replaced and which are removed.

        Returns
        -------
        list of Document
        """
        if not self.replacements:
            return [*documents]
        deprecated: Counter[str] = Counter()

        def renewed(document: Document) -> Document:
            deprecated.update(topic for topic in document.topics if topic in self.replacements)
            judged = document.labelled_for
            return replace(
                document,
                topics=self.replaced(document.topics),
                labelled_for=None if judged is None else self.replaced(judged),
            )

        documents = [*map(renewed, documents)]
        for are_replaced in (True, False) if warn else ():
            topics = sorted(topic for topic in deprecated if bool(self.replacements[topic]) == are_replaced)
            if topics:
                by = " and ".join(self.replacements[topics[0]])
                remedy = f"replaced, such as {topics[0]} by {by}" if are_replaced else f"left out, such as {topics[0]}"
                what = f"{len(topics)} deprecated topic{'s' * (len(topics) > 1)} of the documents"
                log.warning("%s: %s %s.", self.place, what, remedy)
        return documents

    def replaced(self, topics: Iterable[str]) -> tuple[str, ...]:
        """Return topics, each once, with deprecated ones replaced."""
        return tuple(dict.fromkeys(current for topic in topics for current in self.replacements.get(topic, (topic,))))

    def _concepts(self, topics: Sequence[str]) -> dict[str, str]:
        """Return the id of each given topic that is known as `_ids` does, also of concepts without a name."""
        concepts = {*self.broader, *chain.from_iterable(self.broader.values())}
        return {topic: topic for topic in topics if topic in concepts} | self._ids(topics)

    def _ids(self, topics: Iterable[str]) -> dict[str, str]:
        """Return the id of each given topic that is known; topics are given by id or preferred name.

        A name that only looks the same, such as one in another Unicode form, is known if no other looks so.
        """
        of_label = {names[0]: id_ for id_, names in self.names.items()}
        ids = {topic: topic if topic in self.names else of_label.get(topic) for topic in topics}
        if others := [topic for topic, id_ in ids.items() if id_ is None]:
            of_looks: dict[str, list[str]] = defaultdict(list)
            for id_, names in self.names.items():
                for look in {seen_name(id_), seen_name(names[0])}:
                    of_looks[look].append(id_)
            alike = {topic: of_looks.get(seen_name(topic), ()) for topic in others}
            ids |= {topic: found[0] for topic, found in alike.items() if len(found) == 1}
        return {topic: id_ for topic, id_ in ids.items() if id_ is not None}


def read_vocabulary_stream(name: str, stream: ByteStream, language: str | None, location: str) -> Vocabulary:
    """Read a vocabulary from the decompressed bytes of a file; the extension of `name` tells the format.

    For the formats and `language` see `Vocabulary.read`. Error messages name the file by `location`.
    """
    data, suffix = b"".join(iter(lambda: stream.read(STEP), b"")), PurePosixPath(plain_name(name)).suffix.lower()
    if suffix in _SKOS:
        return _from_skos(location, data, _SKOS[suffix], language or _LANGUAGE)
    if suffix not in (".tsv", ".csv"):
        endings = ", ".join((".tsv", ".csv", *_SKOS))
        raise TextcatError(f"{location} cannot be read as a vocabulary: its name must end in one of {endings}.")
    lines = decoded_text(data, location).splitlines()
    if suffix == ".tsv":
        names, labels = _names_of(_from_tsv(location, lines)), {}
    else:
        of_language, columns = _from_csv(location, lines, language or _LANGUAGE)
        names = _names_of(of_language)
        labels = {code: _preferred(_names_of(pairs)) for code, pairs in columns.items()}
    if not names:
        raise TextcatError(f"The vocabulary {location} names no topic: give an id and a name a line.")
    return Vocabulary(names, location, language or "", labels=labels or {language or "": _preferred(names)})


def _names_of(pairs: Iterable[tuple[str, str]]) -> dict[str, tuple[str, ...]]:
    names: dict[str, dict[str, None]] = {}
    for topic, label in pairs:
        names.setdefault(topic, {})[label] = None
    return {topic: tuple(labels) for topic, labels in names.items()}


def _preferred(names: Mapping[str, tuple[str, ...]]) -> dict[str, str]:
    return {topic: called[0] for topic, called in names.items()}


def _from_tsv(location: str, lines: list[str]) -> Iterator[tuple[str, str]]:
    for number, line in enumerate(lines, start=1):
        cells = [cell.strip() for cell in line.split("\t")]
        if not any(cells):
            continue
        topic = _without_brackets(cells[0])
        if len(cells) < 2 or not topic or not cells[1]:
            raise TextcatError(f"{location}: line {number} is {line!r:.60}; it must be an id, a tab and a name.")
        yield topic, cells[1]


def _from_csv(
    location: str, lines: list[str], language: str
) -> tuple[list[tuple[str, str]], dict[str, list[tuple[str, str]]]]:
    """Return pairs (id, name) in a language (if it has no column, those of the column `label`), and all by language."""
    try:
        rows = [*csv.reader(lines)]
    except csv.Error as error:
        raise TextcatError(f"{location} is not CSV ({error}): mend it.") from None
    columns = rows[0] if rows else []
    label = next((name for name in (f"label_{language}", "label") if name in columns), "")
    if "uri" not in columns or not label:
        raise TextcatError(
            f"{location} has the columns {', '.join(columns)!r:.100}: it must have 'uri' and 'label_{language}'; "
            "name another language with --vocabulary-language."
        )
    of_columns: dict[str, list[tuple[str, str]]] = {name: [] for name in columns if name.partition("_")[0] == "label"}
    for number, cells in enumerate(rows[1:], start=2):
        row = dict(zip(columns, map(str.strip, cells), strict=False))
        topic = _without_brackets(row.get("uri", ""))
        for column, pairs in of_columns.items():
            if (name := row.get(column, "")) and not topic:
                raise TextcatError(f"{location}: row {number} is {cells!r:.60}; it must have a uri.")
            pairs += [(topic, name)] if name else []
    return of_columns[label], {column.partition("_")[2]: pairs for column, pairs in of_columns.items()}


def _without_brackets(uri: str) -> str:
    return uri.removeprefix("<").removesuffix(">").strip()


def _from_skos(location: str, data: bytes, form: str, language: str) -> Vocabulary:
    """Read the concepts of SKOS that have a preferred label in a language or, if they have none, without a language."""
    try:
        import rdflib
        from rdflib.namespace import RDF, SKOS
    except ImportError:
        raise TextcatError(f"{location} is SKOS, which rdflib reads: {install_hint('skos')}.") from None
    graph = rdflib.Graph()
    try:
        graph.parse(data=data, format=form)
    except Exception as error:  # every parser of rdflib has its own exceptions
        reason = " ".join(str(error).split())  # some messages have several lines
        raise TextcatError(f"{location} is no {form} that rdflib reads ({reason:.100}): mend it.") from None
    names: dict[str, tuple[str, ...]] = {}
    descriptions: dict[str, str] = {}
    labels: dict[str, dict[str, str]] = {}
    deprecated = _deprecated_concepts(graph)
    for concept in sorted(set(graph.subjects(RDF.type, SKOS.Concept)) - deprecated.keys()):
        preferred, alternative, hidden, definition, scope_note = (
            _Texts.of(_literals(graph, concept, kind), language)
            for kind in (SKOS.prefLabel, SKOS.altLabel, SKOS.hiddenLabel, SKOS.definition, SKOS.scopeNote)
        )
        for code, text in preferred.by_language.items():
            labels.setdefault(code, {})[str(concept)] = text
        if not preferred.own:
            continue
        called = (*preferred.own, *alternative.own, *hidden.own, *preferred.foreign, *alternative.foreign)
        names[str(concept)] = tuple(dict.fromkeys((*called, *hidden.foreign)))
        notes = dict.fromkeys((*definition.own, *scope_note.own, *definition.foreign, *scope_note.foreign))
        if notes:
            descriptions[str(concept)] = " ".join(notes)
    languages = labels.keys() - {""}
    if names:
        replacements = {str(concept): tuple(map(str, _current(concept, deprecated))) for concept in deprecated}
        current_labels = {label for called in labels.values() for label in called.values()}
        for concept in sorted(deprecated):
            others = tuple(names[id_][0] for id_ in replacements[str(concept)] if id_ in names)
            for text in _Texts.of(_literals(graph, concept, SKOS.prefLabel), language).own:
                if text not in current_labels:
                    replacements.setdefault(text, others)
        return Vocabulary(names, location, language, descriptions, labels, replacements, _broader(graph))
    if languages:
        raise TextcatError(
            f"The vocabulary {location} has no name in {language!r}, but in {', '.join(sorted(languages))}: "
            "name one of these with --vocabulary-language."
        )
    raise TextcatError(f"The vocabulary {location} names no topic: give it a skos:Concept with a skos:prefLabel.")


def _deprecated_concepts(graph: "rdflib.Graph") -> dict["rdflib.URIRef", list["rdflib.URIRef"]]:
    """Return the deprecated concepts of a graph, each with the concepts that the graph says replace it.

    A concept is deprecated if it has ``owl:deprecated true``, is replaced by another one (``dct:isReplacedBy``), or has
    a history or change note that begins with "deprecated"; such a note may have the URI of the replacement.
    """
    import rdflib
    from rdflib.namespace import DCTERMS, OWL, RDF, SKOS

    concepts = set(graph.subjects(RDF.type, SKOS.Concept))
    deprecated: dict[rdflib.URIRef, list[rdflib.URIRef]] = {}
    for concept, value in graph.subject_objects(OWL.deprecated):
        if str(value).lower() in ("true", "1"):
            deprecated.setdefault(concept, [])
    for kind in _NOTES:
        for concept, note in graph.subject_objects(SKOS[kind]):
            if _DEPRECATED.match(str(note)):
                deprecated.setdefault(concept, []).extend(map(rdflib.URIRef, _URI.findall(str(note))))
    for concept, other in graph.subject_objects(DCTERMS.isReplacedBy):
        deprecated.setdefault(concept, []).append(other)
    possible = concepts | deprecated.keys()
    return {concept: sorted({*others} & possible - {concept}) for concept, others in deprecated.items()}


def _broader(graph: "rdflib.Graph") -> dict[str, tuple[str, ...]]:
    """Return the broader concepts of each concept: by ``skos:broader``, or by ``skos:narrower`` of these."""
    from rdflib.namespace import SKOS

    pairs = {*graph.subject_objects(SKOS.broader)} | {(sub, sup) for sup, sub in graph.subject_objects(SKOS.narrower)}
    broader: dict[str, list[str]] = {}
    for concept, other in sorted((str(concept), str(other)) for concept, other in pairs):
        broader.setdefault(concept, []).append(other)
    return {concept: tuple(others) for concept, others in broader.items()}


def _current(
    concept: "rdflib.URIRef", deprecated: Mapping["rdflib.URIRef", list["rdflib.URIRef"]]
) -> list["rdflib.URIRef"]:
    """Follow all chains of replacements of a concept; return those concepts on the way that are not deprecated."""
    seen, waiting, ends = {concept}, [concept], []
    while waiting:
        reached = waiting.pop(0)
        if reached not in deprecated:
            ends.append(reached)
        for other in deprecated.get(reached, ()):
            if other not in seen:
                seen.add(other)
                waiting.append(other)
    return ends


def _literals(graph: "rdflib.Graph", concept: Any, kind: Any) -> list["rdflib.Literal"]:
    import rdflib

    return [text for text in graph.objects(concept, kind) if isinstance(text, rdflib.Literal)]


class _Texts(NamedTuple):
    """The texts of one kind of a concept, such as its alternative labels."""

    own: list[str]  # in the requested language or, if there are none, without a language
    foreign: list[str]  # all others
    by_language: dict[str, str]  # the first one of each language

    @classmethod
    def of(cls, literals: Iterable["rdflib.Literal"], language: str) -> "_Texts":
        """Divide texts into those in a language, such as "en", and all others; sort both, and leave out blank texts.

        If there is no text in the language, those without a language take their place.
        """
        texts = sorted({(_language(literal), " ".join(literal.split())) for literal in literals})
        texts = [(code, text) for code, text in texts if text]
        by_language = dict(reversed(texts))
        chosen = language.lower() if language.lower() in by_language else ""
        of_language = [text for code, text in texts if code == chosen]
        return cls(of_language, [text for code, text in texts if code != chosen], by_language)


def _language(literal: "rdflib.Literal") -> str:
    return (literal.language or "").partition("-")[0].lower()
