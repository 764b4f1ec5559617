"""Read a vocabulary, the names of topics, from TSV, CSV or SKOS."""

import csv
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, NamedTuple

from textcat.corpus.descriptions import decoded_text
from textcat.errors import TextcatError, install_hint, similar_files
from textcat.reading import STEP, ByteStream, UnreadableError, open_file, plain_name, unpacked_stream

if TYPE_CHECKING:
    import rdflib

_SKOS = {".ttl": "turtle", ".rdf": "xml", ".xml": "xml", ".nt": "nt"}  # rdflib's names of these formats
_LANGUAGE = "en"  # of the names that are read, if none is asked for


@dataclass(frozen=True)
class Vocabulary:
    """Hold the names of topics by id: for each topic the preferred name, followed by synonyms.

    Parameters
    ----------
    names : dict of str to tuple of str
    place : str
        The path of the file, for messages.
    language : str
        The language of the preferred names; "" if neither the file nor its reader says it.
    descriptions : dict of str to str
        What the vocabulary says about topics besides names: definitions and scope notes. Topics may lack one.
    """

    names: dict[str, tuple[str, ...]]
    place: str = ""
    language: str = ""
    descriptions: dict[str, str] = field(default_factory=dict)

    @classmethod
    def read(cls, path: str | Path, language: str | None = None) -> "Vocabulary":
        """Read a vocabulary from a file, which may be compressed.

        ``.tsv``: each line has an id, or a URI in ``<>``, a name, and optionally a notation, which is ignored; another
        line with the same id adds a synonym. ``.csv``: columns ``uri`` and ``label_en`` or ``label``. ``.ttl``,
        ``.rdf``, ``.xml`` and ``.nt``: SKOS without deprecated concepts; this needs rdflib. All other labels of a
        concept are synonyms: alternative and hidden labels, and the labels in other languages. Definitions and scope
        notes are its description.

        Parameters
        ----------
        path : str or Path
        language : str, optional
            Language of the preferred names, such as "fi". In SKOS, concepts without a preferred label in it are left
            out; in CSV, it chooses the column ``label_fi``. The default is "en" for both.

        Returns
        -------
        Vocabulary

        Raises
        ------
        TextcatError
            If the file is missing or malformed, has no name in that language, or needs rdflib, which is not installed.
        """
        path = Path(path).expanduser()
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

    def _ids(self, topics: Iterable[str]) -> dict[str, str]:
        """Return the id of each given topic that is known; topics are given by id or preferred name."""
        of_label = {names[0]: id_ for id_, names in self.names.items()}
        ids = ((topic, topic if topic in self.names else of_label.get(topic)) for topic in topics)
        return {topic: id_ for topic, id_ in ids if id_ is not None}


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
    pairs = _from_tsv(location, lines) if suffix == ".tsv" else _from_csv(location, lines, language or _LANGUAGE)
    names: dict[str, dict[str, None]] = {}
    for topic, label in pairs:
        names.setdefault(topic, {})[label] = None
    if not names:
        raise TextcatError(f"The vocabulary {location} names no topic: give an id and a name a line.")
    return Vocabulary({topic: tuple(labels) for topic, labels in names.items()}, location, language or "")


def _from_tsv(location: str, lines: list[str]) -> Iterator[tuple[str, str]]:
    for number, line in enumerate(lines, start=1):
        cells = [cell.strip() for cell in line.split("\t")]
        if not any(cells):
            continue
        topic = _without_brackets(cells[0])
        if len(cells) < 2 or not topic or not cells[1]:
            raise TextcatError(f"{location}: line {number} is {line!r:.60}; it must be an id, a tab and a name.")
        yield topic, cells[1]


def _from_csv(location: str, lines: list[str], language: str) -> Iterator[tuple[str, str]]:
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
    for number, cells in enumerate(rows[1:], start=2):
        row = dict(zip(columns, map(str.strip, cells), strict=False))
        topic, name = _without_brackets(row.get("uri", "")), row.get(label, "")
        if name and not topic:
            raise TextcatError(f"{location}: row {number} is {cells!r:.60}; it must have a uri.")
        if name:
            yield topic, name


def _without_brackets(uri: str) -> str:
    return uri.removeprefix("<").removesuffix(">").strip()


def _from_skos(location: str, data: bytes, form: str, language: str) -> Vocabulary:
    """Read the concepts of SKOS that have a preferred label in a language or, if they have none, without a language."""
    try:
        import rdflib
        from rdflib.namespace import OWL, RDF, SKOS
    except ImportError:
        raise TextcatError(f"{location} is SKOS, which rdflib reads: {install_hint('skos')}.") from None
    graph = rdflib.Graph()
    try:
        graph.parse(data=data, format=form)
    except Exception as error:  # each of rdflib's parsers has exceptions of its own
        reason = " ".join(str(error).split())  # some have several lines
        raise TextcatError(f"{location} is no {form} that rdflib reads ({reason:.100}): mend it.") from None
    names: dict[str, tuple[str, ...]] = {}
    descriptions: dict[str, str] = {}
    languages: set[str] = set()
    for concept in sorted(set(graph.subjects(RDF.type, SKOS.Concept))):
        if any(str(value).lower() in ("true", "1") for value in graph.objects(concept, OWL.deprecated)):
            continue
        preferred, alternative, hidden, definition, scope_note = (
            _Texts.of([text for text in graph.objects(concept, kind) if isinstance(text, rdflib.Literal)], language)
            for kind in (SKOS.prefLabel, SKOS.altLabel, SKOS.hiddenLabel, SKOS.definition, SKOS.scopeNote)
        )
        languages |= preferred.languages
        if not preferred.own:
            continue
        labels = (*preferred.own, *alternative.own, *hidden.own, *preferred.foreign, *alternative.foreign)
        names[str(concept)] = tuple(dict.fromkeys((*labels, *hidden.foreign)))
        notes = dict.fromkeys((*definition.own, *scope_note.own, *definition.foreign, *scope_note.foreign))
        if notes:
            descriptions[str(concept)] = " ".join(notes)
    if names:
        return Vocabulary(names, location, language, descriptions)
    if languages:
        raise TextcatError(
            f"The vocabulary {location} has no name in {language!r}, but in {', '.join(sorted(languages))}: "
            "name one of these with --vocabulary-language."
        )
    raise TextcatError(f"The vocabulary {location} names no topic: give it a skos:Concept with a skos:prefLabel.")


class _Texts(NamedTuple):
    """Hold the texts that a concept has of one kind, such as its alternative labels."""

    own: list[str]  # in the language that was asked for or, if there are none, without a language
    foreign: list[str]  # all others
    languages: set[str]

    @classmethod
    def of(cls, literals: Iterable["rdflib.Literal"], language: str) -> "_Texts":
        """Divide texts by language, and sort those of each language; blank ones are left out."""
        texts = sorted({(_language(literal), " ".join(literal.split())) for literal in literals})
        languages = {of_text for of_text, text in texts if text} - {""}
        chosen = language.lower() if language.lower() in languages else ""
        own = [text for of_text, text in texts if text and of_text == chosen]
        return cls(own, [text for of_text, text in texts if text and of_text != chosen], languages)


def _language(literal: "rdflib.Literal") -> str:
    return (literal.language or "").partition("-")[0].lower()
