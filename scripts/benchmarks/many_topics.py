"""Measure training and tagging with 25,062 library subjects, beside Omikuji, for docs/benchmarks/many-topics-*.md.

scripts/benchmark many-topics --keep FOLDER     # what is measured stays there: the same command resumes
scripts/benchmark many-topics --quick           # a few thousand titles: does it work?
scripts/benchmark many-topics --language sv     # the titles in Swedish
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from datetime import date
from functools import cached_property, partial
from importlib.metadata import version
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from statistics import median
from typing import Any

import many_topics_annif
import many_topics_costs
import numpy as np
import titles
from machine import commit, load_average
from many_topics_omikuji import JOBS, SETTINGS, TAGGED
from many_topics_textcat import RECIPE, SEED
from pages import Page, head, publish
from workspace import HERE, measured, run

from textcat.base.disk import write_atomically
from textcat.base.errors import TextcatError
from textcat.corpus.catalogue import open_corpus
from textcat.corpus.documents import Corpus
from textcat.evaluation.at_k import evaluate_at_k
from textcat.evaluation.evaluation import Evaluation
from textcat.evaluation.significance import add_intervals, compare_evaluations
from textcat.papers.experiments import draw_axes

OURS: dict[str, list[str]] = {"textcat": [], "textcat without names": ["topics.description_copies=0"]}
PEERS = {"Omikuji, default": "default", "Omikuji, Bonsai-like": "bonsai"}
BANDS = ("ALL", "1-5", "6-20", "21-100", "101-")
MEASURES = (("P@1", "precision@1"), ("P@3", "precision@3"), ("P@5", "precision@5"), ("nDCG@10", "ndcg@10"))
MORE_MEASURES = (("recall@10", "recall@10"), ("PSP@5", "psp@5"))
RESAMPLES = 1000
LEAST_DOCUMENTS = 1000
TAGGED_BY_PEER = 5_000  # titles; those, too, that Annif's systems are measured on
HIDDEN, LEAST_TESTED = 300, 5  # topics, and the test documents that each of them has; of a sample, 1
SIZES = (100, 1_000, 5_000, 25_062)  # topics
TESTED = {"en": 50_000, "sv": 20_000}  # the last titles
Facts = Mapping[str, Any]


def main(arguments: Sequence[str]) -> None:
    options = _options(arguments)
    with tempfile.TemporaryDirectory() as temporary:
        folder, chosen = options.keep or Path(temporary), options.peers.split(",")
        space = Space(folder, options.documents, options.runs, chosen, options.language)
        space.with_annif = "a" in options.only and bool(many_topics_annif.python())
        for letter, part in PARTS.items():
            if letter in options.only:
                publish(part(space), options.out)


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="scripts/benchmark many-topics", description=__doc__.partition("\n")[0])
    parser.add_argument("--documents", type=int, help="train on the first titles only, and test on a tenth as many")
    parser.add_argument("--runs", type=int, default=5, help="rounds of tagging (default: %(default)s)")
    parser.add_argument(
        "--only", default=PAGE, help=f"parts: {', '.join(map('='.join, NAMES.items()))} (default: %(default)s)"
    )
    parser.add_argument("--language", choices=TESTED, default="en", help="of the titles (default: %(default)s)")
    parser.add_argument("--quick", action="store_true", help="one round, with 3,000 titles")
    parser.add_argument("--keep", type=Path, help="folder for what is measured, made, and used again if it is there")
    parser.add_argument("--out", type=Path, help="also write the pages to this folder, such as docs/benchmarks")
    parser.add_argument("--peers", default=",".join(PEERS.values()), help="settings of Omikuji (default: %(default)s)")
    options = parser.parse_args(arguments)
    if options.quick:
        options.documents, options.runs = 3_000, 1
    if options.runs < 1 or (options.documents is not None and options.documents < LEAST_DOCUMENTS):
        parser.error(f"--runs must be at least 1, and --documents {LEAST_DOCUMENTS}")
    if not options.only or set(options.only) - set(PARTS):
        parser.error(f"--only takes letters out of {''.join(PARTS)}")
    name = f"yso-finna-{options.language}"
    if titles.located(name) is None:
        parser.error(f"the corpus {name} is not here: `textcat corpora` says where it is looked for")
    return options


class Space:
    """A folder with the corpus, rows, models, lists of topics and what was measured, each made when it is asked for.

    What is measured of other documents lies in another folder.
    """

    def __init__(
        self,
        folder: Path,
        documents: int | None,
        runs: int,
        settings: Sequence[str] = tuple(PEERS.values()),
        language: str = "en",
    ):
        self.with_annif = False  # measure Annif's own systems, too
        self.peers, self.language, self.source = peers(settings), language, f"yso-finna-{language}"
        prefix = "" if language == "en" else f"{language}-"
        self.settings = [] if language == "en" else [f"tokens.lang={language}"]
        self.folder, self.documents, self.runs = (
            (folder / f"{prefix}{documents or 'all'}").absolute(),
            documents,
            runs,
        )
        self.folder.mkdir(parents=True, exist_ok=True)
        self.name = self.source if documents is None else str(sample(documents, self.folder / "titles", language))

    @cached_property
    def corpus(self) -> Corpus:
        """Return the corpus."""
        return open_corpus(self.name, download=False)

    @cached_property
    def test(self) -> Path:
        """Return a file of the texts of test documents."""
        path = self.folder / "test.json"
        write_atomically(path, json.dumps([{"zones": document.zones} for document in self.corpus.test]))
        return path

    def path(self, name: str, suffix: str = "") -> Path:
        """Return the place of something."""
        return self.folder / (name.replace(", ", "-").replace(" ", "-").lower() + suffix)

    def kept(self, name: str, measure: Callable[[], Facts]) -> Facts:
        """Return what was measured of something, in an earlier run or else now, and under which conditions."""
        path = self.path(name, ".facts.json")
        if not path.exists():
            before = load_average()
            facts = {**measure(), "commit": commit(), "date": str(date.today()), "load": [before, load_average()]}
            write_atomically(path, json.dumps(facts))
        facts: Facts = json.loads(path.read_text())
        return facts

    def rows(self) -> Facts:
        """Make rows for Omikuji."""
        return self.kept("rows", lambda: asdict(measured(_omikuji("rows", self.name, self.folder))))


def sample(documents: int, folder: Path, language: str = "en") -> Path:
    """Write the first titles, a tenth more to test on and their names, and return the card of this corpus."""
    folder.mkdir(exist_ok=True)
    name, subjects = f"yso-finna-{language}", f"yso-{language}-topics"
    source, n_test = titles.located(name), min(documents // 10, TESTED[language])
    assert source is not None
    with titles.opened(source) as file:
        write_atomically(folder / "titles.tsv", "".join(islice(file, documents + n_test)))
    shutil.copy(source.with_name(f"{subjects}.tsv.xz"), folder)
    card = folder / "titles.toml"
    write_atomically(
        card,
        f"""title = "Titles of {name}"
files = ["titles.tsv"]
vocabulary = "{subjects}.tsv.xz"
reader = "tsv"
options = {{ columns = "title, topics", separator = " ", quotes = "none", test = "last {n_test}" }}
""",
    )
    return card


def _textcat(task: str, *words: object) -> list[Any]:
    return [sys.executable, HERE / "many_topics_textcat.py", task, *words]


def _omikuji(task: str, *words: object) -> list[Any]:
    return [sys.executable, HERE / "many_topics_omikuji.py", task, *words]


def _corpus(space: Space) -> str:
    corpus = space.corpus
    source = space.source if space.documents is None else f"the first titles of {space.source}"
    return f"""The corpus is {source}, {len(corpus.train):,} training and {len(corpus.test):,} test documents,
{len(corpus.topics):,} topics that have a training document. [corpora.md](../reference/corpora.md) describes the
corpus, and [many-topics.md](../how-to/many-topics.md) how textcat trains so many topics."""


def _peers(space: Space) -> str:
    if not space.peers:
        return "Omikuji is not installed here."
    return f"""Omikuji {version("omikuji")} trains partitioned label trees, in Rust; it is called by its Python package.
Its rows are those of scikit-learn's `TfidfVectorizer()`; documents without a known word are left out. "Bonsai-like"
sets `{", ".join(f"{name}={value}" for name, value in SETTINGS["bonsai"].items())}` and keeps all other defaults."""


def peers(settings: Sequence[str] = tuple(PEERS.values())) -> Mapping[str, str]:
    """Return what there is beside textcat, of the settings asked for: nothing where it is not installed."""
    return {name: kind for name, kind in PEERS.items() if kind in settings} if find_spec("omikuji") else {}


def _head(all_facts: Iterable[Facts]) -> str:
    """Say of what, and in which state of the machine, something was measured: it may have been in several runs."""
    facts = list(all_facts)
    commits, dates = (", ".join(dict.fromkeys(each[name] for each in facts)) for name in ("commit", "date"))
    loads = [float(load) for each in facts for load in each["load"]]
    return head(RECIPE, f"{min(loads)} to {max(loads)}", commits=commits, dates=dates)


def _page(space: Space, name: str, title: str, *parts: Any, named: bool = True, **options: Any) -> Page:
    """Return a page of this language; `named` says whether the title gives the number of topics."""
    topics = f"{len(space.corpus.topics):,} topics{' in Swedish' if space.language == 'sv' else ''}: "
    return Page(_place(space, name), topics + title if named else title, *parts, **options)


def _place(space: Space, name: str) -> str:
    return f"many-topics{'-swedish' if space.language == 'sv' else ''}-{name}"


# --- quality, time and memory ----------------------------------------------------------------------------------------


def quality(space: Space) -> list[Page]:
    """Train, measure what that takes, and how good the first topics are."""
    facts = {name: _trained(space, name) for name in (*OURS, *space.peers)}
    of_rankings, evaluations = _head(facts.values()), {name: evaluated(space, name) for name in facts}
    if space.peers:
        facts["rows for Omikuji: TfidfVectorizer, written as text"] = space.rows()
    annif_text = ""
    if space.with_annif:
        prepared, n = _annif_prepared(space), _tested_by_annif(space)
        facts |= {name: space.kept(name, lambda name=name: _train_annif(space, name, n)) for name in ANNIFS}
        annif_text = f""" [Annif's own systems]({_place(space, "annif")}.md) are measured from the file of titles to
the saved
model, too; before, Annif loads the vocabulary once: {prepared["cpu_seconds"]:.1f} seconds of processor time."""
    costs = [_cost_row(name, of_it) for name, of_it in facts.items()]
    figures = [row for evaluation in evaluations.items() for row in _figures(*evaluation)]
    compared = compare_evaluations(list(evaluations.values()), n_resamples=RESAMPLES)
    rows = [
        {"what": name, "topics": band} | _differences(compared.measures, place, band)
        for place, name in enumerate(list(evaluations)[1:])
        for band in BANDS
    ]
    text = f"""The table compares training by textcat and by other systems. For textcat, time and memory are those of
the
whole process `textcat train`, from the file of titles to the saved model and its evaluation. For Omikuji, they are
those of a process that reads rows prepared before, trains, and saves the model. A separate row of the table shows the
time and memory of making the rows for Omikuji; the size of Omikuji's model does not include the vectorizer. Peak memory
is the sum over all processes of a run.{annif_text}

{_corpus(space)}

{_peers(space)}

Each measurement runs in a separate process, with {JOBS} jobs or threads unless stated otherwise."""
    of_quality = f"""The table has the quality of the rankings of topics, by the measures of
[evaluation.md](../how-to/evaluation.md#thousands-of-topics), on the test documents: for all topics, and for topics
grouped by their number of training documents. Brackets have 95 % intervals from {RESAMPLES:,} resamples of the
documents.

{_corpus(space)}

{_peers(space)}"""
    of_differences = f"""The table has differences from {next(iter(OURS))} of [the
quality]({_place(space, "quality")}.md) on the same test
documents, with 95 % intervals of the paired difference from {RESAMPLES:,} resamples of the documents.

{_corpus(space)}

{_peers(space)}"""
    notes = f"[Differences from textcat]({_place(space, 'differences')}.md), with intervals, have a page of their own."
    return [
        _page(space, "training", "time and memory of training", _head(facts.values()), text, costs),
        _page(space, "quality", "quality", of_rankings, of_quality, figures, notes),
        _page(space, "differences", "differences of quality", of_rankings, of_differences, rows),
    ]


def _trained(space: Space, name: str) -> Facts:
    if name in OURS:
        return space.kept(name, lambda: _train_ours(space, name))
    space.rows()
    return space.kept(name, lambda: _train_peer(space, name))


def _train_ours(space: Space, name: str) -> Facts:
    model = space.path(name)
    shutil.rmtree(model, ignore_errors=True)
    settings = [word for setting in (*OURS[name], *space.settings) for word in ("--set", setting)]
    # Not python -m textcat, which would take the checkout that it is started in.
    train = ["textcat", "train", space.name, "--recipe", RECIPE, *settings]
    taken = measured([*train, "--jobs", JOBS, "--out", model])
    run(_textcat("tops", space.test, model, space.path(name, ".npy")))
    return {**asdict(taken), "bytes": _size(model)}


def _train_peer(space: Space, name: str) -> Facts:
    model = space.path(name)
    shutil.rmtree(model, ignore_errors=True)
    taken = measured(_omikuji("train", space.folder, PEERS[name], model))
    run(_omikuji("tops", space.folder, model, space.path(name, ".npy")))
    return {**asdict(taken), "bytes": _size(model)}


def _size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def _cost_row(name: str, facts: Facts) -> dict[str, Any]:
    return {
        "what": name,
        "seconds": f"{facts['seconds']:.1f}",
        "seconds of processor time": f"{facts['cpu_seconds']:.1f}",
        "peak memory, MB": f"{facts['rss_bytes'] / 1e6:,.0f}",
        "model on disk, MB": f"{facts['bytes'] / 1e6:,.0f}" if "bytes" in facts else None,
    }


def evaluated(space: Space, name: str, first: int | None = None) -> Evaluation:
    """Measure a ranking on the first test documents, or all."""
    corpus, test = space.corpus, space.corpus.test[:first]
    labels, known = corpus.labels(corpus.train), set(corpus.topics)
    evaluation = evaluate_at_k(
        np.load(space.path(name, ".npy"))[:first],
        corpus.labels(test),
        corpus.topics,
        np.asarray(labels.sum(axis=0)).ravel(),
        len(corpus.train),
        n_unknown=[len({*document.topics} - known) for document in test],
    )
    return add_intervals(evaluation, n_resamples=RESAMPLES)


def _figures(name: str, evaluation: Evaluation) -> Iterator[dict[str, Any]]:
    for row in (band.flat() for band in evaluation.bands):
        if row["band"] not in BANDS:
            continue
        cells = {title: _short(row[of]) + _bounds(row[f"{of}_low"], row[f"{of}_high"]) for title, of in MEASURES}
        yield {"what": name, "topics": row["band"], **cells, **{title: _short(row[of]) for title, of in MORE_MEASURES}}


def _differences(measures: Sequence[Any], place: int, band: str) -> dict[str, str | None]:
    cells: dict[str, str | None] = {}
    for title, of in MEASURES:
        row = next(average for average in measures if (average.band, average.measure) == (band, of))
        found = row.differences[place]
        cells[title] = found and f"{found.difference:+.4f} ({found.interval[0]:+.4f} to {found.interval[1]:+.4f})"
    return cells


def _short(value: float | None) -> str:
    return "-" if value is None else f"{value:.4f}"


def _bounds(low: float | None, high: float | None) -> str:
    return "" if low is None or high is None else f" ({low:.4f} to {high:.4f})"


# --- tagging ---------------------------------------------------------------------------------------------------------


def tagging(space: Space) -> list[Page]:
    """Tag on one core, round by round."""
    facts = space.kept("tagging", lambda: _rates(space))
    rounds = len(facts["rates"][0])
    text = f"""The table shows how fast each system predicts the first {TAGGED} topics of titles, with the model
loaded, on one core
with one thread. In each of {rounds} rounds each system ran once; figures are medians (in brackets: minimum and
maximum). textcat starts from texts; Omikuji starts from ready rows, which its Python package accepts only one by one.

{_corpus(space)}

{_peers(space)}"""
    return [_page(space, "tagging", "tagging", _head([facts]), text, _rate_rows(facts))]


def _rate_rows(facts: Facts, second: str = "second") -> list[dict[str, Any]]:
    ours = facts["rates"][0]
    return [
        {
            "what": name,
            "titles": f"{n:,}",
            f"titles per {second}": f"{median(rates):,.0f}"
            + f" ({min(rates):,.0f} to {max(rates):,.0f})" * (len(rates) > 1),
            "times slower": f"{median(mine / its for mine, its in zip(ours, rates, strict=True)):.3g}",
        }
        for name, n, rates in zip(facts["names"], facts["titles"], facts["rates"], strict=True)
    ]


def _rates(space: Space) -> dict[str, Any]:
    out, ours, n_test = space.folder / "speed.json", next(iter(OURS)), len(space.corpus.test)
    commands = {ours: _textcat("speed", space.test, space.path(ours), n_test, out)}
    n_peer = min(TAGGED_BY_PEER, n_test)
    commands |= {name: _omikuji("speed", space.folder, space.path(name), n_peer, out) for name in space.peers}
    for name in commands:
        _trained(space, name)
    return _rounds(space, commands, out) | {"titles": [n_test] + [n_peer] * len(space.peers)}


def _rounds(space: Space, commands: Mapping[str, list[Any]], out: Path, rate: str = "rate") -> dict[str, Any]:
    """Run commands that each write their rates to the same file, in turn, on one core."""
    rates: dict[str, list[float]] = {name: [] for name in commands}
    for _ in range(space.runs):
        for name, command in commands.items():
            run(["env", *ONE_THREAD, *command], preexec_fn=_on_one_core)
            rates[name].append(json.loads(out.read_text())[rate])
    return {"names": list(rates), "rates": list(rates.values())}


ONE_THREAD = [f"{name}_NUM_THREADS=1" for name in ("OMP", "OPENBLAS", "MKL", "RAYON")]


def _on_one_core() -> None:
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})


# --- Annif -----------------------------------------------------------------------------------------------------------


def annif(space: Space) -> list[Page]:
    """Train Annif's own systems, and measure them on the first test documents."""
    if not space.with_annif:
        print("Annif is not installed here: `TEXTCAT_ANNIF` names the Python that has it.", file=sys.stderr)
        return []
    ours, n = next(iter(OURS)), _tested_by_annif(space)
    facts = {name: _trained(space, name) for name in (ours, *space.peers)}
    prepared = _annif_prepared(space)
    facts |= {name: space.kept(name, lambda name=name: _train_annif(space, name, n)) for name in ANNIFS}
    rates = space.kept("annif tagging", lambda: _annif_rates(space, n))
    figures = [row for name in facts for row in _figures(name, evaluated(space, name, n))]
    versions = "Annif {annif}, with scikit-learn {scikit-learn} and NLTK {nltk}".format(**prepared["versions"])
    text = f"""The table compares textcat, Omikuji and Annif's systems on the first {n:,} test documents, with 95 %
intervals in brackets.

{_corpus(space)}

{_peers(space)}

The systems of {versions}, were trained by `annif train` with its default settings and the analyzer
`{many_topics_annif.ANALYZERS[space.language]}`:

- Annif's `tfidf` compares a text with all titles of a topic together; it is trained on all training documents.
- `mllm` finds names of topics in the text, and learns which matches to trust, from the first
  {many_topics_annif.MLLM_TITLES:,} training documents; it draws at random without a seed.
- `omikuji` is Omikuji with its default settings, on all training documents, with rows that Annif makes.
- `omikuji and mllm` is Annif's `ensemble`, which averages the scores of both; it is not trained itself. Its
  time, memory and size [of training]({_place(space, "training")}.md) are those of both together.

The vocabulary that Annif gets has the topics and their names; `mllm` would also use synonyms and relations of topics,
but the corpus has none. Annif would download a model by which NLTK splits texts into sentences; here this model is
trained on the first {many_topics_annif.CUT_BY:,} training titles."""
    of_tagging = f"""The table shows how fast textcat and [Annif's own systems]({_place(space, "annif")}.md) predict
the first
{TAGGED} topics of texts, per second of processor time, with the model loaded, on one core with one thread. Annif gets
the batches that `annif index` makes. Rounds: {len(rates["rates"][0])}; figures are medians (in brackets: minimum and
maximum)."""
    rows, tagged = _rate_rows(rates, "second of processor time"), "tagging by Annif's own systems"
    return [
        _page(space, "annif", "quality of Annif's own systems", _head(facts.values()), text, figures),
        _page(space, "annif-tagging", tagged, _head([rates]), of_tagging, rows),
    ]


def _tested_by_annif(space: Space) -> int:
    return min(TAGGED_BY_PEER, len(space.corpus.test))


def _annif_prepared(space: Space) -> Facts:
    return space.kept("annif", lambda: _prepare_annif(space))


ANNIFS = many_topics_annif.PROJECTS


def _annif(space: Space, task: str, *words: object) -> list[Any]:
    folder = space.path("annif")
    start = [*many_topics_annif.environment(folder), many_topics_annif.python()]
    return [*start, HERE / "many_topics_annif.py", task, folder, *words]


def _prepare_annif(space: Space) -> Facts:
    folder = space.path("annif")
    shutil.rmtree(folder, ignore_errors=True)
    many_topics_annif.write_files(space.corpus, folder, space.language)
    run(_annif(space, "sentences"))
    taken = measured(many_topics_annif.load_command(folder))
    return {**asdict(taken), "versions": json.loads((folder / "versions.json").read_text())}


def _train_annif(space: Space, name: str, n: int) -> Facts:
    project = ANNIFS[name]
    facts = (
        _train_project(space, project) if project not in many_topics_annif.SOURCES else _of_sources(space, project, n)
    )
    run(_annif(space, "tops", project, n, space.path(name, ".npy")))
    return facts


def _train_project(space: Space, project: str) -> Facts:
    taken = measured(many_topics_annif.train_command(space.path("annif"), project))
    return {**asdict(taken), "bytes": _size(many_topics_annif.model(space.path("annif"), project))}


def _of_sources(space: Space, project: str, n: int) -> Facts:
    """Return what the projects took that a project averages: the sum, and the larger peak of memory."""
    names = [name for name, of in ANNIFS.items() if of in many_topics_annif.SOURCES[project]]
    facts = [space.kept(name, lambda name=name: _train_annif(space, name, n)) for name in names]
    added = {key: sum(of_it[key] for of_it in facts) for key in ("seconds", "cpu_seconds", "bytes")}
    return added | {"rss_bytes": max(of_it["rss_bytes"] for of_it in facts)}


def _annif_rates(space: Space, n: int) -> Facts:
    out, ours = space.folder / "annif-speed.json", next(iter(OURS))
    commands = {ours: _textcat("speed", space.test, space.path(ours), n, out)}
    commands |= {name: _annif(space, "speed", project, n, out) for name, project in ANNIFS.items()}
    return _rounds(space, commands, out, "cpu_rate") | {"titles": [n] * len(commands)}


# --- topics without a training document ------------------------------------------------------------------------------


def unseen(space: Space) -> list[Page]:
    """Take the labels of some topics away."""
    facts, least = {}, LEAST_TESTED if space.documents is None else 1
    for name, settings in OURS.items():
        out = space.folder / "unseen.json"
        command = _textcat("unseen", space.name, HIDDEN, least, *settings, *space.settings, out)
        facts[name] = space.kept(f"unseen {name}", lambda command=command, out=out: _printed(command, out))
    rows = [
        {
            "what": name,
            "recall@10": _short(of_it["0-0"]["recall@10"]),
            "PSP@5": _short(of_it["0-0"]["psp@5"]),
            "documents": f"{of_it['0-0']['documents']:,}",
            "nDCG@10, all topics": _short(of_it["ALL"]["ndcg@10"]),
        }
        for name, of_it in facts.items()
    ]
    n, least = next(iter(facts.values()))["0-0"]["topics"], "1 document" if least == 1 else f"{least} documents"
    text = f"""{n} topics are removed from all training documents of `{space.corpus.name}`, so that only the topics'
names are known. They are drawn at random (seed {SEED}) from those that have at least {least} in the test part. The
table shows how well these {n} topics are predicted for test documents, among all topics.

{_corpus(space)}"""
    return [
        _page(space, "unseen", "Topics without a training document", _head(facts.values()), text, rows, named=False)
    ]


def _printed(command: list[Any], out: Path) -> Facts:
    run(command)
    facts: Facts = json.loads(out.read_text())
    return facts


# --- cost ------------------------------------------------------------------------------------------------------------


def cost(space: Space) -> list[Page]:
    """Train more and more topics."""
    all_facts = _costs(space)
    rows = [
        {
            "topics": f"{facts['topics']:,}",
            "non-zeros": f"{facts['entries']:,}",
            "seconds": f"{facts['seconds']:.1f}",
            "seconds of processor time": f"{facts['cpu_seconds']:.1f}",
            "ms per topic": f"{1e3 * facts['seconds'] / facts['topics']:.2f}",
            "ns per non-zero and topic": f"{_nanoseconds(facts):.4f}",
        }
        for facts in all_facts
    ]
    text = f"""The table shows the seconds of the stage "train topics" (all steps of training except making rows and
saving) on all documents, for the topics with the most documents; the cost is the seconds divided by the number of
non-zeros of all rows and by the number of topics. A document's shortlist (the topics that are scored for it) has the
length `topics.shortlist` of the recipe, however many topics there are, and no other topics train on the document.

{_corpus(space)}"""
    shown, draw = "Nanoseconds per non-zero and topic, by the number of topics", partial(_draw, all_facts)
    options: dict[str, Any] = {"named": False, "picture": shown, "draw": draw}
    return [_page(space, "cost", "Cost per topic", _head(all_facts), text, rows, **options)]


def _costs(space: Space) -> list[Facts]:
    out, most = space.folder / "cost.json", len(space.corpus.topics)
    sizes = [n for n in SIZES if n < most] + [most]
    return [space.kept(f"cost {n}", lambda n=n: _printed(_textcat("cost", space.name, n, out), out)) for n in sizes]


def _nanoseconds(facts: Facts) -> float:
    return float(1e9 * facts["seconds"] / (facts["entries"] * facts["topics"]))


def _draw(all_facts: Sequence[Facts], path: Path) -> None:
    try:
        with draw_axes(path, 6.0, 3.4) as drawn:
            drawn.plot([facts["topics"] for facts in all_facts], list(map(_nanoseconds, all_facts)), "o-")
            drawn.set(xscale="log", yscale="log", xlabel="topics", ylabel="ns per non-zero and topic")
    except TextcatError as error:
        print(error, file=sys.stderr)


# --- the cost model --------------------------------------------------------------------------------------------------


def cost_model(space: Space) -> list[str]:
    """Measure the steps of training at some sizes, and predict those of others."""
    sizes = many_topics_costs.FITTED, many_topics_costs.CHECKED
    fitted, checked = ([steps(space, size) for size in _sizes(space, some)] for some in sizes)
    return [many_topics_costs.section(fitted, checked, _head([*fitted, *checked]))]


def _sizes(space: Space, sizes: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    if space.documents is None:
        return list(sizes)
    n, m = len(space.corpus.train), len(space.corpus.topics)  # of a sample, as large a share
    return [(max(200, n * a // 603_485), max(20, m * b // 25_062)) for a, b in sizes]


def steps(space: Space, size: tuple[int, int]) -> Facts:
    """Return the counts of a training of so many documents and topics, and the seconds of its steps."""
    out, (n, m) = space.folder / "steps.json", size
    return space.kept(f"steps {n} {m}", lambda: _printed(_textcat("steps", space.name, n, m, out), out))


PARTS: dict[str, Callable[[Space], Sequence[Page | str]]] = {
    "q": quality,
    "t": tagging,
    "a": annif,
    "z": unseen,
    "c": cost,
    "m": cost_model,
}
NAMES = {
    "q": "quality, time and memory",
    "t": "tagging",
    "a": "Annif's own systems",
    "z": "topics without a training document",
    "c": "cost",
    "m": "the cost model",
}
PAGE = "qtazc"  # the parts of docs/benchmarks; docs/background/many-topics-plan.md has the other
