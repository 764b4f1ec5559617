"""Training and tagging with 25,062 library subjects, beside Omikuji and Annif's own systems; also in Swedish."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping, Sequence
from functools import cached_property
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from statistics import median
from typing import Any

import annif_systems as annif
import numpy as np
import titles
from harness import Row, Work, cost, output, python, run, size_of
from many_topics_work import RECIPE

from textcat.base.disk import write_atomically
from textcat.base.errors import TextcatError
from textcat.corpus.catalogue import open_corpus
from textcat.corpus.documents import Corpus
from textcat.evaluation.at_k import evaluate_at_k
from textcat.evaluation.evaluation import Evaluation
from textcat.evaluation.significance import compare_evaluations

QUICK = 3_000  # titles
OURS: dict[str, list[str]] = {"textcat": [], "textcat without names": ["topics.description_copies=0"]}
PEERS = {"Omikuji, default": "default", "Omikuji, Bonsai-like": "bonsai"}
BANDS = ("ALL", "1-5", "101-")
MEASURES = {"P@1": "precision@1", "nDCG@10": "ndcg@10", "recall@10": "recall@10", "PSP@5": "psp@5"}
RESAMPLES = 1000
TAGGED_BY_PEER = 5_000  # titles; those, too, that Annif's systems are measured on
HIDDEN, LEAST_TESTED = 300, 5  # topics, and the test documents that each of them has; of a sample, 1
SIZES = (100, 1_000, 5_000, 25_062)  # topics
TESTED = {"en": 50_000, "sv": 20_000}  # the last titles
ONE_THREAD = [f"{name}_NUM_THREADS=1" for name in ("OMP", "OPENBLAS", "MKL", "RAYON")]
Facts = Mapping[str, Any]


class Titles:
    """The titles in a language, or the first of them, and what is made of them: each thing when it is asked for."""

    def __init__(self, work: Work, language: str = "en"):
        self.work, self.language = work, language
        self.n = work.documents(0, QUICK)  # 0: all
        self.settings = [] if language == "en" else [f"tokens.lang={language}"]
        self.source = f"yso-finna-{language}"
        if titles.located(self.source) is None:
            raise TextcatError(f"The corpus {self.source} is not here: `textcat corpora` says where it is looked for.")
        self.name = str(self._sample()) if self.n else self.source

    def _sample(self) -> Path:
        """Write the first titles, a tenth more to test on and their names, and return the card of this corpus."""
        folder, subjects = self.path("titles"), f"yso-{self.language}-topics"
        folder.mkdir(exist_ok=True)
        source, n_test = titles.located(self.source), min(self.n // 10, TESTED[self.language])
        assert source is not None
        with titles.opened(source) as file:
            write_atomically(folder / "titles.tsv", "".join(islice(file, self.n + n_test)))
        shutil.copy(source.with_name(f"{subjects}.tsv.xz"), folder)
        write_atomically(
            folder / "titles.toml",
            f"""title = "Titles of {self.source}"
files = ["titles.tsv"]
vocabulary = "{subjects}.tsv.xz"
reader = "tsv"
options = {{ columns = ["title", "topics"], topics_separator = " ", plain_quotes = true, test = "last {n_test}" }}
""",
        )
        return folder / "titles.toml"

    @cached_property
    def corpus(self) -> Corpus:
        """Return the corpus."""
        return open_corpus(self.name, download=False)

    @cached_property
    def test(self) -> Path:
        """Return a file of the texts of test documents."""
        path = self.path("test.json")
        write_atomically(path, json.dumps([{"zones": document.zones} for document in self.corpus.test]))
        return path

    @property
    def first(self) -> int:
        """Return how many test documents Annif's systems are measured on."""
        return min(TAGGED_BY_PEER, len(self.corpus.test))

    def path(self, *names: object) -> Path:
        """Return the place of something."""
        return self.work.path(self.language, self.n or "all", *names)

    def kept(self, name: str, measure: Any) -> Facts:
        """Return what was measured of something."""
        return self.work.kept(f"{self.language}-{self.n or 'all'}-{name}", measure)

    def peers(self) -> Sequence[str]:
        """Name Omikuji's models, if it is installed."""
        return [*PEERS] if find_spec("omikuji") else []

    # --- models ------------------------------------------------------------------------------------------------------

    def trained(self, name: str) -> Facts:
        """Train a system, let it rank the test documents, and return what the training took."""
        if name in OURS:
            return self.kept(name, lambda: self._train_ours(name))
        if name in PEERS:
            self.omikuji_rows()
            return self.kept(name, lambda: self._train_omikuji(name))
        self.annif_files()
        return self.kept(name, lambda: self._train_annif(name))

    def _train_ours(self, name: str) -> Facts:
        model = self.path(name)
        shutil.rmtree(model, ignore_errors=True)
        settings = [word for setting in (*OURS[name], *self.settings) for word in ("--set", setting)]
        # Not python -m textcat, which would take the checkout that it is started in.
        train = ["textcat", "train", self.name, "--recipe", RECIPE, *settings]
        taken = cost([*train, "--jobs", self.work.jobs, "--out", model])
        run(python("many_topics_work", "tops", self.test, model, f"{model}.npy"))
        return {**taken._asdict(), "bytes": size_of(model)}

    def omikuji_rows(self) -> Facts:
        """Make rows for Omikuji."""
        folder = self.path("omikuji")
        folder.mkdir(exist_ok=True)
        return self.kept("rows", lambda: cost(python("omikuji_trees", "rows", self.name, folder))._asdict())

    def _train_omikuji(self, name: str) -> Facts:
        model, folder = self.path(name), self.path("omikuji")
        shutil.rmtree(model, ignore_errors=True)
        taken = cost(python("omikuji_trees", "train", folder, PEERS[name], model, self.work.jobs))
        run(python("omikuji_trees", "tops", folder, model, f"{model}.npy"))
        return {**taken._asdict(), "bytes": size_of(model)}

    def annif_files(self) -> None:
        """Make the files that Annif's systems are trained on, and load their vocabulary."""
        folder = self.path("annif")
        if not folder.exists():
            annif.write_files(self.corpus, folder, self.language, annif.PROJECTS.values())
            run(annif.script(folder, "sentences"))
            run(annif.load_command(folder))

    def _train_annif(self, name: str) -> Facts:
        project, folder = annif.PROJECTS[name], self.path("annif")
        if sources := annif.SOURCES.get(project):  # what they took together, and the larger peak of memory
            of_sources = [self.trained(other) for other, of in annif.PROJECTS.items() if of in sources]
            facts = {key: sum(one[key] for one in of_sources) for key in ("seconds", "cpu_seconds", "bytes")}
            facts |= {"rss_bytes": max(one["rss_bytes"] for one in of_sources)}
        else:
            taken = cost(annif.train_command(folder, project, self.work.jobs))
            facts = {**taken._asdict(), "bytes": size_of(annif.model(folder, project))}
        run(annif.script(folder, "tops", project, self.first, f"{self.path(name)}.npy"))
        return facts

    def evaluated(self, name: str, first: int | None = None) -> Evaluation:
        """Measure a ranking on the first test documents, or all."""
        self.trained(name)
        corpus, test = self.corpus, self.corpus.test[:first]
        labels, known = corpus.labels(corpus.train), set(corpus.topics)
        return evaluate_at_k(
            np.load(f"{self.path(name)}.npy")[:first],
            corpus.labels(test),
            corpus.topics,
            np.asarray(labels.sum(axis=0)).ravel(),
            len(corpus.train),
            n_unknown=[len({*document.topics} - known) for document in test],
        )


# --- quality, time and memory ----------------------------------------------------------------------------------------


def training(work: Work, language: str = "en") -> list[Row]:
    """Train, from the file of titles to the saved model; Omikuji starts from rows, which have a row of their own."""
    of = Titles(work, language)
    facts = {name: of.trained(name) for name in (*OURS, *of.peers())}
    if of.peers():
        facts["rows for Omikuji: TfidfVectorizer, written as text"] = of.omikuji_rows()
    if annif.python():
        facts |= {name: of.trained(name) for name in annif.PROJECTS}
    return [
        {
            "what": name,
            "seconds": f"{its['seconds']:.1f}",
            "seconds of processor time": f"{its['cpu_seconds']:.1f}",
            "peak memory, MB": f"{its['rss_bytes'] / 1e6:,.0f}",
            "model on disk, MB": f"{its['bytes'] / 1e6:,.0f}" if "bytes" in its else None,
        }
        for name, its in facts.items()
    ]


def quality(work: Work, language: str = "en") -> list[Row]:
    """Measure the rankings of topics on the test documents, and their paired differences from textcat's."""
    of = Titles(work, language)
    evaluations = {name: of.evaluated(name) for name in (*OURS, *of.peers())}
    compared = compare_evaluations([*evaluations.values()], n_resamples=RESAMPLES).measures
    differences = {row.band: (None, *row.differences) for row in compared if row.measure == MEASURES["nDCG@10"]}
    rows = []
    for place, (name, evaluation) in enumerate(evaluations.items()):
        for row in _figures(name, evaluation):
            found = differences[str(row["topics"])][place]
            written = found and f"{found.difference:+.4f} ({found.interval[0]:+.4f} to {found.interval[1]:+.4f})"
            rows.append({**row, "nDCG@10 minus textcat's": written})
    return rows


def _figures(name: str, evaluation: Evaluation) -> list[Row]:
    bands = [band.flat() for band in evaluation.bands]
    return [
        {"what": name, "topics": row["band"], **{title: _decimals(row[one]) for title, one in MEASURES.items()}}
        for row in bands
        if row["band"] in BANDS
    ]


def _decimals(value: float | None) -> str | None:
    return None if value is None else f"{value:.4f}"


def annif_quality(work: Work) -> list[Row]:
    """Measure Annif's own systems, and textcat, on the first test documents."""
    of = Titles(work)
    names = [next(iter(OURS)), *_annifs()]
    return [row for name in names for row in _figures(name, of.evaluated(name, of.first))]


def _annifs() -> list[str]:
    if not annif.python():
        raise TextcatError("Annif is not installed here: TEXTCAT_ANNIF names the Python that has it.")
    return [*annif.PROJECTS]


# --- tagging ---------------------------------------------------------------------------------------------------------


def tagging(work: Work) -> list[Row]:
    """Tag on one core with one thread, round by round: textcat from texts, Omikuji from rows, one after the other."""
    of, ours = Titles(work), next(iter(OURS))
    n = len(of.corpus.test)
    commands = {ours: (n, python("many_topics_work", "speed", of.test, of.path(ours), n))}
    for name in of.peers():
        commands[name] = of.first, python("omikuji_trees", "speed", of.path("omikuji"), of.path(name), of.first)
    return _rates(of, commands, "rate", "titles per second")


def annif_tagging(work: Work) -> list[Row]:
    """Tag by Annif's own systems in the batches that `annif index` makes, on one core with one thread."""
    of, ours = Titles(work), next(iter(OURS))
    commands = {ours: (of.first, python("many_topics_work", "speed", of.test, of.path(ours), of.first))}
    for name in _annifs():
        command = annif.script(of.path("annif"), "speed", annif.PROJECTS[name], of.first)
        commands[name] = of.first, command
    return _rates(of, commands, "cpu_rate", "titles per second of processor time")


def _rates(of: Titles, commands: Mapping[str, tuple[int, list[object]]], rate: str, title: str) -> list[Row]:
    """Run commands that each print rates, in turn."""
    rates: dict[str, list[float]] = {name: [] for name in commands}
    for name in commands:
        of.trained(name)
    for _ in range(of.work.rounds):
        for name, (_, command) in commands.items():
            rates[name].append(output(["env", *ONE_THREAD, *command], preexec_fn=_stay_on_one_core)[rate])
    ours = next(iter(rates.values()))
    return [
        {
            "what": name,
            "titles": f"{n:,}",
            title: f"{median(its):,.0f}" + f" ({min(its):,.0f} to {max(its):,.0f})" * (len(its) > 1),
            "times slower": f"{median(mine / one for mine, one in zip(ours, its, strict=True)):.3g}",
        }
        for (name, its), (n, _) in zip(rates.items(), commands.values(), strict=True)
    ]


def _stay_on_one_core() -> None:
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})


# --- topics without a training document, and the cost of a topic -----------------------------------------------------


def unseen(work: Work) -> list[Row]:
    """Take the labels of some topics away from training documents, and measure how well test documents get them."""
    of, rows = Titles(work), []
    least = 1 if of.n else LEAST_TESTED
    for name, settings in OURS.items():
        command = python("many_topics_work", "unseen", of.name, HIDDEN, least, work.jobs, *settings, *of.settings)
        facts = of.kept(f"unseen {name}", lambda command=command: output(command))
        row = {"what": name, "recall@10": _decimals(facts["0-0"]["recall@10"])}
        row |= {"PSP@5": _decimals(facts["0-0"]["psp@5"]), "documents": f"{facts['0-0']['documents']:,}"}
        rows.append(row | {"nDCG@10, all topics": _decimals(facts["ALL"]["ndcg@10"])})
    return rows


def cost_of_topics(work: Work) -> list[Row]:
    """Train more and more topics on all documents: the seconds of the stage "train topics"."""
    of, rows = Titles(work), []
    most = len(of.corpus.topics)
    for n in [n for n in SIZES if n < most] + [most]:
        command = python("many_topics_work", "cost", of.name, n, work.jobs)
        facts = of.kept(f"cost {n}", lambda command=command: output(command))
        rows.append(
            {
                "topics": f"{facts['topics']:,}",
                "non-zeros": f"{facts['entries']:,}",
                "seconds": f"{facts['seconds']:.1f}",
                "seconds of processor time": f"{facts['cpu_seconds']:.1f}",
                "ms per topic": f"{1e3 * facts['seconds'] / facts['topics']:.2f}",
                "ns per non-zero and topic": f"{1e9 * facts['seconds'] / (facts['entries'] * facts['topics']):.4f}",
            }
        )
    return rows
