"""Measure textcat against its peers in interleaved runs, and write the tables as Markdown."""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Callable
from pathlib import Path

import archive
import duplicates
import held_out
import hostile_files
import hostile_texts
import many_topics
import other_corpora
import serving
import tagging
import teaching
import teaching_stopping
import texts_to_rows
import training
import training_at_scale
import web_pages
import whole_way
from pages import Page, publish
from sklearn.exceptions import ConvergenceWarning

from textcat.base.errors import TextcatError
from textcat.corpus.catalogue import open_corpus
from textcat.corpus.documents import Corpus

PARTS: dict[str, Callable[[Corpus, int], list[Page]]] = {
    "a": training.measured,
    "b": whole_way.measured,
    "c": tagging.measured,
    "d": texts_to_rows.measured,
    "e": other_corpora.measured,
    "f": held_out.measured,
}
NAMES = "a = training, b = archive to model, c = tagging, d = from texts to rows, e = other corpora, f = thresholds"
# What has a page of its own.
PAGES: dict[str, Callable[[list[str]], None]] = {
    "archive": archive.main,
    "hostile-files": hostile_files.main,
    "hostile-texts": hostile_texts.main,
    "many-topics": many_topics.main,
    "duplicates": duplicates.main,
    "serving": serving.main,
    "teaching": teaching.main,
    "teaching-stopping": teaching_stopping.main,
    "training-at-scale": training_at_scale.main,
    "web-pages": web_pages.main,
}


def main() -> None:
    if sys.argv[1:2] and sys.argv[1] in PAGES:
        PAGES[sys.argv[1]](sys.argv[2:])
        return
    options = _options()
    warnings.simplefilter("ignore", ConvergenceWarning)
    runs = 1 if options.quick else options.runs
    corpus = _corpus(quick=options.quick)
    for part, measured in PARTS.items():
        if part in options.only:
            publish(measured(corpus, runs), options.out)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="scripts/benchmark",
        description=__doc__,
        epilog="With pages of their own: scripts/benchmark archive, the tagging of archives; "
        "scripts/benchmark hostile-files and hostile-texts, files and texts that repeat a pattern; "
        "scripts/benchmark many-topics, thousands of topics; scripts/benchmark duplicates, the search for duplicates; "
        "scripts/benchmark serving, the server; scripts/benchmark web-pages, extractors of main texts; "
        "scripts/benchmark teaching and teaching-stopping, simulations of teaching; and "
        "scripts/benchmark training-at-scale; see their --help.",
    )
    parser.add_argument("--runs", type=int, default=5, help="counted rounds, after one that warms up (default: 5)")
    parser.add_argument("--only", default="".join(PARTS), help=f"parts: {NAMES} (default: all)")
    parser.add_argument("--quick", action="store_true", help="one round on the small corpus newswire: does it work?")
    parser.add_argument("--out", type=Path, help="also write the pages to this folder, such as docs/benchmarks")
    options = parser.parse_args()
    if options.runs < 1:
        parser.error("--runs must be at least 1")
    if not options.only or set(options.only) - set(PARTS):
        parser.error(f"--only takes letters out of {''.join(PARTS)}")
    return options


def _corpus(*, quick: bool) -> Corpus:
    if quick:
        return open_corpus("newswire")
    try:
        return open_corpus("reuters21578", download=False)
    except TextcatError as error:
        print(f"{error}\nMeasuring on the small corpus newswire instead.", file=sys.stderr)
        return open_corpus("newswire")


if __name__ == "__main__":
    main()
