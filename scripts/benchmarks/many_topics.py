"""Measure training and tagging with 25,062 library subjects, beside Omikuji, and write docs/many-topics-benchmark.md.

scripts/benchmark many-topics --keep FOLDER     # what is measured stays there: the same command resumes
scripts/benchmark many-topics --quick           # a few thousand titles: does it work?
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from datetime import date
from functools import cached_property
from importlib.metadata import version
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from statistics import median
from typing import Any

import many_topics_annif
import numpy as np
import titles
from machine import _load, commit, described
from many_topics_omikuji import JOBS, SETTINGS, TAGGED
from many_topics_textcat import RECIPE, SEED
from scipy.optimize import nnls
from workspace import HERE, measured, run

from textcat.corpus.catalogue import open_corpus
from textcat.documents import Corpus
from textcat.errors import TextcatError
from textcat.evaluation.at_k import evaluate_at_k
from textcat.evaluation.evaluation import Evaluation
from textcat.evaluation.export import markdown_table
from textcat.evaluation.significance import add_intervals, compare_evaluations
from textcat.folders import write_atomically
from textcat.papers.experiments import draw_axes

OURS: dict[str, list[str]] = {"textcat": [], "textcat without names": ["topics.descriptions=0"]}
PEERS = {"Omikuji, default": "default", "Omikuji, Bonsai-like": "bonsai"}
BANDS = ("ALL", "1-5", "6-20", "21-100", "101-")
MEASURES = (("P@1", "precision@1"), ("P@3", "precision@3"), ("P@5", "precision@5"), ("nDCG@10", "ndcg@10"))
MORE_MEASURES = (("recall@10", "recall@10"), ("PSP@5", "psp@5"))
RESAMPLES = 1000
LEAST_DOCUMENTS = 1000
TAGGED_BY_PEER = 5_000  # titles; those, too, that Annif's systems are measured on
HIDDEN, LEAST_TESTED = 300, 5  # topics, and the test documents that each of them has; of a sample, 1
SIZES = (100, 1_000, 5_000, 25_062)  # topics
TESTED = 50_000
Facts = Mapping[str, Any]


def main(arguments: Sequence[str]) -> None:
    options = _options(arguments)
    with tempfile.TemporaryDirectory() as temporary:
        space = Space(options.keep or Path(temporary), options.documents, options.runs, options.peers.split(","))
        head = _head(space, arguments)
        parts = [part(space) for letter, part in PARTS.items() if letter in options.only]
        text = "\n".join([head, *parts])
        print(text, end="")
        if options.out:
            write_atomically(options.out, text)
            if "c" in options.only:
                _draw(_costs(space), options.out.with_suffix(".svg"))


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="scripts/benchmark many-topics", description=__doc__.partition("\n")[0])
    parser.add_argument("--documents", type=int, help="train on the first titles only, and test on a tenth as many")
    parser.add_argument("--runs", type=int, default=5, help="rounds of tagging (default: %(default)s)")
    parser.add_argument(
        "--only", default=PAGE, help=f"parts: {', '.join(map('='.join, NAMES.items()))} (default: %(default)s)"
    )
    parser.add_argument("--quick", action="store_true", help="one round, with 3,000 titles")
    parser.add_argument("--keep", type=Path, help="folder for what is measured, made, and used again if it is there")
    parser.add_argument("--out", type=Path, help="write the page to this file, and its picture beside it")
    parser.add_argument("--peers", default=",".join(PEERS.values()), help="settings of Omikuji (default: %(default)s)")
    options = parser.parse_args(arguments)
    if options.quick:
        options.documents, options.runs = 3_000, 1
    if options.runs < 1 or (options.documents is not None and options.documents < LEAST_DOCUMENTS):
        parser.error(f"--runs must be at least 1, and --documents {LEAST_DOCUMENTS}")
    if not options.only or set(options.only) - set(PARTS):
        parser.error(f"--only takes letters out of {''.join(PARTS)}")
    if titles.located() is None:
        parser.error(f"the corpus {titles.NAME} is not here: `textcat corpora` says where it is looked for")
    return options


class Space:
    """A folder with the corpus, rows, models, lists of topics and what was measured, each made when it is asked for.

    What is measured of other documents lies in another folder.
    """

    def __init__(self, folder: Path, documents: int | None, runs: int, settings: Sequence[str] = tuple(PEERS.values())):
        self.peers = peers(settings)
        self.folder, self.documents, self.runs = (folder / str(documents or "all")).absolute(), documents, runs
        self.folder.mkdir(parents=True, exist_ok=True)
        self.name = titles.NAME if documents is None else str(sample(documents, self.folder / "titles"))

    @cached_property
    def corpus(self) -> Corpus:
        """Return the corpus."""
        return open_corpus(self.name, download=False)

    @cached_property
    def test(self) -> Path:
        """Return a file of the texts of test documents."""
        path = self.folder / "test.json"
        write_atomically(path, json.dumps([{"zones": each.zones} for each in self.corpus.test]))
        return path

    def path(self, name: str, suffix: str = "") -> Path:
        """Return the place of something."""
        return self.folder / (name.replace(", ", "-").replace(" ", "-").lower() + suffix)

    def kept(self, name: str, measure: Callable[[], Facts]) -> Facts:
        """Return what was measured of something, in an earlier run or else now, and under which conditions."""
        path = self.path(name, ".facts.json")
        if not path.exists():
            before = _load()
            facts = {**measure(), "commit": commit(), "date": str(date.today()), "load": [before, _load()]}
            write_atomically(path, json.dumps(facts))
        facts: Facts = json.loads(path.read_text())
        return facts

    def rows(self) -> Facts:
        """Make rows for Omikuji."""
        return self.kept("rows", lambda: asdict(measured(_omikuji("rows", self.name, self.folder))))


def sample(documents: int, folder: Path) -> Path:
    """Write the first titles, a tenth more to test on and their names, and return the card of this corpus."""
    folder.mkdir(exist_ok=True)
    source, n_test = titles.located(), min(documents // 10, TESTED)
    assert source is not None
    with titles.opened(source) as file:
        write_atomically(folder / "titles.tsv", "".join(islice(file, documents + n_test)))
    shutil.copy(source.with_name(f"{titles.SUBJECTS}.tsv.xz"), folder)
    card = folder / "titles.toml"
    write_atomically(
        card,
        f"""title = "Titles of {titles.NAME}"
files = ["titles.tsv"]
vocabulary = "{titles.SUBJECTS}.tsv.xz"
reader = "tsv"
options = {{ columns = "title, topics", separator = " ", quotes = "none", test = "last {n_test}" }}
""",
    )
    return card


def _textcat(task: str, *words: object) -> list[Any]:
    return [sys.executable, HERE / "many_topics_textcat.py", task, *words]


def _omikuji(task: str, *words: object) -> list[Any]:
    return [sys.executable, HERE / "many_topics_omikuji.py", task, *words]


def _head(space: Space, arguments: Sequence[str]) -> str:
    corpus = space.corpus
    omikuji = f"Omikuji {version('omikuji')}" if space.peers else "Omikuji, which is not installed here"
    source = titles.NAME if space.documents is None else f"the first titles of {titles.NAME}"
    return f"""# Benchmark of many topics

Written by `{shlex.join(["scripts/benchmark", "many-topics", *arguments])}` on {date.today()}.

- Corpus: {source}, {len(corpus.train):,} training and {len(corpus.test):,} test documents, {len(corpus.topics):,}
  topics that have a training document. See [corpora.md](corpora.md), and [many-topics.md](many-topics.md) for how
  textcat trains so many.
{described()}
- {omikuji}: partitioned label trees, in Rust, as its Python package has it. Its rows are those of scikit-learn's
  `TfidfVectorizer()`; documents without a known word are left out. Bonsai-like is
  `{", ".join(f"{name}={value}" for name, value in SETTINGS["bonsai"].items())}`; all else is as it comes.
- Each thing is measured in a process of its own, {JOBS} jobs or threads where nothing else is said.
"""


def peers(settings: Sequence[str] = tuple(PEERS.values())) -> Mapping[str, str]:
    """Return what there is beside textcat, of the settings asked for: nothing where it is not installed."""
    return {name: kind for name, kind in PEERS.items() if kind in settings} if find_spec("omikuji") else {}


def _conditions(all_facts: Sequence[Facts]) -> str:
    """Say of what, and in which state of the machine, something was measured: it may have been in several runs."""
    commits, dates = (", ".join(dict.fromkeys(facts[name] for facts in all_facts)) for name in ("commit", "date"))
    loads = [float(load) for facts in all_facts for load in facts["load"]]
    return f"Recipe: {RECIPE}. Commit: {commits}. Date: {dates}. Load: {min(loads)} to {max(loads)}."


def _table(rows: Sequence[Mapping[str, Any]], all_facts: Sequence[Facts]) -> str:
    return f"{_conditions(all_facts)}\n\n{markdown_table(rows)}"


# --- quality, time and memory ----------------------------------------------------------------------------------------


def quality(space: Space) -> str:
    """Train, measure what that takes, and how good the first topics are."""
    facts = {name: _trained(space, name) for name in (*OURS, *space.peers)}
    evaluations = {name: _evaluated(space, name) for name in facts}
    if space.peers:
        facts["rows for Omikuji: TfidfVectorizer, written as text"] = space.rows()
    costs = [_cost_row(name, of_it) for name, of_it in facts.items()]
    figures = [row for evaluation in evaluations.items() for row in _figures(*evaluation)]
    compared = compare_evaluations(list(evaluations.values()), n_resamples=RESAMPLES)
    differences = [
        {"what": name, "topics": band} | _differences(compared.measures, place, band)
        for place, name in enumerate(list(evaluations)[1:])
        for band in BANDS
    ]
    return f"""## Time and memory of training

textcat: `textcat train`, the whole process, from the file of titles to the saved model and its evaluation. Omikuji:
the process that reads ready rows, trains, and saves the model; making its rows has a line of its own, and its
vectorizer is not in the size of the model. The peak is that of all processes of a run together.

{_table(costs, list(facts.values()))}
## Quality

The measures of [evaluation.md](evaluation.md#thousands-of-topics) on the test documents, of all topics and of those
with so many training documents. In brackets: 95 % intervals, of {RESAMPLES:,} resamples of the documents.

{markdown_table(figures)}
By how much each is better or worse than {next(iter(OURS))} on the same documents, with 95 % intervals of the paired
difference:

{markdown_table(differences)}"""


def _trained(space: Space, name: str) -> Facts:
    if name in OURS:
        return space.kept(name, lambda: _train_ours(space, name))
    space.rows()
    return space.kept(name, lambda: _train_peer(space, name))


def _train_ours(space: Space, name: str) -> Facts:
    model = space.path(name)
    shutil.rmtree(model, ignore_errors=True)
    settings = [word for setting in OURS[name] for word in ("--set", setting)]
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
        "seconds of processor": f"{facts['cpu_seconds']:.1f}",
        "peak memory, MB": f"{facts['rss_bytes'] / 1e6:,.0f}",
        "model on disk, MB": f"{facts['bytes'] / 1e6:,.0f}" if "bytes" in facts else None,
    }


def _evaluated(space: Space, name: str, first: int | None = None) -> Evaluation:
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
        row = next(each for each in measures if (each.band, each.measure) == (band, of))
        found = row.differences[place]
        cells[title] = found and f"{found.difference:+.4f} ({found.interval[0]:+.4f} to {found.interval[1]:+.4f})"
    return cells


def _short(value: float | None) -> str:
    return "-" if value is None else f"{value:.4f}"


def _bounds(low: float | None, high: float | None) -> str:
    return "" if low is None or high is None else f" ({low:.4f} to {high:.4f})"


# --- tagging ---------------------------------------------------------------------------------------------------------


def tagging(space: Space) -> str:
    """Tag on one core, round by round."""
    facts = space.kept("tagging", lambda: _rates(space))
    rounds = len(facts["rates"][0])
    return f"""## Tagging

The first {TAGGED} topics of titles, with the model loaded, on one core with one thread. Rounds: {rounds}, in each of
which each ran once, in turn; medians, and in brackets least and most. textcat starts from texts. Omikuji starts from
ready rows, which its Python takes one by one.

{_table(_rate_rows(facts), [facts])}"""


def _rate_rows(facts: Facts, second: str = "second") -> list[dict[str, Any]]:
    ours = facts["rates"][0]
    return [
        {
            "what": name,
            "titles": f"{n:,}",
            f"titles a {second}": f"{median(rates):,.0f}"
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


def annif(space: Space) -> str:
    """Train Annif's own systems, and measure them on the first test documents."""
    head = "## Annif's own systems\n\n"
    if not many_topics_annif.python():
        return head + "Annif is not installed here: `TEXTCAT_ANNIF` names the Python that has it.\n"
    ours, n = next(iter(OURS)), min(TAGGED_BY_PEER, len(space.corpus.test))
    facts = {name: _trained(space, name) for name in (ours, *space.peers)}
    prepared = space.kept("annif", lambda: _prepare_annif(space))
    facts |= {name: space.kept(name, lambda name=name: _train_annif(space, name, n)) for name in ANNIFS}
    rates = space.kept("annif tagging", lambda: _annif_rates(space, n))
    figures = [row for name in facts for row in _figures(name, _evaluated(space, name, n))]
    shown = {name: facts[name] for name in (ours, *ANNIFS)}
    versions = "Annif {annif}, with scikit-learn {scikit-learn} and NLTK {nltk}".format(**prepared["versions"])
    return f"""{head}{versions}, trained by `annif train` with its default settings and the analyzer
`{many_topics_annif.ANALYZER}`:

- `tfidf` compares a text with all titles of a topic together; it has all training documents.
- `mllm` finds names of topics in the text, and learns which of them to believe, on the first
  {many_topics_annif.MLLM_TITLES:,} training documents; its draws have no seed.

The vocabulary is the topics and their names; the synonyms and relations of topics, which `mllm` would use, too, are
not in the corpus. What NLTK needs to cut texts into sentences it learns from the first {many_topics_annif.CUT_BY:,}
training titles; Annif would download a model for it.

Measured on the first {n:,} test documents, all rows alike, with 95 % intervals in brackets as above:

{markdown_table(figures)}
Training is the whole process, from the file of titles to the saved model. Before it, Annif loads the vocabulary once:
{prepared["cpu_seconds"]:.1f} seconds of processor.

{_table([_cost_row(name, of_it) for name, of_it in shown.items()], list(shown.values()))}
The first {TAGGED} topics, from texts, as under "Tagging", but by seconds of the processor; Annif in batches as
`annif index` makes them. Rounds: {len(rates["rates"][0])}.

{_table(_rate_rows(rates, "second of processor"), [rates])}"""


ANNIFS = many_topics_annif.PROJECTS


def _annif(space: Space, task: str, *words: object) -> list[Any]:
    folder = space.path("annif")
    start = [*many_topics_annif.environment(folder), many_topics_annif.python()]
    return [*start, HERE / "many_topics_annif.py", task, folder, *words]


def _prepare_annif(space: Space) -> Facts:
    folder = space.path("annif")
    shutil.rmtree(folder, ignore_errors=True)
    many_topics_annif.write_files(space.corpus, folder)
    run(_annif(space, "sentences"))
    taken = measured(many_topics_annif.load_command(folder))
    return {**asdict(taken), "versions": json.loads((folder / "versions.json").read_text())}


def _train_annif(space: Space, name: str, n: int) -> Facts:
    project = ANNIFS[name]
    taken = measured(many_topics_annif.train_command(space.path("annif"), project))
    run(_annif(space, "tops", project, n, space.path(name, ".npy")))
    return {**asdict(taken), "bytes": _size(many_topics_annif.model(space.path("annif"), project))}


def _annif_rates(space: Space, n: int) -> Facts:
    out, ours = space.folder / "annif-speed.json", next(iter(OURS))
    commands = {ours: _textcat("speed", space.test, space.path(ours), n, out)}
    commands |= {name: _annif(space, "speed", project, n, out) for name, project in ANNIFS.items()}
    return _rounds(space, commands, out, "cpu_rate") | {"titles": [n] * len(commands)}


# --- topics without a training document ------------------------------------------------------------------------------


def unseen(space: Space) -> str:
    """Take the labels of some topics away."""
    facts, least = {}, LEAST_TESTED if space.documents is None else 1
    for name, settings in OURS.items():
        out = space.folder / "unseen.json"
        command = _textcat("unseen", space.name, HIDDEN, least, *settings, out)
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
    return f"""## Topics without a training document

{n} topics, chosen at random (seed {SEED}) of those that have at least {least} in the test part, are taken away from
all training documents, so that nothing but their names is known of them. Measured is how well test documents are
given these topics, among all others.

{_table(rows, list(facts.values()))}"""


def _printed(command: list[Any], out: Path) -> Facts:
    run(command)
    facts: Facts = json.loads(out.read_text())
    return facts


# --- cost ------------------------------------------------------------------------------------------------------------


def cost(space: Space) -> str:
    """Train more and more topics."""
    all_facts = _costs(space)
    rows = [
        {
            "topics": f"{facts['topics']:,}",
            "non-zeros": f"{facts['entries']:,}",
            "seconds": f"{facts['seconds']:.1f}",
            "seconds of processor": f"{facts['cpu_seconds']:.1f}",
            "ms a topic": f"{1e3 * facts['seconds'] / facts['topics']:.2f}",
            "ns per non-zero and topic": f"{_nanoseconds(facts):.4f}",
        }
        for facts in all_facts
    ]
    return f"""## Cost per topic

The seconds of the stage "train topics", of so many topics, those of most documents, on all documents; divided by the
number of non-zeros of all rows, and by that of topics. A document is listed for so many topics as the recipe's
`topics.shortlist` says, however many there are, and no others are shown it.

{_table(rows, all_facts)}
![Nanoseconds per non-zero and topic, by the number of topics](many-topics-benchmark.svg)
"""


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

FITTED = ((50_000, 1_000), (150_000, 5_000), (75_000, 25_062))  # documents, topics: what the model is made from
CHECKED = ((300_000, 25_062), (603_485, 5_000), (603_485, 25_062))
PLANNED = (10_000_000, 500_000)
LISTED, HELD_OUT, SAMPLED = 200, 20_000, 2_500  # of the recipe, and of training/shortlist.py
# Steps, with the functions of training/shortlist.py they are, and what their seconds are a sum of.
STEPS: dict[str, tuple[str, tuple[str, ...]]] = {
    "rows": ("rows", ("entries",)),
    "centroids": ("_centroids", ("label entries",)),
    "listing": ("_list_block", ("postings", "cells")),
    "rows of topics": ("rows_by_topic", ("listed",)),
    "solving": ("_train_block", ("entries of pairs", "topics")),
    "weighing": ("_weigh", ("held-out cells", "held-out pairs")),  # beside centroids, listing and solving of a sample
    "merging, pruning": ("merge", ("weights", "topics")),
    "saving": ("save", ("kept", "topics")),
}
COUNTED = ("entries", "label entries", "postings", "entries of pairs", "weights", "kept", "in centroids")


def cost_model(space: Space) -> str:
    """Measure the steps of training at some sizes, and predict those of others."""
    fitted, checked = ([_steps(space, size) for size in _sizes(space, sizes)] for sizes in (FITTED, CHECKED))
    powers, of_all = ({name: _powers(of, name) for name in COUNTED} for of in (fitted, [*fitted, *checked]))
    rates = _rates_of_steps(fitted)
    n, m = PLANNED
    rows, planned = [], _predicted(rates, _guessed(of_all, n, m))
    for facts in checked:
        guesses = _predicted(rates, _guessed(powers, facts["documents"], facts["topics"]))
        predictions = _predicted(rates, _counts(facts))
        seconds = {step: facts["seconds"][name] for step, (name, _) in STEPS.items()}
        for step in (*STEPS, "all"):
            taken, from_counts, from_size = (
                of[step] if step in of else sum(of.values()) for of in (seconds, predictions, guesses)
            )
            rows.append(
                {
                    "documents": f"{facts['documents']:,}",
                    "topics": f"{facts['topics']:,}",
                    "step": step,
                    "measured, s": f"{taken:.1f}",
                    "from what is counted, s": f"{from_counts:.1f}",
                    "error": f"{from_counts / taken - 1:+.0%}",
                    "from the size alone, s": f"{from_size:.1f}",
                    "its error": f"{from_size / taken - 1:+.0%}",
                }
            )
    constants = [
        {"step": step, "count": name, "ns for each": f"{1e9 * rate:,.2f}"}
        for step in STEPS
        for name, rate in rates[step].items()
    ]
    counts = [
        {"documents": f"{facts['documents']:,}", "topics": f"{facts['topics']:,}"}
        | {name: f"{_counts(facts)[name]:,.0f}" for name in COUNTED}
        for facts in (*fitted, *checked)
    ]
    counts.append(
        {"documents": f"{n:,}", "topics": f"{m:,}"}
        | {name: f"{value:,.0f}" for name, value in _guessed(of_all, n, m).items() if name in COUNTED}
    )
    growth = [
        {"count": name, "grows with documents to the power": f"{a:.2f}", "with topics": f"{b:.2f}"}
        for name, (_, a, b) in of_all.items()
    ]
    hours = [
        {"step": step, "hours of processor": f"{seconds / 3600:,.2f}"}
        for step, seconds in {**planned, "all": sum(planned.values())}.items()
    ]
    return f"""## Cost model

Seconds of the processor, of the thread that runs a step. The model is made from {_written(fitted)}, and checked on
{_written(checked)} (documents × topics: the first documents, and their most frequent topics).

{_conditions([*fitted, *checked])}

{markdown_table(constants)}
{markdown_table(rows)}
The counts; the last line is extrapolated from the others to the planned size:

{markdown_table(counts)}
{markdown_table(growth)}
Hours that {n:,} documents × {m:,} topics would take of one such core:

{markdown_table(hours)}"""


def _sizes(space: Space, sizes: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    if space.documents is None:
        return list(sizes)
    n, m = len(space.corpus.train), len(space.corpus.topics)  # of a sample, as large a share
    return [(max(200, n * a // 603_485), max(20, m * b // 25_062)) for a, b in sizes]


def _steps(space: Space, size: tuple[int, int]) -> Facts:
    out, (n, m) = space.folder / "steps.json", size
    return space.kept(f"steps {n} {m}", lambda: _printed(_textcat("steps", space.name, n, m, out), out))


def _written(all_facts: Sequence[Facts]) -> str:
    return ", ".join(f"{facts['documents']:,} × {facts['topics']:,}" for facts in all_facts)


def _counts(facts: Facts) -> dict[str, float]:
    return _with_products(facts["counts"], facts["documents"], facts["topics"])


def _with_products(counts: Facts, n: int, m: int) -> dict[str, float]:
    held_out, sampled = min(HELD_OUT, n // 10), min(SAMPLED, m)
    listed = min(LISTED, m)
    of_held_out = {"held-out cells": held_out * m, "held-out pairs": held_out * listed * sampled / m}
    shares = {"held out": held_out / n, "sampled": sampled / m}
    return {**counts, "topics": m, "cells": n * m, "listed": n * listed, **of_held_out, **shares}


def _powers(all_facts: Sequence[Facts], name: str) -> tuple[float, float, float]:
    """Return the powers of documents and of topics that a count grows with, behind its logarithm at 1 and 1."""
    sizes = np.log([[np.e, facts["documents"], facts["topics"]] for facts in all_facts])
    counts = np.log([max(facts["counts"][name], 1) for facts in all_facts])
    constant, of_documents, of_topics = np.linalg.lstsq(sizes, counts, rcond=None)[0]
    return float(constant), float(of_documents), float(of_topics)


def _guessed(powers: Mapping[str, tuple[float, float, float]], n: int, m: int) -> dict[str, float]:
    guesses = {name: float(np.exp(c) * n**a * float(m) ** b) for name, (c, a, b) in powers.items()}
    return _with_products(guesses, n, m)


def _rates_of_steps(all_facts: Sequence[Facts]) -> dict[str, dict[str, float]]:
    """Return the seconds for each of what is counted, not negative, by least squares of the relative errors."""
    rates: dict[str, dict[str, float]] = {}
    for step, (function, names) in STEPS.items():
        counts = np.array([[_counts(facts)[name] for name in names] for facts in all_facts], float)
        seconds = np.array([facts["seconds"][function] for facts in all_facts])
        if step == "weighing":
            known = np.array([_sampled_seconds(rates, _counts(facts)) for facts in all_facts])
            found, _ = nnls(counts / seconds[:, None], np.maximum(1 - known / seconds, 0))
        else:
            found, _ = nnls(counts / seconds[:, None], np.ones(len(seconds)))
        rates[step] = dict(zip(names, found.tolist(), strict=True))
    return rates


def _predicted(rates: Mapping[str, Mapping[str, float]], counts: Facts) -> dict[str, float]:
    seconds = {step: sum(rate * counts[name] for name, rate in of_step.items()) for step, of_step in rates.items()}
    return {**seconds, "weighing": seconds["weighing"] + _sampled_seconds(rates, counts)}


def _sampled_seconds(rates: Mapping[str, Mapping[str, float]], counts: Facts) -> float:
    """Return what weighing takes for centroids, for shortlists of documents held out, and for a sample of topics."""
    parts = {"centroids": 1.0, "listing": counts["held out"], "solving": counts["sampled"]}
    return sum(share * sum(rate * counts[name] for name, rate in rates[step].items()) for step, share in parts.items())


PARTS: dict[str, Callable[[Space], str]] = {
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
PAGE = "qtazc"  # the parts of docs/many-topics-benchmark.md; docs/many-topics-plan.md has the other
