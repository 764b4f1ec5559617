"""All targets by name."""

import configs
import inputs
import packed
import tagging
from target import Target

import models

TARGETS: dict[str, Target] = {
    "jsonl": inputs.JSONL,
    "delimited": inputs.DELIMITED,
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
