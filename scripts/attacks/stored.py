"""Damage each stored file of sessions, pools, models and rows: it is refused in a sentence, or answers as before."""

from __future__ import annotations

import logging
import multiprocessing
import os
import random
import re
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np

import textcat
from textcat.base.errors import TextcatError
from textcat.teaching.pool import build_pool

_PATIENCE = 15  # seconds until a reader is held to hang
_DOCUMENTS = 60
_SENTENCE = re.compile(r"\S.{20,}[.?]", re.DOTALL)


class Target(NamedTuple):
    """A folder of stored files, and a function that reads all of them."""

    name: str
    folder: Path
    read: Callable[[Path], Any]


def trials(rng: random.Random, seconds: float, part: str = "") -> Iterator[tuple[str, bool, str]]:
    """Yield the name of each trial, of all targets or of the one `part`, whether it held, and what happened."""
    end = time.monotonic() + seconds
    with TemporaryDirectory(prefix="textcat-attack-") as folder:
        targets = [target for target in _targets(Path(folder)) if part in ("", target.name)]
        expected = {target.name: target.read(_copy(target, Path(folder))) for target in targets}
        while time.monotonic() < end:
            for target in targets:
                copy = _copy(target, Path(folder))
                mutation, path = damage(rng, copy)
                outcome, detail = _outcome(target, copy, expected[target.name])
                ok = outcome in ("same answers", "refused", "told")
                yield f"{target.name}, {mutation}", ok, f"{path.relative_to(copy)}: {outcome} {detail}"


def damage(rng: random.Random, folder: Path) -> tuple[str, Path]:
    """Damage one file of a folder, and return what was done, and to which file."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    path = rng.choice(files)
    data = path.read_bytes()
    mutation = rng.choice(["flip", "truncate", "extend", "swap", "delete", "pipe"])
    if mutation == "flip" and data:
        at = rng.randrange(len(data))
        path.write_bytes(data[:at] + bytes([data[at] ^ 1 << rng.randrange(8)]) + data[at + 1 :])
    elif mutation == "truncate":
        kept = data[: rng.randrange(len(data) + 1)]
        path.write_bytes(kept.removesuffix(b"\n"))  # a journal that ends between two lines is whole
    elif mutation == "extend":
        path.write_bytes(data + rng.randbytes(rng.choice([1, 8, 4096])))
    elif mutation == "swap":
        other = rng.choice(files)
        path.write_bytes(other.read_bytes())
        other.write_bytes(data)
    elif mutation in ("delete", "pipe"):
        path.unlink()
        if mutation == "pipe":
            os.mkfifo(path)
    return mutation, path


def _outcome(target: Target, folder: Path, expected: Any) -> tuple[str, str]:
    """Read a damaged folder in another process, as it may crash or hang."""
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_read, args=(target, folder, expected, sender))
    process.start()
    sender.close()
    try:
        return receiver.recv() if receiver.poll(_PATIENCE) else ("HANGS", "")
    except EOFError:  # killed by a signal
        process.join()
        return "CRASHES", f"exit code {process.exitcode}"
    finally:
        process.kill()
        process.join()


def _read(target: Target, folder: Path, expected: Any, sender: Any) -> None:
    warnings: list[str] = []
    handler = logging.Handler()
    handler.emit = lambda record: warnings.append(record.getMessage())  # type: ignore[method-assign]
    logging.getLogger("textcat").addHandler(handler)
    try:
        same = target.read(folder) == expected
        outcome = ("same answers" if same else "told" if warnings else "OTHER ANSWERS", "; ".join(warnings))
    except TextcatError as error:
        outcome = ("refused" if _SENTENCE.fullmatch(str(error)) else "NO SENTENCE", str(error))
    except BaseException as error:  # what no reader should raise
        outcome = ("TRACEBACK", repr(error))
    sender.send(outcome)


def _copy(target: Target, folder: Path) -> Path:
    copy = folder / "copy" / target.folder.name
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(target.folder, copy)
    return copy


def _targets(folder: Path) -> list[Target]:
    """Write a session with its pool, a model and a store of rows."""
    corpus = textcat.open_corpus("newswire")
    documents = [*corpus.train, *corpus.test][:_DOCUMENTS]
    archive = folder / "archive.txt"
    archive.write_text("\n".join(" ".join(" ".join(each.zones.values()).split()) for each in documents), "utf-8")
    model = textcat.save(textcat.train(corpus, n_jobs=1), folder / "model")
    inputs, settings = archive, textcat.InputSettings(format="lines")
    pool = build_pool(inputs, folder / "session" / "pool", settings=settings, jobs=1)
    with textcat.Session.create(folder / "session", pool) as session:
        session.add_topic("trade", "trade in goods", model=(model, corpus.topics[0]))
        for number in range(12):
            asked = session.next("trade")
            session.answer("trade", asked.position, ("yes", "no", "no")[number % 3])
    textcat.write_rows(folder / "rows", [pool.rows])

    def built(copy: Path) -> Any:
        return _contents(build_pool(inputs, copy / "pool", settings=settings, jobs=1))

    return [
        Target("session", folder / "session", _taught),
        Target("pool", folder / "session", built),
        Target("model", Path(model), lambda copy: _tags(copy, documents)),
        Target("rows", folder / "rows", _rows),
    ]


def _taught(folder: Path) -> Any:
    with textcat.Session.open(folder) as session:
        asked = session.next("trade")
        answers = [(judgement.position, judgement.answer) for judgement in session.view.judgements("trade")]
        return asked.position, session.view.scores("trade").tobytes(), answers, _contents(session.view.pool)


def _contents(pool: Any) -> Any:
    texts = [pool.document(i) for i in range(len(pool))]
    arrays = pool.groups, pool.rows.data, pool.rows.indices, pool.rows.indptr
    return texts, list(pool.ids), [np.asarray(array).tobytes() for array in arrays]


def _tags(folder: Path, documents: list[Any]) -> Any:
    return textcat.load(folder).scores(documents).tobytes()


def _rows(folder: Path) -> Any:
    rows = textcat.open_rows(folder)
    return [np.asarray(part).tobytes() for part in (rows.data, rows.indices, rows.indptr)]
