"""The loader of models: each file of a model changed, with the sums made to fit, so that what lies behind is met."""

from __future__ import annotations

import hashlib
import json
import shutil
import tempfile
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import replace
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
from scipy.sparse import csr_array

import textcat
from textcat.base.errors import TextcatError
from textcat.base.folders import MANIFEST, manifest_bytes
from textcat.model.listed import Listed
from textcat.model.manifest import read_manifest
from textcat.model.related import RelatedTopics
from textcat.model.shortlist import Shortlist
from textcat.model.sparse import Sparse
from textcat.model.storage import load, save

from .target import Target

_FOLDER = tempfile.TemporaryDirectory(prefix="textcat-fuzz-", dir="/dev/shm" if Path("/dev/shm").is_dir() else None)
_TEXTS = (
    ("Wheat and corn exports rose, the ministry said.", "grain"),
    ("Gold fell; silver and tin were steady.", "metal"),
    ("The corn harvest is late.", "grain"),
    ("A gold mine opens.", "metal"),
)
_KINDS: tuple[dict[str, Any], ...] = (
    {},
    {"ngrams": 3, "chars": 3},
    {"weighting": "bm25", "zone_terms": True, "ngrams": 2, "ngram_min_df": 1},
    {},
    {},
    {},
)
SPARSE_SEEDS, LISTED_SEEDS = (
    3,
    4,
)  # those of them whose weights are sparse, and that have shortlists, as the last one has
_UNSEEN = np.array([True, False])  # topics, for which related ones speak
_KEEPING = 2  # the one of them that keeps its training documents
# Of the first byte: the sums are made to fit; the arrays are not mapped.
_SEALED, _COPIED = 16, 32


@cache
def models() -> tuple[Path, ...]:
    """Train the models to start from, and return their folders."""
    documents = [
        textcat.Document(str(k), {"title": text[:9], "body": text}, (topic,)) for k, (text, topic) in enumerate(_TEXTS)
    ]
    corpus = textcat.Corpus.from_documents("small", documents)
    taggers = [
        textcat.train(corpus, textcat.Recipe("small", {}, features), keep_support="ids" if i == _KEEPING else "none")
        for i, features in enumerate(_KINDS)
    ]
    dense = taggers[SPARSE_SEEDS].scorer
    weights, n = csr_array(dense.weights), len(corpus.topics)
    related = RelatedTopics(csr_array(np.eye(n, k=1, dtype=np.float32)), np.ones(n), np.zeros(n), 1, 0.5, 0.1, _UNSEEN)
    listed = Listed(weights, dense.bias.astype(np.float32), Shortlist(abs(weights), 2), related)
    scorers = Sparse(weights, dense.bias), listed, replace(listed, related_topics=None)
    for i, scorer in enumerate(scorers, SPARSE_SEEDS):
        taggers[i] = replace(taggers[i], scorer=scorer)
    return tuple(save(tagger, Path(_FOLDER.name, f"model-{i}")) for i, tagger in enumerate(taggers))


def check(data: bytes) -> None:
    """Put bytes in the place of one file of a model, load it, and use it if it loads."""
    head = data[:2].ljust(2, b"\0")
    origin = models()[head[0] % len(_KINDS)]
    folder = Path(_FOLDER.name, "changed")
    shutil.copytree(origin, folder, dirs_exist_ok=True)
    for left in {path.name for path in folder.iterdir()} - {path.name for path in origin.iterdir()}:
        (folder / left).unlink()
    names = sorted(path.name for path in origin.iterdir())
    (folder / names[head[1] % len(names)]).write_bytes(data[2:])
    if head[0] & _SEALED:
        seal_manifest(folder)
    with suppress(TextcatError):
        _use(load(folder, mapped=not head[0] & _COPIED))


def seal_manifest(folder: Path) -> None:
    try:
        manifest = json.loads((folder / MANIFEST).read_bytes())
    except (ValueError, RecursionError):
        return
    if not isinstance(manifest, dict):
        return
    if isinstance(manifest.get("files"), dict):
        for name in manifest["files"]:
            with suppress(OSError, ValueError):
                manifest["files"][name] = hashlib.sha256((folder / name).read_bytes()).hexdigest()
    with suppress(RecursionError):
        (folder / MANIFEST).write_bytes(manifest_bytes(manifest))


def _use(tagger: textcat.Tagger) -> None:
    """Do what `textcat tag`, `explain`, `topics` and `terms` do: what has been loaded must be fit for it."""
    texts = [text for text, _ in _TEXTS]
    scores = tagger.scores(texts)
    assert scores.shape == (len(texts), len(tagger.topics))
    for tags in (
        tagger.tag(texts, top=1),
        tagger.select(scores),
        tagger.select(scores, top=1),
        tagger.select(scores, all_topics=True),
    ):
        json.dumps(tags)
    for topic in tagger.topics:
        tagger.terms(topic, 5)
        json.dumps(tagger.explain(texts[0], topic, 3).as_dict())


def _seeds() -> Iterable[bytes]:
    for i, folder in enumerate(models()):
        for j, path in enumerate(sorted(folder.iterdir())):
            for sealed in (0, _SEALED):
                yield bytes([_head(i, sealed), j]) + path.read_bytes()
    for i in (0, SPARSE_SEEDS, LISTED_SEEDS):
        for array in _arrays():
            for j in range(len(list(models()[i].iterdir()))):
                yield bytes([_head(i, _SEALED), j]) + array
    assert read_manifest(models()[0])


def _head(kind: int, sealed: int) -> int:
    """Return the first byte for a kind of model: the lowest number with this remainder and this flag."""
    return next(n for n in range(256) if n % len(_KINDS) == kind and (n & _SEALED) == sealed)


@cache
def _all_seeds() -> tuple[bytes, ...]:
    return tuple(_seeds())


def _arrays() -> Iterable[bytes]:
    import io

    for values in (
        *(np.zeros(2, kind) for kind in ("int8", "float16", "complex64", "U3", "bool", "M8[s]", "f8,i4", ">f4")),
        *(np.arange(n, dtype=kind)[::step] for n in (2, 3, 7) for kind in ("int32", "int64") for step in (1, -1)),
        *(np.zeros(2), np.full(2, np.nan), np.zeros((2, 2), order="F"), np.zeros((2, 0)), np.float64(3)),
    ):
        buffer = io.BytesIO()
        np.save(buffer, values)
        yield buffer.getvalue()


_ODD: tuple[Any, ...] = (
    *(None, True, False, 0, 1, -1, 3, 2**31, 2**63, 2**64, -(2**64), 10**400, 0.5, float("nan"), float("inf"), ""),
    *("a", "\ud800", "\0", "../weights.npy", "weights.npy", [], [[]], [None], ["a"], ["a", "a"], {}, {"a": 1}),
    *({"body": -1.0}, {"title": 0}, "bm25", "tfidf", "float64", "float16", "object", "xx", "en", "de"),
)


def _mutate(data: bytes, changed: Callable[[bytes], bytes], chance: Random) -> bytes:
    """Change a value somewhere in the JSON of an input that is such, or the header of an array, or bytes."""
    if chance.random() < 0.5:  # what has been tried is mostly small files, as all valid ones run through the same code
        data = chance.choice(_all_seeds())
    head, content = data[:2].ljust(2, b"\0"), data[2:]
    if chance.random() < 0.1:
        head = bytes([head[0] ^ _SEALED, chance.randrange(9)])
    kind = chance.random()
    if kind < 0.5:
        with suppress(ValueError, RecursionError):
            return head + json.dumps(_with_change(json.loads(content), chance)).encode()
    if kind < 0.7 and content.startswith(b"\x93NUMPY"):
        return head + content[:10] + changed(content[10:128])[:118].ljust(118) + content[128:]
    return head + changed(content)


def _with_change(value: Any, chance: Random) -> Any:
    """Return a value with another one in one place of it, or with an entry less or more."""
    if not isinstance(value, (dict, list)) or not value or chance.random() < 0.15:
        return chance.choice(_ODD)
    keys = list(value) if isinstance(value, dict) else list(range(len(value)))
    key = chance.choice(keys)
    what = chance.random()
    if what < 0.1:
        del value[key]
    elif what < 0.2:
        if isinstance(value, dict):
            value[chance.choice(("title", "body", "a", "ngrams", "chars", "zones", "name"))] = chance.choice(_ODD)
        else:
            value.append(chance.choice([*_ODD, value[key]]))
    else:
        value[key] = _with_change(value[key], chance)
    return value


_WORDS = (
    *(b"'descr': ", b"'fortran_order': True", b"'shape': (", b"'<f4'", b"'<f8'", b"'|O'", b"'>f4'", b"'<c8'", b"'<U1'"),
    *(b"'|V0'", b"'<i4'", b"'|b1'", b"\x93NUMPY\x01\x00", b"\x93NUMPY\x02\x00", b"\x93NUMPY\x03\x00", b"-1", b"2**62"),
    *(b"null", b"[]", b"{}", b'""', b"NaN", b"1e400", b"99999999999999999999", b"Infinity", b'"format"', b'"files"'),
)

MODEL = Target(check, _seeds, _WORDS, _mutate)
