"""Vectors of words are read from files of fastText, word2vec, GloVe and Model2Vec."""

import gzip
import json
import os

import numpy as np
import pytest

import textcat
from textcat.base.errors import TextcatError
from textcat.features import vector_files
from textcat.features.vector_files import read_vectors
from textcat.recipes.recipe import default_recipe

WORDS = ["the", "Bank", "loan", ",", "bank", "piano", "violin"]
NUMBERS = np.random.default_rng(0).normal(size=(7, 5)).round(3)
READ = ["the", "bank", "loan", "piano", "violin"]  # in small letters; of two forms the first


def as_text(header: str = "") -> str:
    lines = (f"{word} {' '.join(map(str, numbers))}\n" for word, numbers in zip(WORDS, NUMBERS, strict=True))
    return header + "".join(lines)


def model2vec(folder, vocabulary, **arrays):
    folder.mkdir()
    header, data = {}, b""
    for name, array in arrays.items():
        kinds = {"<f4": "F32", "<f2": "F16", "<i8": "I64"}
        header[name] = {"dtype": kinds[array.dtype.str], "shape": array.shape}
        header[name]["data_offsets"] = len(data), len(data) + array.nbytes
        data += array.tobytes()
    described = json.dumps(header).encode()
    (folder / "model.safetensors").write_bytes(len(described).to_bytes(8, "little") + described + data)
    (folder / "tokenizer.json").write_text(json.dumps({"model": {"vocab": vocabulary}}), encoding="utf-8")
    return folder


@pytest.mark.parametrize("header", ["", "7 5\n"])
def test_a_text_file_has_a_word_and_its_numbers_per_line(tmp_path, header):
    path = tmp_path / "words.vec"
    path.write_text(as_text(header), encoding="utf-8")
    vectors = read_vectors(str(path))
    assert vectors.words == READ
    values = NUMBERS[[0, 1, 2, 5, 6]] - NUMBERS[[0, 1, 2, 5, 6]].mean(0)
    read = vectors.values.astype(float) * vectors.step
    cosines = (read * values).sum(1) / np.linalg.norm(read, axis=1) / np.linalg.norm(values, axis=1)
    np.testing.assert_allclose(cosines, 1, atol=1e-3)  # rare words count for more, and none points elsewhere
    assert np.linalg.norm(read, axis=1).mean() == pytest.approx(0.94, abs=0.01)
    packed = tmp_path / "words.vec.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    np.testing.assert_array_equal(read_vectors(str(packed)).values, vectors.values)


def test_words_are_those_of_texts_in_normal_form_also_if_their_vowels_are_marks(tmp_path):
    path = tmp_path / "words.vec"
    path.write_text("हिन्दी 1 2\nमी\u200cल 2 1\nﬁnden 3 1\n१ 1 1\n", encoding="utf-8")
    assert read_vectors(str(path)).words == ["हिन्दी", "मील", "finden"]


def test_only_the_first_words_of_a_file_are_read(tmp_path, monkeypatch):
    monkeypatch.setattr(vector_files, "MOST_WORDS", 2)
    path = tmp_path / "words.txt"
    path.write_text(as_text() + "never read\n", encoding="utf-8")
    assert read_vectors(str(path)).words == ["the", "bank"]


@pytest.mark.parametrize("kind", ["WordPiece", "Unigram"])
def test_of_a_model_of_model2vec_the_pieces_that_are_words_are_read(tmp_path, kind):
    pieces = {"WordPiece": ["[PAD]", "bank", "##ing", "Loan"], "Unigram": ["<s>", "▁bank", "ing", "▁Loan"]}[kind]
    vocabulary = [[piece, -1.0] for piece in pieces] if kind == "Unigram" else {p: i for i, p in enumerate(pieces)}
    embeddings = np.random.default_rng(1).normal(size=(4, 3)).astype("<f4")
    vectors = read_vectors(str(model2vec(tmp_path / "plain", vocabulary, embeddings=embeddings)))
    assert vectors.words == ["bank", "loan"]
    mapping, weights = np.array([1, 0, 1, 0]), np.array([1, 1, 1, 3], "<f4")
    shared = model2vec(
        tmp_path / "few", vocabulary, embeddings=embeddings.astype("<f2"), mapping=mapping, weights=weights
    )
    read = read_vectors(str(shared))
    expected = np.array([embeddings[0], 3 * embeddings[0]])  # centred, these two are opposite
    assert read.values[0] @ (expected[0] - expected[1]) > 0
    np.testing.assert_array_equal(read.values[0], -read.values[1])


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("absent.vec", None, "There is no file"),
        ("empty.vec", "", "cannot be read for vectors of words"),
        ("prose.txt", "It was a dark and stormy night.\nIt rained.\n", "could not convert string"),
        ("ragged.vec", "bank 1 2 3\nloan 1 2\n", "line 2 has 2 numbers after its word"),
        ("endless.vec", "bank 1 inf\nloan 1 2\n", "has not two words with finite numbers"),
        ("zero.vec", "bank 0 0\nloan 0 0\n", "has not two words with finite numbers"),
        ("cut.vec.gz", b"\x1f\x8b", "cannot be read"),
        ("damaged.vec.gz", gzip.compress(b"bank 1 2\n" * 999)[:12] + b"\xff" * 30, "cannot be read"),
        ("deep.safetensors", (90_000).to_bytes(8, "little") + b"[" * 90_000, "cannot be read"),
        ("cut.safetensors", b"\xff\xff", "cannot be read"),
    ],
)
def test_a_file_that_has_no_vectors_is_refused(tmp_path, name, content, sentence):
    if content is not None:
        (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(TextcatError, match=sentence):
        read_vectors(str(tmp_path / name))


def test_a_model_knows_its_vectors_by_checksum(tmp_path):
    path = tmp_path / "words.vec"
    path.write_text(as_text(), encoding="utf-8")
    texts = {"music": ("piano piano", "violin"), "money": ("bank loan", "loan")}
    documents = [
        {"id": f"{topic}{i}", "text": text, "topics": [topic]} for topic in texts for i, text in enumerate(texts[topic])
    ]
    recipe = default_recipe().with_settings([f"topics.vectors={path}", "topics.vector_weight=1", "tags.strategy=zero"])
    tagger = textcat.train(documents, recipe, updatable=True)
    textcat.save(tagger, tmp_path / "model")
    assert tagger.facts.recipe.topics.vectors == read_vectors(str(path)).name
    learnt = textcat.learn(tmp_path / "model", [{"id": "new", "text": "bank", "topics": ["money"]}]).tagger
    again = textcat.train([*documents, {"id": "new", "text": "bank", "topics": ["money"]}], recipe)
    np.testing.assert_array_equal(learnt.weights_of("money"), again.weights_of("money"))
    path.write_text(as_text().replace("violin", "fiddle"), encoding="utf-8")
    with pytest.raises(TextcatError, match="not the file of vectors that was named"):
        textcat.learn(tmp_path / "model", [{"id": "newer", "text": "loan", "topics": ["money"]}])


def test_a_file_that_has_changed_is_read_again(tmp_path):
    path = tmp_path / "words.vec"
    path.write_text(as_text(), encoding="utf-8")
    assert read_vectors(str(path)) is read_vectors(str(path))
    path.write_text(as_text().replace("violin", "fiddle"), encoding="utf-8")
    os.utime(path, ns=(1, 1))
    assert read_vectors(str(path)).words == [*READ[:-1], "fiddle"]


def test_a_recipe_names_vectors_by_a_known_name_or_a_path():
    with pytest.raises(TextcatError, match=r"cannot be 'statik'; give none, static or a path, such as '\./"):
        default_recipe().with_settings(["topics.vectors=statik"])


def test_a_folder_without_vectors_is_told(tmp_path):
    with pytest.raises(TextcatError, match=r"The folder .* has no model\.safetensors"):
        read_vectors(str(tmp_path))
