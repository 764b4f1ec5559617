"""Read a vocabulary, the names of topics, from TSV, CSV or SKOS."""

import csv
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

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
        The language of the names; "" if neither the file nor its reader says it.
    """

    names: dict[str, tuple[str, ...]]
    place: str = ""
    language: str = ""

    @classmethod
    def read(cls, path: str | Path, language: str | None = None) -> "Vocabulary":
        """Read a vocabulary from a file, which may be compressed.

        ``.tsv``: each line has an id, or a URI in ``<>``, a name, and optionally a notation, which is ignored; another
        line with the same id adds a synonym. ``.csv``: columns ``uri`` and ``label_en`` or ``label``. ``.ttl``,
        ``.rdf``, ``.xml`` and ``.nt``: SKOS without deprecated concepts, whose alternative labels are synonyms; this
        needs rdflib.

        Parameters
        ----------
        path : str or Path
        language : str, optional
            Language of the names, such as "fi". It chooses the labels in SKOS, and the column ``label_fi`` in CSV; the
            default is "en" for both.

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
        of_label = {names[0]: names for names in self.names.values()}
        names_found = {topic: names for topic in topics if (names := self.names.get(topic) or of_label.get(topic))}
        if topics and not names_found:
            raise TextcatError(
                f"The vocabulary {self.place} has none of the corpus' topics: they are such as {min(topics)!r}, its "
                f"own such as {next(iter(self.names))!r}. Give the vocabulary that the corpus was indexed with."
            )
        return names_found


def read_vocabulary_stream(name: str, stream: ByteStream, language: str | None, location: str) -> Vocabulary:
    """Read a vocabulary from the decompressed bytes of a file; the extension of `name` tells the format.

    For the formats and `language` see `Vocabulary.read`. Error messages name the file by `location`.
    """
    data, suffix = b"".join(iter(lambda: stream.read(STEP), b"")), PurePosixPath(plain_name(name)).suffix.lower()
    if suffix in _SKOS:
        language = language or _LANGUAGE
        pairs: Iterable[tuple[str, str]] = _from_skos(location, data, _SKOS[suffix], language)
    elif suffix in (".tsv", ".csv"):
        lines = decoded_text(data, location).splitlines()
        pairs = _from_tsv(location, lines) if suffix == ".tsv" else _from_csv(location, lines, language or _LANGUAGE)
    else:
        endings = ", ".join((".tsv", ".csv", *_SKOS))
        raise TextcatError(f"{location} cannot be read as a vocabulary: its name must end in one of {endings}.")
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


def _from_skos(location: str, data: bytes, form: str, language: str) -> Iterable[tuple[str, str]]:
    try:
        import rdflib
        from rdflib.namespace import OWL, RDF, SKOS
    except ImportError:
        raise TextcatError(f"{location} is SKOS, which rdflib reads: {install_hint('skos')}.") from None
    graph = rdflib.Graph()
    try:
        graph.parse(data=data, format=form)
    except Exception as error:  # each of rdflib's parsers has exceptions of its own
        raise TextcatError(f"{location} is no {form} that rdflib reads ({error!s:.100}): mend it.") from None
    concepts = sorted(str(concept) for concept in graph.subjects(RDF.type, SKOS.Concept))
    languages: set[str] = set()
    pairs: list[tuple[str, str]] = []
    for concept in map(rdflib.URIRef, concepts):
        if any(str(value).lower() in ("true", "1") for value in graph.objects(concept, OWL.deprecated)):
            continue
        preferred = [label for label in graph.objects(concept, SKOS.prefLabel) if isinstance(label, rdflib.Literal)]
        languages.update(label.language or "" for label in preferred)
        main = _in_language(preferred, language)
        alternatives = [label for label in graph.objects(concept, SKOS.altLabel) if isinstance(label, rdflib.Literal)]
        pairs += [(str(concept), name) for name in (*main, *_in_language(alternatives, language)) if main]
    if languages and not pairs:
        raise TextcatError(
            f"The vocabulary {location} has no name in {language!r}, but in "
            f"{', '.join(sorted(filter(None, languages)))}: "
            "name one of these with --vocabulary-language."
        )
    return pairs


def _in_language(labels: list["rdflib.Literal"], language: str) -> list[str]:
    """Return the labels in a language, sorted; if there are none, return the labels that have no language."""
    chosen = [label for label in labels if (label.language or "").partition("-")[0].lower() == language.lower()]
    return sorted({str(label) for label in chosen or labels if label.language is None or label in chosen})
