"""A run of a few made-up batches, for tests of what it leaves in its folder."""

from textcat.reading.records import Record, Rejection
from textcat.tagging.counts import Counts
from textcat.tagging.folder import opened
from textcat.tagging.forms import form
from textcat.tagging.output import OutputSettings, encode_csv, encode_jsonl, encode_parquet, encode_rejection
from textcat.tagging.shards import Rule, Shards

ENCODE = {"jsonl": encode_jsonl, "csv": encode_csv, "parquet": encode_parquet}
JSONL = OutputSettings()
FACTS = {"model": "a1", "--top": None}
INPUTS = [{"name": "a.jsonl", "size": 10}, {"name": "b.jsonl", "size": 20}]
PER_PIECE = 3  # records, of which the last is rejected in every second batch
RULE = Rule(records=5)


def batch(number, output):
    """What became of a batch: the arguments of `Shards.add`."""
    ids = [f"{number}-{i}" for i in range(PER_PIECE)]
    rejections = [Rejection("a.jsonl", number, f"It is broken ({ids.pop()}).")] if number % 2 else []
    records = [Record(id, "a.jsonl", number, {"body": ""}) for id in ids]
    block = ENCODE[output.to](records, [[("wheat", 0.5, 0.9)]] * len(records))
    counts = Counts(PER_PIECE, len(records), len(rejections), 0)
    counts.topics["wheat"] = len(records)
    return [block], b"".join(map(encode_rejection, rejections)), counts, (number + 1, 0), 10 * (number + 1)


def write(folder, n_pieces=8, output=JSONL, *, facts=FACTS, inputs=INPUTS, restart=False, rule=RULE):
    """Write what became of so many batches, from where the folder was; return how far it had come."""
    with opened(folder, facts, inputs, restart=restart) as done:
        if not done.finished:
            shards = Shards(folder, done, form(output), output.suffix, rule)
            try:
                for number in range(done.checkpoint[0] if done.checkpoint else 0, n_pieces):
                    shards.add(*batch(number, output))
                shards.finish()
            finally:
                shards.close()
    return done


def content(folder):
    """All that a run has written, in order, but for its journal; and which files there are."""
    names = sorted(path.name for path in folder.iterdir())
    return names, b"".join((folder / name).read_bytes() for name in names if name.startswith(("part", "rejected")))
