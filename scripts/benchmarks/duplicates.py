"""The search for duplicates: planted ones of four kinds among generated articles, and among those of real corpora."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from harness import Row, Work, costs, run
from planting import KINDS, planted, repeated

from textcat.corpus.catalogue import open_corpus
from textcat.duplicates.groups import find_groups

CORPORA = ("reuters21578", "20newsgroups")  # the second one was not used to choose constants
OWN_WORDS = 25  # of a text in which duplicates are planted
SMALL = 10  # the archive by which the memory of a document is measured has one of so many


class Found(NamedTuple):
    """Count duplicates that were planted and found, and groups of two or more; list originals wrongly put together."""

    planted: Counter[str]
    found: Counter[str]
    wrong: list[tuple[int, int]]
    groups: int

    def rows(self, texts: str) -> list[Row]:
        """Return a row for each kind of duplicate, and one for pairs that are wrong, given what the texts are."""
        rows: list[Row] = [
            {
                "texts": texts,
                "duplicates": kind,
                "planted": f"{self.planted[kind]:,}",
                "found": f"{self.found[kind] / max(self.planted[kind], 1):.2%}",
                "asked": f"{asked:.0%}",
            }
            for kind, (_, asked) in KINDS.items()
        ]
        wrong = f"{len(self.wrong):,}, {len(self.wrong) / max(self.groups, 1):.3%} of {self.groups:,} groups"
        return [*rows, {"texts": texts, "duplicates": "wrong pairs", "planted": None, "found": wrong, "asked": None}]


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


def planted_and_found(work: Work) -> list[Row]:
    """Plant duplicates among generated articles, and in real corpora among documents that do not repeat each other."""
    texts = [f"{record['title']}. {record['text']}" for record in _records(work.archive(_documents(work)))]
    entries = planted(texts)
    archive, out = work.path("planted.jsonl"), work.path("found.jsonl")
    with open(archive, "w", encoding="utf-8") as file:
        file.writelines(json.dumps({"id": str(i), "text": text}) + "\n" for i, (text, *_) in enumerate(entries))
    run(_command(work, archive, out))
    first = {int(line["id"]): int(line["group"]) for line in _records(out)}
    rows = count_found(entries, first).rows(f"{len(texts):,} generated articles")
    return rows + [row for name in CORPORA[: 0 if work.quick else None] for row in _in_corpus(name)]


def _documents(work: Work) -> int:
    return work.documents(300_000, 20_000)


def _records(path: Path) -> Iterator[dict[str, Any]]:
    with open(path, "rb") as file:
        yield from map(json.loads, file)


def _command(work: Work, archive: Path, out: Path) -> list[object]:
    return ["textcat", "duplicates", archive, "--out", out, "--restart", "--jobs", work.jobs, "--quiet"]


def _in_corpus(name: str) -> list[Row]:
    corpus = open_corpus(name, download=False)
    texts = [" ".join(document.zones.values()) for document in (*corpus.train, *corpus.test, *corpus.unused)]
    own = repeated(texts)
    kept = [text for i, text in enumerate(texts) if i not in own and len(text.split()) >= OWN_WORDS]
    entries = planted(kept, every=4)
    groups = enumerate(find_groups({"text": text} for text, *_ in entries).tolist())
    found = count_found(entries, {i: group for i, group in groups if group != i})
    return found.rows(f"{len(kept):,} of {name}'s {len(texts):,}; {len(own):,} repeat half of an earlier one")


def time_and_memory(work: Work) -> list[Row]:
    """Compare time and memory with the tagging of the same articles; a tenth shows the memory of a document."""
    n = _documents(work)
    few = max(n // SMALL, 1000)
    archive, small = work.archive(n), work.archive(few)
    tagging = "textcat tag, recipe default"
    commands = {
        "textcat duplicates": (n, _command(work, archive, work.path("all.jsonl"))),
        tagging: (n, work.tag(work.model("default"), archive, work.path("tags"))),
        f"textcat duplicates, {few:,}": (few, _command(work, small, work.path("small.jsonl"))),
    }
    taken = costs({name: command for name, (_, command) in commands.items()}, work.rounds)
    rows = []
    for name, its in taken.items():
        documents = commands[name][0]
        pairs = zip(its, taken[tagging], strict=True)
        ratio = median(one.cpu_seconds / other.cpu_seconds for one, other in pairs) * n / documents
        rows.append(
            {
                "what": name,
                "documents/s": f"{documents / median(one.seconds for one in its):,.0f}",
                "µs of processor time per document": f"{1e6 * median(one.cpu_seconds for one in its) / documents:.1f}",
                "times tagging's": f"{ratio:.2f}",
                "MB, shared once": f"{median(one.pss_bytes for one in its) / 1e6:.0f}",
            }
        )
    return rows
