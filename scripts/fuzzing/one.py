"""Fuzz one target by atheris: `python -m fuzzing.one TARGET FOLDER OPTION…`, with the options of libFuzzer."""

from __future__ import annotations

import logging
import random
import resource
import sys
from pathlib import Path

import atheris

_LONGEST = 8192  # bytes of an input

with atheris.instrument_imports(include=["textcat", "email", "html", "tarfile", "zipfile", "csv", "json"]):
    from .targets import TARGETS


def main() -> None:
    name, folder, *options = sys.argv[1:]
    target, work = TARGETS[name], Path(folder)
    logging.disable()
    corpus = work / "corpus"
    corpus.mkdir(parents=True, exist_ok=True)
    for number, seed in enumerate(target.seeds()):
        (corpus / f"seed-{number}").write_bytes(seed)
    words = work / "words"
    words.write_text("".join(f'"{_escaped(word)}"\n' for word in target.words))

    def check(data: bytes) -> None:
        target.check(data)
        # libFuzzer looks every second only.
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
        assert peak <= target.memory_mb, f"{peak} MB are more than {target.memory_mb}"

    def mutate(data: bytes, max_size: int, seed: int) -> bytes:
        assert target.mutate
        changed = target.mutate(data, lambda part: atheris.Mutate(part, max(len(part) + 64, 64)), random.Random(seed))
        return changed[:max_size]

    arguments = [
        *(sys.argv[0], f"-timeout={target.seconds}", f"-rss_limit_mb={target.memory_mb}", f"-max_len={_LONGEST}"),
        *(f"-dict={words}", f"-artifact_prefix={work}/", "-print_final_stats=1", *options, str(corpus)),
    ]
    atheris.Setup(arguments, check, **({"custom_mutator": mutate} if target.mutate else {}))
    atheris.Fuzz()


def _escaped(word: bytes) -> str:
    return "".join(f"\\x{byte:02x}" for byte in word)


if __name__ == "__main__":
    main()
