"""Measure the search for duplicates: planted ones of four kinds among generated articles, and those of real corpora.

scripts/benchmark duplicates                     # 300,000 articles; some minutes on two cores
scripts/benchmark duplicates --quick             # a few thousand: does it work?
"""

from __future__ import annotations

import argparse
import json
import shlex
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from machine import described
from planting import KINDS, pairs_of_words, planted, repeated, share
from workspace import JOBS, Run, Workspace, interleaved, measured, tag

from textcat.base.disk import write_atomically
from textcat.base.errors import TextcatError
from textcat.corpus.catalogue import open_corpus
from textcat.duplicates.groups import find_groups
from textcat.evaluation.export import markdown_table

CORPORA = ("reuters21578", "20newsgroups")  # the second one was not used to choose constants
NEARLY_HALF = 0.4
OWN_WORDS = 25  # of a text in which duplicates are planted
SMALL = 10  # the archive by which the memory of a document is measured has one of so many


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="scripts/benchmark duplicates", description=__doc__.partition("\n")[0])
    parser.add_argument("--documents", type=int, default=300_000, help="articles (default: 300,000)")
    parser.add_argument("--runs", type=int, default=3, help="rounds (default: 3)")
    parser.add_argument("--quick", action="store_true", help="one round, with 20,000 articles")
    parser.add_argument("--folder", type=Path, help="where there is room for a gigabyte (default: a temporary one)")
    parser.add_argument("--out", type=Path, help="also write the tables to this file")
    options = parser.parse_args(arguments)
    if options.quick:
        options.documents, options.runs = 20_000, 1
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        space = Workspace(Path(folder), options.documents, options.runs)
        space.out("").mkdir()
        text = "\n".join([_head(arguments), _generated(space), _costs(space), *map(_corpus, CORPORA)])
    print(text, end="")
    if options.out:
        write_atomically(options.out, text)


def _head(arguments: list[str]) -> str:
    command = shlex.join(["scripts/benchmark", "duplicates", *arguments])
    return f"Written by `{command}` on {date.today()}.\n\n{described()}\n"


class Found(NamedTuple):
    """Count duplicates that were planted and found, and groups of two or more; list originals wrongly put together."""

    planted: Counter[str]
    found: Counter[str]
    wrong: list[tuple[int, int]]
    groups: int

    def table(self, name: str) -> str:
        """Write what was found as a table."""
        rows = [
            {
                "duplicates": kind,
                "planted": f"{self.planted[kind]:,}",
                "found": f"{self.found[kind] / max(self.planted[kind], 1):.2%}",
                "asked": f"{asked:.0%}",
            }
            for kind, (_, asked) in KINDS.items()
        ]
        wrong = f"Wrong pairs: {len(self.wrong):,}, which is {len(self.wrong) / max(self.groups, 1):.3%} of "
        wrong += f"{self.groups:,} groups."
        return f"{name}:\n\n{markdown_table(rows)}\n{wrong}\n"


def count_found(entries: list[tuple[str, int, str]], first: dict[int, int]) -> Found:
    """Compare the groups of planted texts with the originals; `first` has the first text of each duplicate's group."""
    n, found, wrong = Counter[str](), Counter[str](), list[tuple[int, int]]()
    for i, (_, original, kind) in enumerate(entries):
        n[kind] += 1
        group = first.get(i, i)
        found[kind] += bool(kind) and entries[group][1:] == (original, "")
        if entries[group][1] != original:
            wrong.append((entries[group][1], original))
    return Found(n, found, wrong, len({*first.values()}))


def _generated(space: Workspace) -> str:
    """Measure duplicates planted among generated articles, by the command."""
    texts = [f"{record['title']}. {record['text']}" for record in _records(space.archive(space.documents))]
    entries = planted(texts)
    archive, out = space.folder / "planted.jsonl", space.out("planted.jsonl")
    with open(archive, "w", encoding="utf-8") as file:
        file.writelines(json.dumps({"id": str(i), "text": text}) + "\n" for i, (text, *_) in enumerate(entries))
    measured(_duplicates(archive, out))
    first = {int(line["id"]): int(line["group"]) for line in _records(out)}
    return count_found(entries, first).table(
        f"{len(texts):,} generated articles and {len(entries) - len(texts):,} duplicates"
    )


def _records(path: Path) -> Iterator[dict[str, Any]]:
    with open(path, "rb") as file:
        yield from map(json.loads, file)


def _duplicates(archive: Path, out: Path) -> list[Any]:
    return ["textcat", "duplicates", archive, "--out", out, "--restart", "--jobs", JOBS, "--quiet"]


def _costs(space: Workspace) -> str:
    """Compare time and memory with the tagging of the same articles."""
    few = max(space.documents // SMALL, 1000)
    archive, small = space.archive(space.documents), space.archive(few)
    ours, tagging, ours_small = "textcat duplicates", "textcat tag, recipe default", f"textcat duplicates, {few:,}"
    runs = interleaved(
        {
            ours: _duplicates(archive, space.out("a.jsonl")),
            tagging: tag(space.model("default"), archive, space.out("tags")),
            ours_small: _duplicates(small, space.out("b.jsonl")),
        },
        space.runs,
    )
    rows = [_cost_row(name, few if name == ours_small else space.documents, of_it) for name, of_it in runs.items()]
    grown = median(run.pss_bytes for run in runs[ours]) - median(run.pss_bytes for run in runs[ours_small])
    ratio = median(a.cpu_seconds / b.cpu_seconds for a, b in zip(runs[ours], runs[tagging], strict=True))
    return (
        f"Time and memory, {JOBS} processes, medians of {space.runs} rounds:\n\n{markdown_table(rows)}\n"
        f"Processor time: {ratio:.2f} of tagging's. Memory, with buffers of processes: "
        f"{grown / (space.documents - few):.0f} bytes for each further document.\n"
    )


def _cost_row(name: str, documents: int, runs: list[Run]) -> dict[str, str]:
    return {
        "what": name,
        "documents/s": f"{documents / median(run.seconds for run in runs):,.0f}",
        "µs of processor time per document": f"{1e6 * median(run.cpu_seconds for run in runs) / documents:.1f}",
        "MB, shared once": f"{median(run.pss_bytes for run in runs) / 1e6:.0f}",
    }


def _corpus(name: str) -> str:
    """Measure duplicates planted in the documents of a real corpus that do not repeat each other themselves."""
    try:
        corpus = open_corpus(name, download=False)
    except TextcatError as error:
        return f"{error}\n"
    texts = [" ".join(document.zones.values()) for document in (*corpus.train, *corpus.test, *corpus.unused)]
    own = repeated(texts)
    kept = [text for i, text in enumerate(texts) if i not in own and len(text.split()) >= OWN_WORDS]
    entries = planted(kept, every=4)
    groups = enumerate(find_groups({"text": text} for text, *_ in entries).tolist())
    found = count_found(entries, {i: group for i, group in groups if group != i})
    title = f"{name}, {len(texts):,} documents, of which {len(own):,} repeat half of an earlier one"
    table = found.table(f"{title}; {len(entries) - len(kept):,} duplicates planted in {len(kept):,} others")
    shares = [share(*(pairs_of_words(kept[i]) for i in pair)) for pair in found.wrong]
    halves = sum(value >= NEARLY_HALF for value in shares)
    return f"{table}Of these, {halves:,} have {NEARLY_HALF:.0%} or more of their pairs of words in common.\n"


if __name__ == "__main__":
    main(sys.argv[1:])
