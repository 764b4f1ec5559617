"""Embeddings beside the terms of a pool: the transformer and its naive twin, the ranker, and what is kept."""

import hashlib
import json
import sys
from math import erf, sqrt
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pooch
import pytest
from scipy.sparse import csr_matrix, hstack

from textcat.base.errors import TextcatError
from textcat.recipes.recipe import RankerSettings
from textcat.teaching.evidence import evidence_for
from textcat.teaching.pool import Pool, build_pool, embeddings, open_pool, pool
from textcat.teaching.ranker import WITH_EMBEDDINGS, Ranker
from textcat.teaching.session import Session
from textcat.teaching.simulate import Setting, SimulatedTopic, experiment

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
    made = embeddings.MiniLM(weights, Tokens())
    monkeypatch.setattr(embeddings, "read_minilm", lambda: made)
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


def test_layers_are_activated_by_the_normal_distribution():
    x = np.linspace(-9, 9, 1801, dtype=np.float32)
    naive = [each * (1 + erf(each / sqrt(2))) / 2 for each in x.tolist()]
    assert embeddings.gelu(x) == pytest.approx(naive, abs=1e-6)


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
    found = embeddings.embeddings_of(documents)
    assert found.shape == (40, embeddings.N_TITLE + embeddings.N_TEXT)
    assert found.dtype == np.float32
    assert (found[:, : embeddings.N_TITLE] ** 2).sum(1) == pytest.approx(embeddings.TITLE_PIECES, rel=1e-4)
    assert (found[:, embeddings.N_TITLE :] ** 2).sum(1) == pytest.approx(embeddings.TEXT_PIECES, rel=1e-4)
    assert np.array_equal(found, embeddings.embeddings_of(iter(documents)))
    without = embeddings.embeddings_of([{"title": "", "body": text} for text in TEXTS])  # then the text's beginning
    assert np.array_equal(
        without[:, : embeddings.N_TITLE],
        embeddings.embeddings_of([{"title": t} for t in TEXTS])[:, : embeddings.N_TITLE],
    )


def test_the_ranker_takes_embeddings_as_more_columns():
    generator = np.random.default_rng(0)
    rows = csr_matrix((generator.random((30, 50)) * (generator.random((30, 50)) < 0.2)).astype(np.float32))
    vectors = generator.standard_normal((30, 7)).astype(np.float32)
    settings = RankerSettings(embeddings=0.25, length=0)
    ranker = Ranker(rows, embeddings=vectors, settings=settings)
    wide = Ranker(hstack([rows, csr_matrix(vectors / 2)], "csr", np.float32), settings=RankerSettings(length=0))
    positions, labels = np.arange(10), np.arange(10) % 3 == 0
    weights, wanted = ranker.train(positions, labels), wide.train(positions, labels)
    assert np.array_equal(ranker.scores(weights), wide.scores(wanted))
    assert np.array_equal(weights.dense(50), wanted.dense(57)[:50])
    long = Ranker(rows, embeddings=vectors, settings=RankerSettings(embeddings=1))
    assert np.array_equal(long.factors, Ranker(rows).factors)  # how long a text is, its terms tell
    with pytest.raises(TextcatError, match="was given no embeddings"):
        Ranker(rows, settings=settings)


def test_embeddings_are_kept_beside_a_pool_and_used_by_sessions(model, tmp_path, monkeypatch):
    archive = tmp_path / "archive.jsonl"
    archive.write_text(
        "".join(json.dumps({"id": str(i), "title": t, "body": TEXTS[-i]}) + "\n" for i, t in enumerate(TEXTS))
    )
    made = build_pool(archive, tmp_path / "pool", jobs=1)
    first = made.embeddings()
    (kept,) = (tmp_path / "pool").rglob("embeddings.npz")
    kept.write_bytes(kept.read_bytes()[:-9])  # as a full disk leaves it
    assert np.array_equal(open_pool(tmp_path / "pool").embeddings(), first)
    monkeypatch.setattr(pool, "embeddings_of", None)  # it is not made again
    again = open_pool(tmp_path / "pool", verify=True)
    assert np.array_equal(again.embeddings(), first)
    with Session.create(tmp_path / "session", again, settings=WITH_EMBEDDINGS) as session:
        session.add_topic("cats", description="cat")
        question = session.next("cats")
        session.answer("cats", question.position, "yes")
        assert session.next("cats").position != question.position
        assert evidence_for(session.view, "cats", question.position) is not None  # of terms alone
    with Session.open(tmp_path / "session") as session:
        assert session.next("cats") is not None


def test_more_documents_than_have_views_have_no_embeddings(monkeypatch):
    monkeypatch.setattr(pool, "ALL_UP_TO", 5)
    with pytest.raises(TextcatError, match="up to 5 documents, and the pool has 6"):
        Pool.from_documents(TEXTS[:6]).embeddings()


def test_simulations_tell_embeddings_apart():
    generator = np.random.default_rng(0)
    rows, labels = csr_matrix(generator.random((12, 5), np.float32)), np.arange(12) % 3 == 0
    cases = [SimulatedTopic("c", "t", rows, labels, None, generator.random((12, 3), np.float32)) for _ in range(2)]
    assert cases[0].checksum != cases[1].checksum != SimulatedTopic("c", "t", rows, labels).checksum
    assert len(experiment(cases, [Setting("ours", WITH_EMBEDDINGS)], range(2), n_jobs=1)) == 4


@pytest.fixture
def files(tmp_path, monkeypatch, weights):
    """A folder with a small model, of the checksums that are asked for."""
    head, data = {"__metadata__": {"format": "pt"}}, b""
    for name, value in list(weights.items())[:4]:
        head[name] = {"dtype": "F32", "shape": value.shape, "data_offsets": [len(data), len(data) + value.nbytes]}
        data += value.tobytes()
    text = json.dumps(head).encode()
    contents = {"model.safetensors": len(text).to_bytes(8, "little") + text + data, "tokenizer.json": b"{}"}
    for name, content in contents.items():
        (tmp_path / name).write_bytes(content)
    sums = {name: hashlib.sha256(content).hexdigest() for name, content in contents.items()}
    monkeypatch.setattr(embeddings, "CHECKSUMS", sums)
    tokenizers = SimpleNamespace(Tokenizer=SimpleNamespace(from_str=lambda text: Tokens()))
    monkeypatch.setitem(sys.modules, "tokenizers", tokenizers)
    return tmp_path


def test_the_model_is_read_from_a_named_folder_and_checked(files, monkeypatch, weights):
    monkeypatch.setenv("TEXTCAT_MINILM", str(files))
    table = embeddings.read_minilm.__wrapped__().table
    assert np.array_equal(table, weights["embeddings.word_embeddings.weight"])
    (files / "tokenizer.json").write_bytes(b"{ }")
    with pytest.raises(TextcatError, match=r"tokenizer.json has a wrong checksum .* TEXTCAT_MINILM"):
        embeddings.read_minilm.__wrapped__()
    (files / "model.safetensors").unlink()
    with pytest.raises(TextcatError, match=r"model.safetensors cannot be read \(No such file"):
        embeddings.read_minilm.__wrapped__()


def test_the_model_is_fetched_once_and_what_cannot_be_fetched_is_told(files, tmp_path_factory, monkeypatch, weights):
    monkeypatch.delenv("TEXTCAT_MINILM", raising=False)
    cache = tmp_path_factory.mktemp("cache")
    monkeypatch.setattr(embeddings, "user_cache", lambda: cache)
    fetched = []

    def download(url, target, registry):
        fetched.append(url)
        Path(target).write_bytes((files / url.rpartition("/")[2]).read_bytes())

    monkeypatch.setattr(pooch.core, "choose_downloader", lambda *args, **kwargs: download)
    for _ in range(2):
        table = embeddings.read_minilm.__wrapped__().table
        assert np.array_equal(table, weights["embeddings.word_embeddings.weight"])
    assert [url.rpartition("/")[2] for url in fetched] == ["model.safetensors", "tokenizer.json"]
    (cache / "all-MiniLM-L6-v2" / "model.safetensors").unlink()
    (files / "model.safetensors").write_bytes(b"of somebody else")
    with pytest.raises(TextcatError, match=r"Cannot download https://hugg.*/model.safetensors \(ValueError\)"):
        embeddings.read_minilm.__wrapped__()


def test_without_the_tokenizer_it_is_said_how_to_install_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    with pytest.raises(TextcatError, match=r"pip install 'textcat-margin\[embeddings\]'"):
        embeddings.read_minilm.__wrapped__()
