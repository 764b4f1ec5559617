"""All targets by name."""

from . import configs, inputs, models, packed, tagging
from .target import Target

TARGETS: dict[str, Target] = {
    "jsonl": inputs.JSONL,
    "array": inputs.ARRAY,
    "delimited": inputs.DELIMITED,
    "annif": inputs.ANNIF,
    "parquet": inputs.PARQUET,
    "reuters": inputs.REUTERS,
    "rcv1": inputs.RCV1,
    "mbox": inputs.MBOX,
    "text": inputs.TEXT,
    "packed": packed.PACKED,
    "configs": configs.CONFIGS,
    "model": models.MODEL,
    "tagging": tagging.TAGGING,
}
