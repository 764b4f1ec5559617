"""Embeddings of titles and texts by a pretrained model: short vectors that rankers use in addition to terms.

Two texts without a word in common can mean the same. `embeddings_of` gives each document a vector, which `Ranker`
appends to its feature vector. The model is downloaded once, and runs on numpy alone.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from textcat.base.disk import expanded, read_safetensors, sha256_of_file, user_cache
from textcat.base.errors import TextcatError, install_hint

_NAME = "sentence-transformers/all-MiniLM-L6-v2"
_URL = f"https://huggingface.co/{_NAME}/resolve/main/"
_VARIABLE = "TEXTCAT_MINILM"
CHECKSUMS = {
    "model.safetensors": "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    "tokenizer.json": "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
}
_LAYERS, _HEADS, _WIDTH = 6, 12, 384
_PIECES_OF_A_TITLE = 48  # maximum tokens; longer titles are truncated
_AT_ONCE = 32  # titles, in the order of the documents
_ROWS_IN_CACHE = 64  # number of texts processed together, where many small steps follow each other
N_TITLE = N_TEXT = 64  # dimensions kept of 384 for each part, by principal components
# Weights of the similarity of titles and of the similarity of texts; the similarity of rows has weight 1.
TITLE_PIECES, TEXT_PIECES = 0.04, 0.05

Array = NDArray[np.float32]


def embeddings_of(documents: Iterable[dict[str, str]]) -> Array:
    """Return a vector for each document, given as a dict of its texts by zone: shape (n_documents, n_dimensions).

    The vector of a document has two parts, one for the title (without a title, the beginning of the text) and one for
    the other zones. The first is made from the sentence embedding of the title, the second from the sum of the tokens'
    vectors, weighted by tf-idf. In each part, the mean over the documents is subtracted, 64 principal components are
    kept, and all vectors get the same length.
    """
    model = read_minilm()
    titles, texts = [], []
    for zones in documents:
        text = " ".join(text for zone, text in zones.items() if zone != "title")
        titles.append(zones.get("title", "").strip() or text[:1000])
        texts.append(text)
    title = _reduced(model.sentences(titles), N_TITLE) * np.float32(np.sqrt(TITLE_PIECES))
    return np.hstack([title, _reduced(model.bags(texts), N_TEXT) * np.float32(np.sqrt(TEXT_PIECES))])


def _unit(x: NDArray[Any]) -> NDArray[Any]:
    return x / np.maximum(np.linalg.norm(x, axis=1, keepdims=True), 1e-9)


def _reduced(vectors: NDArray[Any], n: int) -> Array:
    """Subtract the mean of vectors, and reduce the vectors to their n principal components.

    The vectors get length 1 before and after each of these steps; a vector of zeros stays a vector of zeros.
    """
    x = _unit(vectors.astype(float))
    x = _unit(x - x.mean(0)) if len(x) > 1 else x
    _, axes = np.linalg.eigh(x.T @ x)
    axes = axes[:, : -n - 1 : -1]
    axes = axes * np.where(axes[np.abs(axes).argmax(0), np.arange(n)] < 0, -1, 1)  # eigh leaves signs undetermined
    return _unit(x @ axes).astype(np.float32)


def gelu(x: Array) -> Array:
    """Compute x Φ(x), with Φ by formula 7.1.26 of Abramowitz and Stegun (1964): within 1e-6, and faster than erf."""
    t = 1 / (1 + np.float32(0.3275911 * 0.5**0.5) * np.abs(x))
    tail = np.full_like(t, 1.061405429)
    for factor in (-1.453152027, 1.421413741, -0.284496736, 0.254829592):
        tail *= t
        tail += np.float32(factor)
    tail *= t
    tail *= np.exp(x * x * np.float32(-0.5))
    return np.asarray(np.maximum(x, 0) - np.abs(x) * tail * np.float32(0.5))


class MiniLM:
    """The model all-MiniLM-L6-v2 (Wang et al., 2020; Reimers and Gurevych, 2019), a transformer of six layers."""

    def __init__(self, weights: dict[str, Array], tokenizer: Any) -> None:
        self._weights, self._tokenizer = weights, tokenizer
        self.table = weights["embeddings.word_embeddings.weight"]
        kinds = weights["embeddings.token_type_embeddings.weight"]
        self._places = weights["embeddings.position_embeddings.weight"] + kinds[0]

    def sentences(self, texts: Sequence[str]) -> Array:
        """Return for each text the mean of the last layer's outputs for its first tokens: shape (n_texts, 384)."""
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(_PIECES_OF_A_TITLE)
        pieces = [np.array(encoded.ids) for encoded in self._tokenizer.encode_batch(list(texts))]
        parts = [self._means(pieces[first : first + _AT_ONCE]) for first in range(0, len(pieces), _AT_ONCE)]
        return np.concatenate([np.empty((0, _WIDTH), np.float32), *parts])

    def bags(self, texts: Sequence[str]) -> Array:
        """Return for each text the sum of its tokens' vectors, each times (1 + log tf) idf: shape (n_texts, 384)."""
        self._tokenizer.no_padding()
        self._tokenizer.no_truncation()
        counted = [
            np.unique(np.array(encoded.ids, np.int64), return_counts=True)
            for encoded in self._tokenizer.encode_batch(list(texts), add_special_tokens=False)
        ]
        df = np.zeros(len(self.table))
        for pieces, _ in counted:
            df[pieces] += 1
        idf = np.log((len(counted) + 1) / (df + 1)) + 1
        table, sums = self.table - self.table.mean(0), np.zeros((len(counted), _WIDTH), np.float32)
        for i, (pieces, times) in enumerate(counted):
            sums[i] = ((1 + np.log(times)) * idf[pieces]) @ table[pieces]
        return sums

    def _means(self, pieces: Sequence[NDArray[np.int64]]) -> Array:
        sizes = np.array([len(ids) for ids in pieces])
        ends = sizes.cumsum()
        x = self._normed(np.concatenate([self.table[ids] + self._places[: len(ids)] for ids in pieces]), "embeddings")
        for layer in range(_LAYERS):
            name = f"encoder.layer.{layer}."
            q, k, v = (self._linear(x, f"{name}attention.self.{part}") for part in ("query", "key", "value"))
            seen = np.empty_like(x)
            for first, end in zip(ends - sizes, ends, strict=True):
                a, b, c = (y[first:end].reshape(end - first, _HEADS, -1).transpose(1, 0, 2) for y in (q, k, v))
                looks = a @ b.transpose(0, 2, 1) * np.float32((_WIDTH / _HEADS) ** -0.5)
                looks = np.exp(looks - looks.max(-1, keepdims=True))
                looks /= looks.sum(-1, keepdims=True)
                seen[first:end] = (looks @ c).transpose(1, 0, 2).reshape(end - first, _WIDTH)
            x = self._normed(x + self._linear(seen, f"{name}attention.output.dense"), f"{name}attention.output")
            h = self._linear(x, f"{name}intermediate.dense")
            for first in range(0, len(h), _ROWS_IN_CACHE):
                h[first : first + _ROWS_IN_CACHE] = gelu(h[first : first + _ROWS_IN_CACHE])
            x = self._normed(x + self._linear(h, f"{name}output.dense"), f"{name}output")
        return np.asarray(np.add.reduceat(x, ends - sizes) / sizes[:, None].astype(np.float32))

    def _linear(self, x: Array, name: str) -> Array:
        return np.asarray(x @ self._weights[f"{name}.weight"].T + self._weights[f"{name}.bias"])

    def _normed(self, x: Array, name: str) -> Array:
        x = x - x.mean(-1, keepdims=True)
        x /= np.sqrt((x * x).mean(-1, keepdims=True) + np.float32(1e-12))
        return np.asarray(x * self._weights[f"{name}.LayerNorm.weight"] + self._weights[f"{name}.LayerNorm.bias"])


@lru_cache(maxsize=1)
def read_minilm() -> MiniLM:
    """Read the model all-MiniLM-L6-v2 from its files, which are downloaded if needed.

    Later calls return the same object.
    Raise TextcatError if the package tokenizers is not installed, or a file cannot be read or downloaded.
    """
    try:
        from tokenizers import Tokenizer
    except ImportError as error:
        raise TextcatError(f"Embeddings need the package tokenizers: {install_hint('embeddings')}.") from error
    weights, tokenizer = (_file(name) for name in CHECKSUMS)
    return MiniLM(read_safetensors(weights), Tokenizer.from_str(tokenizer.read_text(encoding="utf-8")))


def _file(name: str) -> Path:
    """Return the path of one of the model's files, whose checksum is verified.

    It is in the folder that the environment variable TEXTCAT_MINILM names or, if this is not set, in the user's cache,
    to which it is downloaded if needed. Raise TextcatError if it cannot be read or downloaded, or is damaged.
    """
    by_hand = f"put {' and '.join(CHECKSUMS)} of {_NAME} into a folder and name the folder in {_VARIABLE}"
    if folder := os.environ.get(_VARIABLE):
        path = expanded(folder) / name
        try:
            checksum = sha256_of_file(path)
        except OSError as error:
            raise TextcatError(
                f"{_VARIABLE} is {folder}, but {path} cannot be read ({error.strerror}): {by_hand}."
            ) from error
        if checksum != CHECKSUMS[name]:
            raise TextcatError(f"{path} has a wrong checksum ({checksum[:12]}…): {by_hand}.")
        return path
    import pooch

    cache = pooch.create(user_cache() / _NAME.rpartition("/")[2], _URL, registry=CHECKSUMS)
    try:
        return Path(cache.fetch(name))
    except (OSError, ValueError) as error:
        raise TextcatError(f"Cannot download {_URL}{name} ({type(error).__name__}): {by_hand}.") from error
