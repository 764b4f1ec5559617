"""Train on as many generated documents as asked: what it takes and how that grows, as pages and a picture."""

from __future__ import annotations

import argparse
import json
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import limited
import numpy as np
from pages import Conditions, Page, publish
from scipy import sparse

import textcat
from textcat.papers.experiments import draw_axes

sys.path.insert(0, str(Path(__file__).parent.parent))
import make_rows

TOPICS, EPOCHS, JOBS, TESTED = 103, 50, 2, 20_480
# In the middle of ten groups of topics, from the most frequent to the rarest.
SAMPLE = [int((k + 0.5) * TOPICS / 10) for k in range(10)]
# Of the documents that were asked for: some as many, and a quarter more.
SIZES = (1 / 80, 1 / 25, 1 / 8, 0.4, 1.25)
LEAST = 200_000_000  # bytes: what Python and its libraries take, and a little
OURS = "textcat, rows in memory"
LISTED_EPOCHS = (5, 10, 25, 50, 100, 1000)
Facts = Mapping[str, Any]


class Place(NamedTuple):
    """Where rows are: those of n documents ("rows"), of a quarter more ("more"), and of others to test on ("test")."""

    folder: Path
    n: int

    def arguments(self, name: str) -> list[str]:
        """Name rows and labels for train_rows.py."""
        return [str(self.folder / name), str(self.folder / f"{name}.npz")]


def main(arguments: Sequence[str]) -> None:
    options = _options(arguments)
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        place = Place(Path(folder), options.documents)
        _say("making rows")
        _make(place)
        publish(_pages(place, options.runs), options.out)


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="scripts/benchmark training-at-scale", description=__doc__)
    parser.add_argument("--documents", type=int, default=800_000, help="how many (default: %(default)s)")
    parser.add_argument("--runs", type=int, default=5, help="of what takes less than a minute (default: %(default)s)")
    parser.add_argument("--folder", type=Path, help="for rows, some 3 GB (default: that for temporary files)")
    parser.add_argument(
        "--out", type=Path, default=Path("docs/benchmarks"), help="folder of the pages (default: %(default)s)"
    )
    return parser.parse_args(arguments)


def _say(what: str) -> None:
    print(what, file=sys.stderr, flush=True)


# --- measuring -------------------------------------------------------------------------------------------------------


def _make(place: Place) -> None:
    archive, most = make_rows.Archive(topics=TOPICS), int(place.n * SIZES[-1])
    beyond = -(-most // make_rows.BLOCK) * make_rows.BLOCK
    columns = make_rows.fit_columns(archive, place.n)
    for name, n, start in (("rows", place.n, 0), ("test", TESTED, beyond)):
        textcat.write_rows(place.folder / name, make_rows.rows(archive, columns, n, start))
        sparse.save_npz(place.folder / f"{name}.npz", make_rows.labels(archive, n, start))
    textcat.write_rows(place.folder / "more", make_rows.rows(archive, make_rows.fit_columns(archive, most), most))
    sparse.save_npz(place.folder / "more.npz", make_rows.labels(archive, most))


def _command(place: Place, name: str, *options: object) -> list[str]:
    script = Path(__file__).with_name("train_rows.py")
    return [sys.executable, str(script), *place.arguments(name), *map(str, options)]


def _train(place: Place, name: str, *options: object) -> Facts:
    """Train in a process of its own."""
    done = subprocess.run(_command(place, name, *options), stdout=subprocess.PIPE, check=True, text=True)
    facts = json.loads(done.stdout)
    _say(f"{name} {shlex.join(map(str, options))}: {facts['seconds']:.2f} s")
    return facts


def _contenders(place: Place) -> dict[str, Facts]:
    """Train on all documents, in several ways."""
    test = ["--test", *place.arguments("test")]
    epochs = ["--max-epochs", EPOCHS]
    svc = ["--by", "linearsvc", "--topics", ",".join(map(str, SAMPLE)), *test]
    facts_of = {
        OURS: _train(place, "rows", *epochs, *test),
        "textcat, rows on disk": _train(place, "rows", "--from", "disk", *epochs, *test),
        "LinearSVC(dual=True)": _train(place, "rows", *svc, "--dual"),
        "LinearSVC()": _train(place, "rows", *svc),
    }
    tight = _within(place, _bytes(facts_of[OURS]) // 2, *epochs)
    return facts_of | ({"textcat, rows on disk, memory for half of them, 1 job": tight} if tight else {})


def _within(place: Place, limit: int, *options: object) -> Facts | None:
    """Train in so much memory; None where that cannot be done, or is too little for Python alone."""
    if limit < LEAST:
        return None
    limited.forget(place.folder / "rows")
    try:
        printed = limited.run(_command(place, "rows", "--from", "disk", "--jobs", 1, *options), limit)
    except subprocess.CalledProcessError as error:
        _say(f"in {limit / 1e6:.0f} MB: {error}")
        return None
    if printed is None:
        return None
    facts = json.loads(printed)
    _say(f"in {limit / 1e6:.0f} MB: {facts['seconds']:.2f} s")
    return {**facts, "limit": limit}


def _by_epochs(place: Place) -> dict[int, Facts]:
    """Train an eighth of the documents for more and more epochs."""
    options = ["--rows", place.n // 8, "--test", *place.arguments("test"), "--max-epochs"]
    return {epochs: _train(place, "rows", *options, epochs) for epochs in LISTED_EPOCHS}


def _by_size(place: Place, runs: int) -> list[Facts]:
    """Train on more and more documents; of several runs that of the median time per visited non-zero."""
    medians = []
    for share in SIZES:
        n = int(place.n * share)
        options = ["--rows", n, "--max-epochs", EPOCHS]
        tries = [_train(place, "more", *options) for _ in range(runs if n <= 200_000 else 1)]
        medians.append(sorted(tries, key=_cost)[len(tries) // 2])
    return medians


def _cost(facts: Facts) -> float:
    """Return nanoseconds per visited non-zero: an epoch of a topic visits all of them once."""
    return facts["seconds"] * 1e9 / (facts["epochs"] * facts["entries"])


def _bytes(facts: Facts) -> int:
    """Return what rows take in memory: a value and a column per non-zero, of four bytes each, and their ends."""
    return 8 * facts["entries"] + 4 * (facts["shape"][0] + 1)


# --- writing ---------------------------------------------------------------------------------------------------------


def _draw(sizes: Sequence[Facts], path: Path) -> None:
    documents, costs = [facts["shape"][0] for facts in sizes], [_cost(facts) for facts in sizes]
    middle = (max(costs) + min(costs)) / 2
    with draw_axes(path, 6.0, 3.4) as drawn:
        drawn.axhspan(0.8 * middle, 1.2 * middle, color="0.92", label="± 20 %")
        drawn.plot(documents, costs, "o-", color="C0", label=f"PAUM(1, 50), {TOPICS} topics, {JOBS} jobs")
        drawn.set(xscale="log", ylim=(0, 1.6 * middle), xlabel="documents", ylabel="ns per visited non-zero and topic")
        drawn.legend(frameon=False)


_DATA = f"""Documents are generated by `scripts/make_archive.py`, of 150 words on average; {TOPICS} topics, the largest
with some 30 % of the documents, the smallest with 0.07 %. Rows are tf-idf of words that occur in two or more
documents. Each measurement runs in a separate process; making and reading the rows is not included."""


def _pages(place: Place, runs: int) -> Iterator[Page]:
    """Measure, and yield a page for each table."""
    yield _page_of_learners(Conditions(_RECIPE), place, _contenders(place))
    yield _page_of_epochs(Conditions(_RECIPE), place, _by_epochs(place))
    yield _page_of_costs(Conditions(_RECIPE), _by_size(place, runs), runs)


_RECIPE = "none: the learners are named below"


def _page_of_learners(conditions: Conditions, place: Place, contenders: Mapping[str, Facts]) -> Page:
    ours = contenders[OURS]
    features, size = ours["shape"][1], f"{ours['entries'] / 1e6:.1f} million non-zeros and {_bytes(ours) / 1e6:.0f} MB"
    text = f"""The table compares learners on {place.n:,} documents, with {features:,} features, {size} in memory:
textcat's
PAUM with the margins τ₋ = 1 and τ₊ = 50, λ = 1, at most {EPOCHS} epochs per topic, and {JOBS} jobs unless stated
otherwise; and scikit-learn's LinearSVC in `OneVsRestClassifier(n_jobs={JOBS})`, in threads. LinearSVC trains only ten
of the {TOPICS} topics, each the middle one of ten groups from the most frequent to the rarest, so its measured time is
multiplied by {TOPICS}/10. MAP is the mean average precision of these ten topics on {TESTED:,} other documents. Each
row is one run.

{_DATA}"""
    notes = f"""Peak memory counts everything in memory at once: the rows, Python and its libraries, and mapped parts of
files. "Apart from files" leaves out memory that the system can free and read again from a file. It includes the
weights of {TOPICS} topics and {features:,} features, {TOPICS * features * 4 / 1e6:.0f} MB, except where the rows are
on disk: then the weights are in a file, too.

{_tight(contenders)}"""
    title = "Training at scale: time and memory"
    return Page("scale-learners", title, conditions.head(), text, list(_rows(contenders)), notes)


def _page_of_epochs(conditions: Conditions, place: Place, epochs: Mapping[int, Facts]) -> Page:
    text = f"""The table shows how many epochs (passes over the documents) PAUM needs, on {place.n // 8:,} of the
documents: each row has at most this many epochs, or ends when every topic has an epoch without an update. Late updates
improve the margins of training documents, but no longer the ranking of other documents. So with many documents,
training need not converge; `--set learner.max_epochs={EPOCHS}` is enough.

{_DATA}"""
    title = "Training at scale: number of epochs"
    return Page("scale-epochs", title, conditions.head(), text, list(_epoch_rows(epochs)))


def _page_of_costs(conditions: Conditions, sizes: Sequence[Facts], runs: int) -> Page:
    costs = [_cost(facts) for facts in sizes]
    spread = 100 * (max(costs) - min(costs)) / (max(costs) + min(costs))
    text = f"""The cost of training PAUM is the time of the whole training, divided by the number of visited non-zeros:
the non-zeros of all rows, times the epochs of all topics. There are at most {EPOCHS} epochs and {JOBS} jobs; rows are
in memory. With more documents there are more words, and the weights of sixteen topics outgrow the cache; the weights of
rare words are prefetched some rows ahead. The lowest and the highest cost in the table lie {spread:.0f} % below and
above the middle between them. The table gives the median of {runs} runs for up to 200,000 documents, and a single run
for more documents.

{_DATA}"""
    return Page(
        "scale-cost",
        "Training at scale: cost per non-zero",
        conditions.head(),
        text,
        list(_size_rows(sizes)),
        picture="Nanoseconds per visited non-zero and topic, by the number of documents",
        draw=partial(_draw, sizes),
    )


def _rows(contenders: Mapping[str, Facts]) -> Iterator[dict[str, Any]]:
    ours = contenders[OURS]["seconds"]
    for name, facts in contenders.items():
        seconds = facts["seconds"] * (1 if "epochs" in facts else TOPICS / len(SAMPLE))
        yield {
            "what": name,
            "seconds": f"{seconds:.1f}",
            "times ours": f"{seconds / ours:.3g}",
            "peak memory, MB": f"{facts['peak_bytes'] / 1e6:.0f}",
            "apart from files, MB": f"{facts['anonymous_bytes'] / 1e6:.0f}",
            "MAP": _map(facts),
        }


def _map(facts: Facts) -> str | None:
    precisions = facts.get("precisions")
    if precisions is None:
        return None
    sample = [precisions[k] for k in SAMPLE] if len(precisions) > len(SAMPLE) else precisions
    return f"{np.mean([value for value in sample if value is not None]):.3f}"


def _tight(contenders: Mapping[str, Facts]) -> str:
    tight = next((facts for facts in contenders.values() if "limit" in facts), None)
    if tight is None:
        return "Training in less memory than the rows need could not be measured."
    return (
        f"The last line is training in a control group of {tight['limit'] / 1e6:.0f} MB, half of the size of the rows: "
        "this limits\nPython, the model in training, and the system's copies of files together."
    )


def _epoch_rows(epochs: Mapping[int, Facts]) -> Iterator[dict[str, Any]]:
    for most, facts in epochs.items():
        known = [value for value in facts["precisions"] if value is not None]
        yield {
            "epochs, at most": most,
            "seconds": f"{facts['seconds']:.2f}",
            "epochs, on average": f"{facts['epochs'] / TOPICS:.1f}",
            "topics converged": facts["converged"],
            "support documents": f"{facts['support']:.0f}",
            "MAP, all topics": f"{np.mean(known):.3f}",
        }


def _size_rows(sizes: Sequence[Facts]) -> Iterator[dict[str, Any]]:
    for facts in sizes:
        yield {
            "documents": f"{facts['shape'][0]:,}",
            "non-zeros": f"{facts['entries']:,}",
            "epochs of all topics": f"{facts['epochs']:,}",
            "updates": f"{facts['updates']:,}",
            "seconds": f"{facts['seconds']:.2f}",
            "ns per visited non-zero": f"{_cost(facts):.4f}",
        }
