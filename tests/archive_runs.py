"""A model, and an archive to tag with it, for tests of whole runs."""

import json
import random

import textcat
from textcat.reading import InputSettings
from textcat.tagging.run import OUTPUT, make_plan, tag_to_folder

# So small that a run of some hundred documents has many batches and shards.
READ, SHARD_RECORDS = InputSettings(block_bytes=3000), 12
BROKEN = ['{"id": "x"}', "{", '{"id": "nul", "text": "a\0b"}', '{"text": 5}']


def make_archive(path, n=200, seed=0):
    """Write JSON Lines of documents of the corpus newswire, among them some that cannot be read."""
    path.parent.mkdir(exist_ok=True)
    draw, corpus = random.Random(seed), textcat.open_corpus("newswire")
    with open(path, "w", encoding="utf-8") as file:
        for number in range(n):
            zones = draw.choice(corpus.test).zones
            line = json.dumps({"id": f"{seed}-{number}", "title": zones["title"], "text": zones["body"]})
            file.write((draw.choice(BROKEN) if draw.random() < 0.05 else line) + "\n")
    return path


def run(model, inputs, out, read=READ, write=OUTPUT, *, jobs=1, scheduler="", strict=False, **options):
    """Tag inputs to a folder."""
    plan = make_plan(model, inputs, read, write, jobs, scheduler, strict)
    return tag_to_folder(plan, out, max_records=SHARD_RECORDS, **options)


def written(out):
    """All that a run has written, as one string of bytes each."""
    names = sorted(path.name for path in out.iterdir() if path.name.startswith("part"))
    rejected = out / "_rejected.jsonl"
    return (
        names,
        b"".join((out / name).read_bytes() for name in names),
        rejected.read_bytes() if rejected.exists() else b"",
    )
