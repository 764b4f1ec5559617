"""A run of a few made-up batches, for tests of what it leaves in its folder."""

from contextlib import closing

from textcat.reading import Batch, Record, Rejection
from textcat.runs.folder import ShardWriter, open_folder
from textcat.runs.results import BatchResult, Counts
from textcat.tagging.output import ENCODERS, OutputSettings, file_format

JSONL = OutputSettings()
FACTS = {"model": "a1", "--top": None}
INPUTS = [{"name": "a.jsonl", "size": 10}, {"name": "b.jsonl", "size": 20}]
PER_PIECE = 3  # records, of which the last is rejected in every second batch
LIMITS = {"max_records": 5, "max_bytes": 64 << 20}


def batch(number, output):
    """A batch and what became of it: the arguments of `ShardWriter.add`."""
    ids = [f"{number}-{i}" for i in range(PER_PIECE)]
    rejections = [Rejection("a.jsonl", number, f"It is broken ({ids.pop()}).")] if number % 2 else []
    records = [Record(id, "a.jsonl", number, {"body": ""}) for id in ids]
    block = ENCODERS[output.to](records, [[("wheat", 0.5, 0.9)]] * len(records))
    counts = Counts(PER_PIECE, len(records), len(rejections), 0)
    counts.topics["wheat"] = len(records)
    tagged = BatchResult([block], rejections, counts, "here")
    return Batch((), (number, 0), (number + 1, 0), 10 * (number + 1)), tagged


def write(folder, n_pieces=8, output=JSONL, *, facts=FACTS, inputs=INPUTS, restart=False, **limits):
    """Write what became of so many batches, from where the folder was; return how far it had come."""
    with open_folder(folder, facts, inputs, restart=restart) as state:
        if not state.finished:
            with closing(ShardWriter(folder, state, file_format(output), **LIMITS | limits)) as shards:
                for number in range(state.checkpoint[0] if state.checkpoint else 0, n_pieces):
                    shards.add(*batch(number, output))
                shards.finish()
    return state


def content(folder):
    """All that a run has written, in order, but for its journal; and which files there are."""
    names = sorted(path.name for path in folder.iterdir())
    shards = [name for name in names if name.startswith("part")]
    return names, b"".join((folder / name).read_bytes() for name in [*shards, *{"_rejected.jsonl"}.intersection(names)])
