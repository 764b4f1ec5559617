"""Measure textcat, beside its peers where there are any, and print the tables: one for each name of a benchmark.

`scripts/benchmark NAME ...` takes names, or how they begin: `tag` stands for all that begin so.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import warnings
from functools import partial
from pathlib import Path

import alarms
import archive
import duplicates
import few_labels
import few_labels_hard
import gates
import hostile_files
import hostile_texts
import many_topics
import names_alone
import promises
import repeats
import reviewing
import scale
import serving
import tables
import teaching
import teaching_page
import teaching_stopping
import thresholds
import training
import trends
import web_pages
from harness import Benchmark, Work, conditions, load
from sklearn.exceptions import ConvergenceWarning

from textcat.base.errors import TextcatError

in_swedish = partial(partial, language="sv")
NAMED, BY_SIZE = "as named", "as `textcat train` chooses"
MANY, ASKED = many_topics.RECIPE, teaching.RECIPE
BENCHMARKS = {
    "train-reuters": Benchmark("From the raw archive to a saved model", NAMED, training.whole_processes),
    "train-other-corpora": Benchmark("The same, other corpora", NAMED, training.whole_processes_of_others),
    "train-alone": Benchmark("Training alone", NAMED, training.alone),
    "rows": Benchmark("From texts to rows", "none: the defaults of both", training.rows_of_texts),
    "thresholds": Benchmark("Thresholds and probabilities", NAMED, thresholds.measure),
    "gates": Benchmark("Conditions on a new model", "default", gates.measure),
    "promises": Benchmark("Promises: kept on held-out documents", BY_SIZE, promises.measure),
    "expected-recall": Benchmark("Expected recall of documents", BY_SIZE, promises.expected_recall),
    "repeats": Benchmark("Training documents that occur twice", BY_SIZE, repeats.measure),
    "review-work": Benchmark("Reviewing: documents that people see", BY_SIZE, reviewing.work_saved),
    "review-page": Benchmark("Reviewing: the page", "default", reviewing.waiting_times),
    "trends": Benchmark("Trends: prevalences by month", BY_SIZE, trends.measure),
    "trends-judged": Benchmark("Trends: with a judged sample", BY_SIZE, trends.with_judged),
    "alarms": Benchmark("Alarms: false ones, and delays", "none: rates are drawn", alarms.measure),
    "few-labels": Benchmark("Few labels: quality by training documents", BY_SIZE, few_labels.measure),
    "few-labels-tags": Benchmark("Few labels: probabilities and tags", BY_SIZE, few_labels.tags),
    "few-labels-unlabelled": Benchmark("Few labels: unlabelled documents", BY_SIZE, few_labels.unlabelled),
    "few-labels-wrong": Benchmark("Few labels: some of them wrong", BY_SIZE, few_labels_hard.wrong_labels),
    "few-labels-messages": Benchmark("Few labels: words with many endings", BY_SIZE, few_labels_hard.messages),
    "names-alone": Benchmark("Names alone", BY_SIZE, names_alone.measure),
    "scale-learners": Benchmark("Training at scale: time and memory", "none: PAUM(1, 50)", scale.learners),
    "tag-archive": Benchmark("How fast tagging an archive is", "default", archive.speed),
    "tag-memory": Benchmark("Memory of tagging an archive", "default", archive.memory),
    "serving": Benchmark("The server", "default", serving.measure),
    "serving-shadow": Benchmark(
        "The server with a shadow, at half of its load", "default; shadow: paum", serving.shadow
    ),
    "duplicates": Benchmark("Duplicates that are found", "none", duplicates.planted_and_found),
    "duplicates-cost": Benchmark("Time and memory of duplicates", "default", duplicates.time_and_memory),
    "hostile-texts": Benchmark("Hostile texts", f"paum; teach: {ASKED}", hostile_texts.summary),
    "hostile-files": Benchmark("Hostile files", "none: files are only read", hostile_files.measure),
    "web-pages": Benchmark("Extractors of main texts", "none: pages are only read", web_pages.measure),
    "many-topics-training": Benchmark("25,062 topics: training", MANY, many_topics.training),
    "many-topics-quality": Benchmark("25,062 topics: quality", MANY, many_topics.quality),
    "many-topics-tagging": Benchmark("25,062 topics: tagging", MANY, many_topics.tagging),
    "many-topics-annif": Benchmark("Quality of Annif's own systems", MANY, many_topics.annif_quality),
    "many-topics-annif-tagging": Benchmark("Tagging by Annif's own systems", MANY, many_topics.annif_tagging),
    "many-topics-unseen": Benchmark("Topics without a training document", MANY, many_topics.unseen),
    "many-topics-cost": Benchmark("Cost per topic", MANY, many_topics.cost_of_topics),
    "many-topics-swedish-training": Benchmark("22,825 topics: training", MANY, in_swedish(many_topics.training)),
    "many-topics-swedish-quality": Benchmark("22,825 topics: quality", MANY, in_swedish(many_topics.quality)),
    "teaching-reviews": Benchmark("Teaching on systematic reviews", ASKED, teaching.reviews),
    "teaching-embeddings": Benchmark("The means with embeddings", ASKED, partial(teaching.reviews, embeddings=True)),
    "teaching-descriptions": Benchmark("Teaching from descriptions alone", ASKED, teaching.descriptions),
    "teaching-page": Benchmark("The page of textcat teach", ASKED, teaching_page.measure),
    "teaching-stopping": Benchmark("Rules of stopping", ASKED, teaching_stopping.rules),
    "teaching-stopping-learned": Benchmark("Constants of a rule", ASKED, teaching_stopping.learned),
}


def main() -> None:
    options = _options()
    warnings.simplefilter("ignore", ConvergenceWarning)
    with tempfile.TemporaryDirectory(prefix="textcat-benchmark-") as temporary:
        for name in options.names:
            work = Work(
                options.keep or Path(temporary),
                rounds=options.rounds,
                jobs=options.jobs,
                documents=options.documents,
                quick=options.quick,
            )
            try:
                table = measured(name, work)
            except TextcatError as error:
                print(f"{name}: {error}", file=sys.stderr)
                continue
            print(f"{name}: {table.title}\n\n{table}", flush=True)
            if options.out:
                tables.write_table(options.out / tables.FOLDER / f"{name}.json", table)
                tables.write_pages(options.out)


def measured(name: str, work: Work) -> tables.Table:
    """Measure one of the benchmarks."""
    title, recipe, measure = BENCHMARKS[name]
    work.loads.append(load())
    rows = measure(work)
    work.loads.append(load())
    return tables.make_table(title, conditions(recipe, work.loads), rows)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="scripts/benchmark", description=__doc__)
    parser.add_argument("names", nargs="+", metavar="NAME", help=", ".join(BENCHMARKS))
    parser.add_argument("--quick", action="store_true", help="one round on little data: does it work?")
    rounds = "rounds that count, or draws of documents (3), or seeds of simulations (20)"
    parser.add_argument("--rounds", "--draws", type=int, default=0, help=rounds)
    parser.add_argument("--jobs", type=int, default=2, help="jobs of textcat and of its peers (default: %(default)s)")
    parser.add_argument("--documents", type=int, default=0, help="articles or titles (default: as in docs/benchmarks)")
    parser.add_argument("--keep", type=Path, help="folder for what is made and measured: the same command resumes")
    parser.add_argument("--out", type=Path, help="also write the tables to this folder and its pages: docs/benchmarks")
    options = parser.parse_args()
    if options.rounds < 0 or options.documents < 0 or options.jobs < 1:
        parser.error("--rounds and --documents must be 0 or more, and --jobs 1 or more")
    for given in options.names:
        if not _named(given):
            parser.error(f"no benchmark begins with {given!r}: there are {', '.join(BENCHMARKS)}")
    options.names = list(dict.fromkeys(name for given in options.names for name in _named(given)))
    return options


def _named(given: str) -> list[str]:
    """Return the benchmark of a name, or those whose names begin so."""
    return [given] if given in BENCHMARKS else [name for name in BENCHMARKS if name.startswith(given)]


if __name__ == "__main__":
    main()
