"""What texts mean, beside the terms of a pool: the transformer and its naive twin, the ranker, and what is kept."""

import hashlib
import json
import zipfile
from math import erf, sqrt
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.sparse import csr_matrix, hstack

from textcat.errors import TextcatError
from textcat.teaching import meaning, pool
from textcat.teaching.pool import Pool, build_pool, open_pool
from textcat.teaching.ranker import WITH_MEANING, Ranker, RankerSettings
from textcat.teaching.session import Session
from textcat.teaching.simulate import Case, Way, study

WORDS = ["the", "cat", "sat", "on", "a", "mat", "dogs", "bark", "at", "night", "rain", "falls"]
TEXTS = [" ".join(WORDS[i % 12] for i in range(k, k + 3 + k % 5)) for k in range(40)]


class Tokens:
    """A tokenizer whose pieces are words; its sentences are framed as MiniLM's are."""

    most = None

    def no_padding(self):
        pass

    def no_truncation(self):
        self.most = None

    def enable_truncation(self, most):
        self.most = most

    def encode_batch(self, texts, add_special_tokens=True):
        pieces = [[WORDS.index(word) + 2 for word in text.split() if word in WORDS] for text in texts]
        if add_special_tokens:
            pieces = [[0, *one[: self.most - 2], 1] for one in pieces]
        return [SimpleNamespace(ids=one) for one in pieces]


@pytest.fixture(scope="module")
def weights():
    generator, width, inner = np.random.default_rng(0), 384, 1536

    def drawn(*shape):
        return (generator.standard_normal(shape, np.float32) * np.float32(0.08)).astype(np.float32)

    found = {f"embeddings.{name}_embeddings.weight": drawn(n, width) for name, n in
             (("word", 20), ("position", 64), ("token_type", 2))}  # fmt: skip
    norms = ["embeddings"]
    for layer in range(6):
        name = f"encoder.layer.{layer}."
        norms += [f"{name}attention.output", f"{name}output"]
        for part, shape in [(f"attention.self.{one}", (width, width)) for one in ("query", "key", "value")] + [
            ("attention.output.dense", (width, width)),
            ("intermediate.dense", (inner, width)),
            ("output.dense", (width, inner)),
        ]:
            found[f"{name}{part}.weight"], found[f"{name}{part}.bias"] = drawn(*shape), drawn(shape[0])
    for name in norms:
        found[f"{name}.LayerNorm.weight"], found[f"{name}.LayerNorm.bias"] = 1 + drawn(width), drawn(width)
    return found


@pytest.fixture
def model(weights, monkeypatch):
    made = meaning._MiniLM(weights, Tokens())
    monkeypatch.setattr(meaning, "_model", lambda: made)
    return made


def naive_sentence(weights, pieces):
    """One text, one head at a time, in double precision."""
    w = {name: value.astype(float) for name, value in weights.items()}

    def normed(x, name):
        x = (x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + 1e-12)
        return x * w[f"{name}.LayerNorm.weight"] + w[f"{name}.LayerNorm.bias"]

    def linear(x, name):
        return x @ w[f"{name}.weight"].T + w[f"{name}.bias"]

    x = np.array([w["embeddings.word_embeddings.weight"][piece] for piece in pieces])
    x += w["embeddings.position_embeddings.weight"][: len(pieces)] + w["embeddings.token_type_embeddings.weight"][0]
    x = normed(x, "embeddings")
    for layer in range(6):
        name = f"encoder.layer.{layer}."
        q, k, v = (linear(x, f"{name}attention.self.{one}") for one in ("query", "key", "value"))
        seen = np.zeros_like(x)
        for head in range(12):
            its = slice(32 * head, 32 * head + 32)
            for i in range(len(pieces)):
                looks = np.exp(k[:, its] @ q[i, its] / sqrt(32))
                seen[i, its] = looks @ v[:, its] / looks.sum()
        x = normed(x + linear(seen, f"{name}attention.output.dense"), f"{name}attention.output")
        h = linear(x, f"{name}intermediate.dense")
        h = h * (1 + np.vectorize(erf)(h / sqrt(2))) / 2
        x = normed(x + linear(h, f"{name}output.dense"), f"{name}output")
    return x.mean(0)


def test_sentences_are_those_of_the_naive_twin(model, weights):
    found = model.sentences(TEXTS)
    for i in (0, 4, 31, 32, 39):  # of two blocks
        (pieces,) = (one.ids for one in Tokens.encode_batch(SimpleNamespace(most=48), [TEXTS[i]]))
        assert found[i] == pytest.approx(naive_sentence(weights, pieces), abs=2e-4)
    assert model.sentences([]).shape == (0, 384)


def test_bags_count_pieces_by_tf_and_idf(model, weights):
    table = weights["embeddings.word_embeddings.weight"].astype(float)
    found = model.bags(["cat cat mat", "cat rain", ""])
    idf = {"cat": np.log(4 / 3) + 1, "mat": np.log(4 / 2) + 1}
    vectors = {word: table[WORDS.index(word) + 2] - table.mean(0) for word in idf}
    wanted = (1 + np.log(2)) * idf["cat"] * vectors["cat"] + idf["mat"] * vectors["mat"]
    assert found[0] == pytest.approx(wanted, abs=1e-5)
    assert not found[2].any()


def test_a_document_has_a_part_of_its_title_and_one_of_its_text(model):
    documents = [{"title": text, "body": TEXTS[-i]} for i, text in enumerate(TEXTS)]
    found = meaning.meaning_of(documents)
    assert found.shape == (40, meaning.N_TITLE + meaning.N_TEXT)
    assert found.dtype == np.float32
    assert (found[:, : meaning.N_TITLE] ** 2).sum(1) == pytest.approx(meaning._TITLE, rel=1e-4)
    assert (found[:, meaning.N_TITLE :] ** 2).sum(1) == pytest.approx(meaning._TEXT, rel=1e-4)
    assert np.array_equal(found, meaning.meaning_of(iter(documents)))
    without = meaning.meaning_of([{"title": "", "body": text} for text in TEXTS])  # then the text's beginning
    assert np.array_equal(
        without[:, : meaning.N_TITLE], meaning.meaning_of([{"title": t} for t in TEXTS])[:, : meaning.N_TITLE]
    )


def test_the_ranker_takes_meaning_as_more_columns():
    generator = np.random.default_rng(0)
    rows = csr_matrix((generator.random((30, 50)) * (generator.random((30, 50)) < 0.2)).astype(np.float32))
    vectors = generator.standard_normal((30, 7)).astype(np.float32)
    settings = RankerSettings(meaning=0.25, length=0)
    ranker = Ranker(rows, meaning=vectors, settings=settings)
    wide = Ranker(hstack([rows, csr_matrix(vectors / 2)], "csr", np.float32), settings=RankerSettings(length=0))
    positions, labels = np.arange(10), np.arange(10) % 3 == 0
    weights, wanted = ranker.train(positions, labels), wide.train(positions, labels)
    assert np.array_equal(ranker.scores(weights), wide.scores(wanted))
    assert np.array_equal(weights.dense(50), wanted.dense(57)[:50])
    long = Ranker(rows, meaning=vectors, settings=RankerSettings(meaning=1))
    assert np.array_equal(long.factors, Ranker(rows).factors)  # how long a text is, its terms tell
    with pytest.raises(TextcatError, match="no vectors of meaning"):
        Ranker(rows, settings=settings)


def test_meaning_is_kept_beside_a_pool_and_used_by_sessions(model, tmp_path, monkeypatch):
    archive = tmp_path / "archive.jsonl"
    archive.write_text(
        "".join(json.dumps({"id": str(i), "title": t, "body": TEXTS[-i]}) + "\n" for i, t in enumerate(TEXTS))
    )
    made = build_pool(archive, tmp_path / "pool", jobs=1)
    first = made.meaning()
    monkeypatch.setattr(pool, "meaning_of", None)  # it is not made again
    again = open_pool(tmp_path / "pool", verify=True)
    assert np.array_equal(again.meaning(), first)
    with Session.create(tmp_path / "session", again, settings=WITH_MEANING) as session:
        session.add_topic("cats", description="cat")
        question = session.next("cats")
        session.answer("cats", question.position, "yes")
        assert session.next("cats").position != question.position
        assert session.evidence("cats", question.position) is not None  # of terms alone
    with Session.open(tmp_path / "session") as session:
        assert session.next("cats") is not None


def test_more_documents_than_have_views_have_no_meaning(monkeypatch):
    monkeypatch.setattr(pool, "ALL_UP_TO", 5)
    with pytest.raises(TextcatError, match="up to 5 of them, and the pool has 6"):
        Pool.from_documents(TEXTS[:6]).meaning()


def test_simulations_tell_meaning_apart():
    generator = np.random.default_rng(0)
    rows, labels = csr_matrix(generator.random((12, 5), np.float32)), np.arange(12) % 3 == 0
    cases = [Case("c", "t", rows, labels, None, generator.random((12, 3), np.float32)) for _ in range(2)]
    assert cases[0].checksum != cases[1].checksum != Case("c", "t", rows, labels).checksum
    assert len(study(cases, [Way("ours", WITH_MEANING)], range(2), n_jobs=1)) == 4


def packed(folder, monkeypatch, data):
    package = folder / "all_minilm_l6_v2"
    package.mkdir()
    with zipfile.ZipFile(package / "model.zip", "w") as archive:
        archive.writestr("model.safetensors", data)
        archive.writestr("tokenizer.json", "{}")
    monkeypatch.setattr(meaning, "find_spec", lambda name: SimpleNamespace(submodule_search_locations=[str(package)]))
    tokenizers = SimpleNamespace(Tokenizer=SimpleNamespace(from_str=lambda text: Tokens()))
    monkeypatch.setitem(__import__("sys").modules, "tokenizers", tokenizers)
    return package / "model.zip"


def test_weights_are_read_from_the_package_and_checked(tmp_path, monkeypatch, weights):
    head, data = {"__metadata__": {"format": "pt"}}, b""
    for name, value in weights.items():
        head[name] = {"dtype": "F32", "shape": value.shape, "data_offsets": [len(data), len(data) + value.nbytes]}
        data += value.tobytes()
        if len(head) > 4:
            break
    text = json.dumps(head).encode()
    whole = len(text).to_bytes(8, "little") + text + data
    path = packed(tmp_path, monkeypatch, whole)
    with pytest.raises(TextcatError, match="other weights"):
        meaning._model.__wrapped__()
    monkeypatch.setattr(meaning, "_SHA256", hashlib.sha256(whole).hexdigest())
    read = meaning._model.__wrapped__()
    assert np.array_equal(read.table, weights["embeddings.word_embeddings.weight"])
    path.write_bytes(b"no archive")
    with pytest.raises(TextcatError, match="install it again"):
        meaning._model.__wrapped__()


def test_without_the_model_it_is_said_how_to_install_it(monkeypatch):
    monkeypatch.setattr(meaning, "find_spec", lambda name: None)
    with pytest.raises(TextcatError, match=r"pip install 'textcat-margin\[meaning\]'"):
        meaning._model.__wrapped__()
