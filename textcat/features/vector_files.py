"""Read word vectors from files of fastText, word2vec, GloVe or Model2Vec."""

from __future__ import annotations

import gzip
import json
import zlib
from functools import lru_cache
from pathlib import Path

import numpy as np

from textcat.base.disk import expanded, read_safetensors, sha256_of_file
from textcat.base.errors import TextcatError, similar_files
from textcat.base.normal_forms import normalised
from textcat.features.scripts import are_letters
from textcat.features.vectors import STATIC, WordVectors, english_vectors

# maximum number of words read; files begin with the most frequent words, and each word is a column of every model
MOST_WORDS = 50_000
_SAFETENSORS, _PINNED = ".safetensors", "#sha256="
_IN_FOLDER = "model.safetensors"  # the file in a folder of Model2Vec
_LENGTH = 0.94  # mean length: that of the shipped vectors, so that the same weights suit both
_CUT = 0.999  # share of the components that are stored exactly in 8 bits: larger ones are clipped
_A = 1e-3  # a in the weight a / (a + frequency) of S. Arora et al., A simple but tough-to-beat baseline, 2017
_MARKS = "▁", "Ġ"  # marks by which tokenizers show that a piece begins a word


def named_vectors(name: str) -> WordVectors:
    """Return the word vectors that a recipe names: those shipped with textcat ("static"), or those of a file."""
    return english_vectors() if name == STATIC else read_vectors(name)


def read_vectors(name: str) -> WordVectors:
    """Return the word vectors in a file, centred, and scaled like the shipped vectors.

    Vectors of a text file are also weighted: the more frequent a word is by its rank, the less.

    Parameters
    ----------
    name : str
        The path of the file, perhaps followed by ``#sha256=`` and the checksum that the file must have. A text file
        (``.vec`` or ``.txt``, also with ``.gz``) has a word and its numbers per line, frequent words first, as
        fastText, word2vec and GloVe write it. A folder or ``.safetensors`` is a model of Model2Vec, beside its
        tokenizer.json.

    Returns
    -------
    WordVectors
        Vectors of the first 50,000 words of letters only, in lower case; if several become equal, the first is kept.
        Its `name` has the checksum.

    Raises
    ------
    TextcatError
        If the file is missing, not such a file, or not the one with the checksum.
    """
    named, _, pinned = name.partition(_PINNED)
    path = expanded(named)
    if path.is_dir() and not (path / _IN_FOLDER).is_file():
        raise TextcatError(
            f"The folder {path} has no {_IN_FOLDER}, the vectors of words of Model2Vec: name another, or a file."
        )
    path = path / _IN_FOLDER if path.is_dir() else path
    if not path.is_file():
        raise TextcatError(f"There is no file {path} of vectors of words.{similar_files(path)}")
    vectors = _read(path.absolute(), path.stat().st_mtime_ns)
    if pinned not in ("", vectors.name.rpartition(_PINNED)[2]):
        raise TextcatError(f"{path} is not the file of vectors that was named: its sha256 is not {pinned}; restore it.")
    return vectors


@lru_cache(maxsize=1)
def _read(path: Path, _changed: int) -> WordVectors:
    """Return the vectors in a file (cached); a changed file is read again."""
    sha256 = sha256_of_file(path)
    try:
        words, vectors = _of_model2vec(path) if path.suffix == _SAFETENSORS else _of_text(path)
        if not len(words) or not np.isfinite(vectors).all() or np.ptp(vectors, axis=0).max() == 0:
            raise ValueError("it has not two words with finite numbers that differ")
    except (OSError, EOFError, ValueError, LookupError, TypeError, AttributeError, RecursionError, zlib.error) as error:
        raise TextcatError(
            f"{path} cannot be read for vectors of words ({error}): give a text file with a word and its numbers per "
            "line (.vec, .txt), or the folder of a model of Model2Vec."
        ) from None
    vectors = vectors - vectors.mean(0)
    if path.suffix != _SAFETENSORS:  # its vectors are weighted already
        frequencies = 1 / (np.arange(2, len(words) + 2) * np.log(len(words) + 2))  # frequencies by Zipf's law
        vectors *= (_A / (_A + frequencies))[:, np.newaxis]
    vectors *= _LENGTH / np.linalg.norm(vectors, axis=1).mean()
    step = float(np.quantile(np.abs(vectors), _CUT)) / 127
    values = np.clip(np.rint(vectors / step), -127, 127).astype(np.int8)
    return WordVectors(words, values, step, f"{path}{_PINNED}{sha256}")


def _of_text(path: Path) -> tuple[list[str], np.ndarray]:
    vectors = dict[str, np.ndarray]()
    with gzip.open(path, "rt", encoding="utf-8") if path.suffix == ".gz" else path.open(encoding="utf-8") as file:
        for number, line in enumerate(file, start=1):
            written, *numbers = line.split()
            word = normalised(written.lower())
            if not are_letters(word) or word in vectors:
                continue  # including the first line of word2vec, which has the numbers of words and dimensions
            vectors[word] = np.array(numbers, np.float32)
            if len(numbers) < 2 or len(numbers) != len(next(iter(vectors.values()))):
                raise ValueError(f"line {number} has {len(numbers)} numbers after its word")
            if len(vectors) == MOST_WORDS:
                break
    return [*vectors], np.array([*vectors.values()], np.float64)


def _of_model2vec(path: Path) -> tuple[list[str], np.ndarray]:
    """Return the words in the vocabulary of the tokenizer of a Model2Vec model, and their vectors."""
    arrays = read_safetensors(path)
    vocabulary = json.loads(path.with_name("tokenizer.json").read_bytes())["model"]["vocab"]
    if isinstance(vocabulary, list):  # for the type Unigram: pieces with their probabilities, in order
        vocabulary = {piece: number for number, (piece, _) in enumerate(vocabulary)}
    vectors = arrays["embeddings"].astype(np.float64)
    if "mapping" in arrays:  # for a model with fewer vectors than pieces
        vectors = vectors[arrays["mapping"]]
    if "weights" in arrays:
        vectors = vectors * arrays["weights"].astype(np.float64)[:, np.newaxis]
    mark = next((mark for mark in _MARKS if any(piece.startswith(mark) for piece in vocabulary)), "")
    position_of = dict[str, int]()
    for piece in sorted(vocabulary, key=vocabulary.__getitem__):
        word = normalised(piece.removeprefix(mark).lower())
        if piece.startswith(mark) and are_letters(word) and len(position_of) < MOST_WORDS:
            position_of.setdefault(word, vocabulary[piece])
    return [*position_of], vectors[[*position_of.values()]]
