"""Train and use Annif's own systems, in processes of the Python that has it: it needs versions of its own of libraries.

annif_systems.py sentences FOLDER                # what NLTK needs to cut texts, without a download
annif_systems.py tops FOLDER PROJECT N OUT.npy   # the first 20 topics of the first N test documents
annif_systems.py speed FOLDER PROJECT N       # prints titles a second
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any
from urllib.parse import quote

from many_topics_rates import RANKS, TAGGED, print_rates

PROJECTS = {
    "Annif, tfidf": "tfidf",
    "Annif, mllm": "mllm",
    "Annif, omikuji": "omikuji",
    "Annif, omikuji and mllm": "ensemble",
}
SOURCES = {"ensemble": ("omikuji", "mllm")}  # projects that average those of others, and are not trained
MLLM_TITLES = 10_000  # MLLM learns from few documents when a word means a topic
CUT_BY = 100_000  # titles that Punkt learns abbreviations from
VOCABULARY, ANALYZERS = "yso", {"en": "snowball(english)", "sv": "snowball(swedish)"}
BASE = "http://www.yso.fi/onto/yso/"


def python() -> str | None:
    """Return the Python that has Annif, as scripts/benchmark names it."""
    return os.environ.get("TEXTCAT_ANNIF") or None


def _environment(folder: Path) -> list[str]:
    """Return the words in front of a command by which Annif and NLTK find what lies in a folder."""
    named = {"ANNIF_PROJECTS": folder / "projects.cfg", "ANNIF_DATADIR": folder / "data", "NLTK_DATA": folder / "nltk"}
    return ["env", *(f"{name}={path}" for name, path in named.items())]


def load_command(folder: Path) -> list[Any]:
    """Return Annif's command that loads the vocabulary."""
    return [*command(folder), "load-vocab", "--force", VOCABULARY, folder / f"{VOCABULARY}.ttl"]


def train_command(folder: Path, project: str, jobs: int = 1) -> list[Any]:
    """Return Annif's command that trains a project."""
    few = ["--docs-limit", MLLM_TITLES] if project == "mllm" else []
    return [*command(folder), "train", "--jobs", jobs, *few, project, folder / "train.tsv"]


def model(folder: Path, project: str) -> Path:
    """Return the folder that Annif saves a project to."""
    return folder / "data" / "projects" / project


def command(folder: Path) -> list[Any]:
    """Return what starts Annif, which lies beside its Python."""
    return [*_environment(folder), Path(python() or "python").with_name("annif")]


def script(folder: Path, task: str, *arguments: object) -> list[Any]:
    """Return the command that runs a task of this script by the Python of Annif."""
    return [*_environment(folder), python(), __file__, task, folder, *arguments]


# --- files, by the Python of textcat ---------------------------------------------------------------------------------


def write_files(corpus: Any, folder: Path, language: str, projects: Iterable[str]) -> None:
    """Write a corpus, the names of its topics in a language, and the projects, as Annif reads them."""
    folder.mkdir(exist_ok=True)
    for part in ("train", "test"):
        with (folder / f"{part}.tsv").open("w", encoding="utf-8") as file:
            file.writelines(short_texts(getattr(corpus, part), {*corpus.topics}))
    with (folder / f"{VOCABULARY}.ttl").open("w", encoding="utf-8") as file:
        file.writelines(skos(corpus.topics, corpus.names, language))
    (folder / "topics.json").write_text(json.dumps(corpus.topics))
    settings = f"language={language}\nanalyzer={ANALYZERS[language]}\nvocab={VOCABULARY}\nlimit=100\n"
    sections = []
    for project in projects:
        sources = f"sources={','.join(SOURCES[project])}\n" if project in SOURCES else ""
        sections.append(f"[{project}]\nname={project}\nbackend={project}\n{settings}{sources}")
    (folder / "projects.cfg").write_text("\n".join(sections))


def short_texts(documents: Sequence[Any], topics: set[str]) -> Iterator[str]:
    """Yield the lines of a corpus of short texts; a title with a tab or a line's end in it has a space there."""
    for document in documents:
        text = " ".join(" ".join(document.zones.values()).split())
        yield f"{text}\t{' '.join(uri(topic) for topic in document.topics if topic in topics)}\n"


def uri(topic: str) -> str:
    """Return the URI of a topic, in angle brackets."""
    return f"<{BASE}{quote(topic)}>"


def skos(topics: Sequence[str], names: Mapping[str, Sequence[str]], language: str) -> Iterator[str]:
    """Yield the lines of a SKOS vocabulary in Turtle; a topic without a name is called by its id."""
    yield "@prefix skos: <http://www.w3.org/2004/02/skos/core#> .\n"
    for topic in topics:
        name, *synonyms = names.get(topic) or [topic]
        labels = [("prefLabel", name), *(("altLabel", synonym) for synonym in synonyms)]
        # A string of Turtle is escaped as one of JSON is.
        said = "".join(f" ; skos:{kind} {json.dumps(label, ensure_ascii=False)}@{language}" for kind, label in labels)
        yield f"{uri(topic)} a skos:Concept{said} .\n"


# --- tasks, by the Python of Annif -----------------------------------------------------------------------------------


def sentences(folder: str) -> None:
    """Let NLTK learn abbreviations from titles, for Annif would otherwise download a model of news."""
    from nltk.tokenize.punkt import PunktTrainer, save_punkt_params

    with Path(folder, "train.tsv").open(encoding="utf-8") as file:
        titles = "\n".join(line.partition("\t")[0] for line in islice(file, CUT_BY))
    learned = Path(folder, "nltk", "tokenizers", "punkt_tab", "english")
    learned.mkdir(parents=True, exist_ok=True)
    save_punkt_params(PunktTrainer(titles).get_params(), learned)


def tops(folder: str, project: str, n: str, out: str) -> None:
    """Save the first topics of each test document, -1 where there are fewer."""
    import numpy as np

    columns = {uri(topic)[1:-1]: j for j, topic in enumerate(json.loads(Path(folder, "topics.json").read_text()))}
    loaded, best = _project(folder, project), np.full((int(n), RANKS), -1, np.int32)
    for i, suggested in enumerate(_suggested(loaded, _titles(folder, n), RANKS)):
        best[i, : len(suggested)] = [columns[loaded.subjects[suggestion.subject_id].uri] for suggestion in suggested]
    np.save(out, best)


def speed(folder: str, project: str, n: str) -> None:
    """Tag documents, from their texts, in the batches of `annif index`, and print how many a second."""
    loaded = _project(folder, project)
    print_rates(lambda some: list(_suggested(loaded, some, TAGGED)), _titles(folder, n))


def _titles(folder: str, n: str) -> list[str]:
    with Path(folder, "test.tsv").open(encoding="utf-8") as file:
        return [line.partition("\t")[0] for line in islice(file, int(n))]


def _project(folder: str, name: str) -> Any:
    from annif.registry import AnnifRegistry

    return AnnifRegistry(str(Path(folder, "projects.cfg")), str(Path(folder, "data")), False).get_project(name)


def _suggested(project: Any, titles: Sequence[str], limit: int) -> Iterator[list[Any]]:
    from annif.corpus import Document, DocumentList

    documents = DocumentList([Document(text=title) for title in titles])
    # Of equal scores, the one that Annif has first stands first.
    yield from map(list, project.suggest_corpus(documents, {project.backend.backend_id: {"limit": limit}}))


if __name__ == "__main__":
    {"sentences": sentences, "tops": tops, "speed": speed}[sys.argv[1]](*sys.argv[2:])
