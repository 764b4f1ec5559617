"""Tag, explain, train on and search texts of 5 MB that repeat a pattern or differ in every run without white space."""

from __future__ import annotations

import contextlib
import io
import json
import logging
import multiprocessing
import random
import string
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import textcat
from textcat.teaching.pool import build_pool

_BYTES = 5_000_000
_LIMIT = 10.0  # seconds of a processor: five times what is aimed at, as machines are slow or busy
_REPEATED = (
    *string.punctuation,
    *("a", "7", "\0", "é", "中", "😀", "e\u0301", "…", "«", "—", "’", "€", "\u200b", "\u00a0", "\ud800", "\n", "\t"),
    *("wheat ", "a ", "the ", "( ", "x. ", "wheat,", "wheat.", "wheat-", "()", "([{", "''", "...", "a.b,", "(.", "«é"),
    *(
        "http://",
        "http://a.b/c?d=e&",
        "www.a.b/",
        "a@b.c",
        "a.b.c.",
        "😀)",
        ":-)",
        ":)",
        "’s",
        "n't ",
        "don't ",
        "U.S.",
    ),
    *(
        "( ( a ",
        ":( ( ",
        ": ( x",
        "a\u00a0",
        "dont,",
        "10am ",
        "السلام",
        "👩‍👩‍👧‍👦",
        "👍🏽",
        "e\u0301\u0308\u0327",
        "ทดสอบ",
    ),
    *("5km", "10°C", "€1", "1,000", "-1", "a/b", "<p>", "</p>", '{"a":', "\\u0041", "人民 ", "मक", "اب", "\r\n"),
)
_DISTINCT = {
    "punctuation": string.punctuation,
    "brackets": "()[]{}",
    "letters": string.ascii_lowercase,
    "other signs": "…«»—„“’¿¡§€£°²",
    "emoji": "😀😁😂👍",
    "accents": "éèàüö",
    "combining marks": "ea\u0301\u0300\u0308",
    "CJK": "中国人民大学",
    "Arabic": "ابتثجحخدذرز",
    "emoji with joiners": "👩👨👧❤\u200d\ufe0f",
    "URLs": "htp:/.?=&ab@-",
    "NUL": "a.\0",
    "all": "ab1.,(é…-/:'€😀中\u0301",
}
_LENGTHS = (8, 99, 299, 990)  # of runs


def patterns() -> dict[str, Callable[[random.Random, int], str]]:
    """Return functions of a source of randomness and a number of bytes, by the name of their pattern."""
    repeated = {f"{pattern!r} repeated": _repeating(pattern) for pattern in _REPEATED}
    distinct = {
        f"runs of {length} {name}": _distinct(alphabet, length)
        for name, alphabet in _DISTINCT.items()
        for length in _LENGTHS
    }
    whole = {f"one run of {name}": _one_run(alphabet) for name, alphabet in _DISTINCT.items()}
    return repeated | distinct | whole


def _repeating(pattern: str) -> Callable[[random.Random, int], str]:
    return lambda rng, n_bytes: pattern * (n_bytes // len(pattern.encode("utf-8", "surrogatepass")))


def _one_run(alphabet: str) -> Callable[[random.Random, int], str]:
    return lambda rng, n_bytes: "".join(rng.choices(alphabet, k=n_bytes * len(alphabet) // len(alphabet.encode())))


def _distinct(alphabet: str, length: int) -> Callable[[random.Random, int], str]:
    def text(rng: random.Random, n_bytes: int) -> str:
        n_runs = n_bytes // (1 + length * len(alphabet.encode()) // len(alphabet))
        letters = rng.choices(alphabet, k=n_runs * length)
        return " ".join("".join(letters[k : k + length]) for k in range(0, len(letters), length))

    return text


def trials(rng: random.Random, seconds: float) -> Iterator[tuple[str, bool, str]]:
    """Yield the name of each trial, whether it held, and what happened."""
    end = time.monotonic() + seconds
    makers = patterns()
    order = [(pattern, action) for pattern in makers for action in ACTIONS]
    rng.shuffle(order)
    with TemporaryDirectory(prefix="textcat-attack-") as folder:
        for pattern, action in order:
            if time.monotonic() > end:
                return
            spent, megabytes = measured(action, makers[pattern](rng, _BYTES), Path(folder))
            yield action, spent <= _LIMIT, f"{pattern}: {spent:.1f} s, {megabytes:.0f} MB more"


def save_model(folder: Path) -> None:
    """Save a small model, which the actions use."""
    textcat.save(textcat.train(textcat.open_corpus("newswire"), textcat.read_recipe("paum")), folder)


def measured(action: str, text: str, folder: Path) -> tuple[float, float]:
    """Return the seconds of a processor and the megabytes that an action takes, in a process of its own."""
    if not (folder / "model").exists():
        save_model(folder / "model")
    context = multiprocessing.get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_measure, args=(sender, action, text, folder))
    process.start()
    sender.close()
    result = float("inf"), float("nan")
    if receiver.poll(6 * _LIMIT):
        with contextlib.suppress(EOFError):  # it has ended with an error
            result = receiver.recv()
    process.kill()
    process.join()
    return result


def _measure(sender, action: str, text: str, folder: Path) -> None:
    logging.disable()
    run = ACTIONS[action](folder)
    memory, start = _peak_memory(), time.process_time()
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        run(text)
    spent = time.process_time() - start
    sender.send((spent, _peak_memory() - memory))


def _peak_memory() -> float:
    """Return the most megabytes that the process has held since the last call, or since its start."""
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:  # another system than Linux
        return float("nan")
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM"))


def _tag(folder: Path) -> Callable[[str], object]:
    tagger = textcat.load(folder / "model")
    tagger.tag(["Wheat rose."])
    return lambda text: tagger.tag([text])


def _explain(folder: Path) -> Callable[[str], object]:
    tagger = textcat.load(folder / "model")
    tagger.explain("Wheat rose.", tagger.topics[0], 10)
    return lambda text: tagger.explain(text, tagger.topics[0], 10)


def _train(folder: Path) -> Callable[[str], object]:
    others = [textcat.Document(str(k), {"body": f"Wheat and corn {k}"}, ("grain",)) for k in range(5)]
    others += [textcat.Document(str(k + 5), {"body": f"Gold and tin {k}"}, ("metal",)) for k in range(5)]

    def run(text: str) -> object:
        corpus = textcat.Corpus.from_documents("hostile", [*others, textcat.Document("x", {"body": text}, ("metal",))])
        return textcat.train(corpus, textcat.read_recipe("paum"))

    return run


def _teach(folder: Path) -> Callable[[str], object]:
    def run(text: str) -> object:
        with TemporaryDirectory(dir=folder) as place:
            path = Path(place, "texts.jsonl")
            lines = [{"id": "x", "text": text}, *({"id": str(k), "text": f"Wheat and corn {k}."} for k in range(20))]
            path.write_text("".join(json.dumps(line) + "\n" for line in lines))
            return build_pool([path], Path(place, "pool"), jobs=1)

    return run


ACTIONS = {"tag": _tag, "explain": _explain, "train": _train, "teach": _teach}
