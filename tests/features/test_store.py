"""Rows come back from disk as they were written, whole or not at all, and train what they train in memory."""

import contextlib
import errno
import hashlib
import itertools
import json
import os
import pickle
import shutil
import signal
import subprocess
import sys

import joblib
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from manifests import rewrite
from stored_rows import rows_to_store

import textcat
from textcat import cli
from textcat.features.store import StoreError, open_rows, write_rows
from textcat.margin import primal, rules
from textcat.margin.problems import Problem
from textcat.margin.solve import solve

TEXTS = [(topic, *("common", "words", f"own{topic}", f"odd{k}")) for k in range(12) for topic in ("wheat", "gold")]
VALUES = st.sampled_from([0.0, 0.0, 0.0, 1.0, -0.5, 0.1, 3e-30])


def some_labels(n=300, topics=20):
    return sp.csr_matrix(np.random.default_rng(1).random((n, topics)) < np.linspace(0.05, 0.4, topics), dtype=np.int8)


def pieces(X, *sizes):
    bounds = np.cumsum([0, *sizes])
    return [X[a:b] for a, b in itertools.pairwise(bounds)] + [X[bounds[-1] :]]


@pytest.fixture
def folder(tmp_path, X):
    write_rows(tmp_path / "rows", pieces(X, 100, 0, 37))
    return tmp_path / "rows"


def facts(learner):
    """Everything that training found, to the bit."""
    return (
        learner.coef_.tobytes(), learner.intercept_.tobytes(), [rows.tobytes() for rows in learner.support_],
        learner.margin_.tobytes(), learner.n_epochs_.tolist(), learner.n_updates_.tolist(),
    )  # fmt: skip


# --- round trip ---
@given(
    st.lists(st.integers(0, 4), min_size=1, max_size=5),
    st.integers(0, 6),
    st.sampled_from([np.float32, np.float64]),
    st.data(),
)
def test_rows_come_back_as_they_were_written(tmp_path_factory, sizes, n_features, dtype, data):
    blocks = [sp.csr_matrix(data.draw(arrays(dtype, (size, n_features), elements=VALUES))) for size in sizes]
    folder = tmp_path_factory.mktemp("store") / "rows"
    together = sp.vstack(blocks, format="csr")
    for rows in (write_rows(folder, blocks), open_rows(folder)):
        assert rows.shape == together.shape
        assert rows.dtype == dtype
        assert (rows[:] != together).nnz == 0
        assert rows.indptr.tolist() == together.indptr.tolist()
        assert [block.toarray().tolist() for block in rows.blocks(2)] == [
            together[i : i + 2].toarray().tolist() for i in range(0, together.shape[0], 2)
        ]


def test_entries_out_of_order_or_given_twice_are_written_as_their_sum_in_order(tmp_path):
    X = sp.csr_matrix(([1.0, 2.0, 3.0, 4.0], [2, 0, 2, 1], [0, 3, 4]), shape=(2, 3))
    rows = write_rows(tmp_path / "rows", [X])
    assert rows.indices.tolist() == [0, 2, 1]
    assert rows.data.tolist() == [2, 4, 4]
    assert X.indices.tolist() == [2, 0, 2, 1], "the caller's rows are left as they are"


def test_the_arrays_are_numpy_files_that_are_mapped_and_not_read(folder, X):
    rows = open_rows(folder)
    assert all(isinstance(array, np.memmap) for array in (rows.data, rows.indices, rows.indptr))
    assert np.load(folder / "data.npy").tolist() == X.data.tolist()
    assert isinstance(rows[10:20].data.base, np.memmap | np.ndarray)
    assert len(rows) == 300
    assert "300 rows of 200 features" in repr(rows)


def test_a_store_takes_the_place_of_an_older_one_and_of_nothing_else(folder, X, tmp_path):
    assert len(write_rows(folder, [X[:5]])) == 5
    assert os.listdir(tmp_path) == ["rows"]
    (folder / "notes.txt").write_text("mine")
    with pytest.raises(
        StoreError, match=r"The store of rows .*rows is not replaced, for notes\.txt would be lost: name another folder"
    ):
        write_rows(folder, [X])
    assert (folder / "notes.txt").exists()


@pytest.mark.parametrize(
    ("blocks", "said"),
    [
        ([], "no block of rows"),
        ([np.zeros((2, 2))], "Block 0 of rows is ndarray"),
        ([sp.csc_matrix((2, 2), dtype=np.float32)], "Block 0 of rows is csc of float32"),
        ([sp.csr_matrix((2, 2), dtype=int)], "csr of int64"),
        (
            [rows_to_store(), rows_to_store(d=201)],
            "Block 1 of rows has 201 features in float32, and those before it 200",
        ),
        ([rows_to_store(), rows_to_store(dtype=np.float64)], "200 features in float64"),
        ([sp.csr_matrix([[1.0, np.nan]])], "not finite"),
    ],
)
def test_blocks_that_do_not_make_rows_are_refused_and_nothing_is_left(tmp_path, blocks, said):
    with pytest.raises(StoreError, match=said):
        write_rows(tmp_path / "rows", blocks)
    assert os.listdir(tmp_path) == []


def test_an_error_of_what_gives_the_blocks_is_passed_on_and_nothing_is_left(tmp_path, X):
    def blocks():
        yield X
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        write_rows(tmp_path / "rows", blocks())
    assert os.listdir(tmp_path) == []


def test_a_full_disk_is_told_and_the_older_store_stays(folder, X, monkeypatch):
    def full(descriptor):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    before = open_rows(folder).data.tolist()
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(StoreError, match=r"Cannot write rows to .*: No space left on device"):
        write_rows(folder, [X[:7]])
    assert open_rows(folder).data.tolist() == before
    assert os.listdir(folder.parent) == ["rows"]


WRITER = """
from textcat.lean_imports import keep_imports_lean
keep_imports_lean()  # as the command does: it saves a second
import sys, itertools, scipy.sparse as sp
from textcat.features.store import write_rows
def blocks():
    for k in itertools.count():
        print(k, flush=True)
        yield sp.random(500, 100, 0.1, format="csr", dtype="float32", random_state=k)
write_rows(sys.argv[1], blocks())
"""


@pytest.mark.parametrize("there_before", [False, True])
def test_a_writer_that_is_killed_leaves_no_half_store(tmp_path, X, there_before):
    folder = tmp_path / "rows"
    if there_before:
        write_rows(folder, [X])
    with subprocess.Popen([sys.executable, "-c", WRITER, folder], stdout=subprocess.PIPE, text=True) as writer:
        while int(writer.stdout.readline()) < 20:
            pass
        writer.send_signal(signal.SIGKILL)
    assert folder.exists() == there_before
    if there_before:
        assert (open_rows(folder)[:] != X).nnz == 0
    else:
        with pytest.raises(StoreError, match="is no store of rows"):
            open_rows(folder)


# --- damage ---
def _cut(path):
    path.write_bytes(path.read_bytes()[:-1])


def _turn_a_bit(path):
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)


def _lengthen(path):
    path.write_bytes(path.read_bytes() + b"\0" * 8)


def _empty(path):
    path.write_bytes(b"")


def _of_other_numbers(path):
    np.save(path, np.load(path).astype(np.float16))


ARRAYS = ("data.npy", "indices.npy", "indptr.npy")


@pytest.mark.parametrize(
    ("damage", "part"),
    [
        *itertools.product([os.remove, _cut, _turn_a_bit, _lengthen, _empty], [*ARRAYS, "manifest.json"]),
        *itertools.product([_of_other_numbers], ARRAYS),
    ],
)
def test_a_part_that_is_missing_or_changed_is_told_in_a_sentence(folder, part, damage):
    damage(folder / part)
    with pytest.raises(StoreError, match=r"damaged|is no store of rows"):
        open_rows(folder)


ODD = (None, True, -1, 0, 2, 2**40, 2**70, 0.5, float("nan"), "", "a", [], [1], {}, "<f4", "|O")


def _with_change(entries, draw):
    """Return the entries of a manifest with another value in one place."""
    if isinstance(entries, dict | list) and entries and draw(st.integers(0, 5)):
        keys = list(entries) if isinstance(entries, dict) else range(len(entries))
        key = draw(st.sampled_from([key for key in keys if key != "sum"] or [0]))
        entries[key] = _with_change(entries[key], draw)
        return entries
    return draw(st.sampled_from(ODD))


def _change_file(path, draw):
    """Change some bytes of a file, more often of its beginning, or its length."""
    content = bytearray(path.read_bytes())
    place = draw(st.one_of(st.integers(0, min(200, len(content) - 1)), st.integers(0, len(content) - 1)))
    put = draw(st.one_of(st.binary(max_size=9), st.sampled_from([b"O", b"f8", b"-1", b"2**99", b"(,", b"{", b"'"])))
    content[place : place + len(put)] = put
    path.write_bytes(content[: place + len(put)] if draw(st.integers(0, 9)) == 0 else content)


@pytest.fixture(scope="module")
def small_store(tmp_path_factory):
    return write_rows(tmp_path_factory.mktemp("small") / "rows", [rows_to_store(n=30, d=20)]).folder


@given(st.data())
def test_any_change_is_told_in_a_sentence_or_the_rows_can_be_used(small_store, tmp_path_factory, data):
    folder = shutil.copytree(small_store, tmp_path_factory.mktemp("store") / "rows")
    manifest, part = folder / "manifest.json", data.draw(st.sampled_from([*ARRAYS, "manifest.json"]))
    if part == "manifest.json" and data.draw(st.booleans()):
        manifest.write_text(json.dumps(_with_change(json.loads(manifest.read_text()), data.draw)))
    else:
        _change_file(folder / part, data.draw)
    if data.draw(st.booleans()):  # the sums made to fit, by someone who wants it to be read
        with contextlib.suppress(AttributeError, KeyError, TypeError, ValueError):
            entries = json.loads(manifest.read_text())
            if part in ARRAYS:
                _, _, values = (folder / part).read_bytes().partition(b"\n")
                entries["sums"][part.removesuffix(".npy")] = hashlib.sha256(values).hexdigest()
            rewrite(folder, **entries)
    with contextlib.suppress(StoreError):
        rows = open_rows(folder)
        assert len(rows[:].indptr) == len(rows) + 1
        with np.errstate(all="ignore"):
            solve(rows, [Problem(np.arange(min(1, len(rows)), dtype=np.int32), rules.PAUM(1, 50), max_epochs=3)])


@pytest.mark.parametrize("n_features", [-1, 2**31, 2**40, 2**70])
def test_a_number_of_features_that_no_rows_can_have_is_told(small_store, tmp_path, n_features):
    folder = shutil.copytree(small_store, tmp_path / "rows")
    entries = json.loads((folder / "manifest.json").read_text())
    entries |= {"shape": [entries["shape"][0], n_features]}
    rewrite(folder, **entries)
    with pytest.raises(StoreError, match=f"they are no 30 rows of {n_features} features"):
        open_rows(folder)


@pytest.mark.parametrize("offsets", [[0, 2, 1, 3], [1, 2, 3, 3], [0, 1, 2, 2], [0, -5, 2, 3], [0, 1, 3], [0, 9, 2, 3]])
def test_offsets_are_checked_even_if_nothing_is_verified(tmp_path, offsets):
    write_rows(tmp_path / "rows", [sp.csr_matrix(np.eye(3))])
    np.save(tmp_path / "rows" / "indptr.npy", np.array(offsets, np.int64))
    with pytest.raises(StoreError, match="damaged, it cannot be read"):
        open_rows(tmp_path / "rows", verify=False)


@pytest.mark.parametrize("version", [2, 4])
def test_a_store_of_another_format_is_refused(folder, version):
    manifest = folder / "manifest.json"
    manifest.write_text(manifest.read_text().replace('"format": 3', f'"format": {version}'))
    with pytest.raises(StoreError, match=rf"another version .* format {version} instead of 3: write the rows again"):
        open_rows(folder)


def test_columns_that_do_not_ascend_are_noticed_even_if_nothing_was_verified(folder):
    indices = np.load(folder / "indices.npy", mmap_mode="r+")
    indices[:2] = indices[1::-1]
    indices.flush()
    with pytest.raises(ValueError, match="the columns of row 0 of X must ascend, from 0 to 199"):
        solve(open_rows(folder, verify=False), [Problem(np.array([0], np.int32), rules.PAUM(1, 50))])


# --- training ---
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("settings_", [{}, {"random_state": 3, "mini_epochs": 2}, {"rho": "R", "n_jobs": 2}])
def test_training_from_disk_is_training_in_memory_to_the_bit(tmp_path, dtype, settings_, monkeypatch):
    monkeypatch.setattr("textcat.margin.primal.LARGE_BYTES", 100)  # so small: everything goes to files
    X, Y = rows_to_store(dtype=dtype), some_labels()
    rows = write_rows(tmp_path / "rows", pieces(X, 1, 200))
    in_memory = textcat.PAUM(tau_neg=1, tau_pos=50, **settings_).fit(X, Y)
    from_disk = textcat.PAUM(tau_neg=1, tau_pos=50, **settings_).fit(rows, Y)
    assert isinstance(from_disk.coef_, np.memmap)
    assert facts(from_disk) == facts(in_memory)
    assert from_disk.n_features_in_ == 200
    np.testing.assert_array_equal(from_disk.decision_function(rows), in_memory.decision_function(X))
    assert sorted(os.listdir(tmp_path / "rows")) == ["data.npy", "indices.npy", "indptr.npy", "manifest.json"]


@pytest.mark.parametrize("limits", [{}, {"NARROW_COLUMNS": 5}, {"N_WARM": 4, "FEW_COLUMNS": 8}])
@pytest.mark.parametrize("seed", [None, 1])
def test_however_rows_are_arranged_the_solution_is_the_same(monkeypatch, X, limits, seed):
    Y = some_labels().tocsc()
    problems = [
        Problem(np.sort(Y[:, [k]].indices), rules.PAUM(1, 50), lambda_=1.0, mini_epochs=k % 3) for k in range(20)
    ]
    expected = solve(X, problems, seed=seed, margins=True)
    for name, value in limits.items():
        monkeypatch.setattr(primal, name, value)
    kinds = primal.arrange_rows(primal.read_rows(X)).arrays
    assert ("cold" in kinds, "wide" in kinds) == ("N_WARM" in limits, "NARROW_COLUMNS" in limits)
    for lanes in (1, 16):
        found = solve(X, problems, seed=seed, margins=True, lanes=lanes)
        assert [s.weights.tobytes() for s in found] == [s.weights.tobytes() for s in expected]
        assert [s.alpha.tobytes() for s in found] == [s.alpha.tobytes() for s in expected]
        assert [s.margin for s in found] == [s.margin for s in expected]


@pytest.mark.parametrize("backend", ["threading", "loky"])
def test_processes_map_the_rows_from_disk_themselves(folder, X, backend):
    Y = some_labels()
    with joblib.parallel_config(backend=backend, n_jobs=2):
        found = textcat.PAUM(tau_neg=1, tau_pos=50).fit(open_rows(folder), Y)
    assert facts(found) == facts(textcat.PAUM(tau_neg=1, tau_pos=50).fit(X, Y))


def test_rows_on_disk_are_pickled_as_their_folder(folder, X):
    rows = open_rows(folder)
    pickled = pickle.dumps(rows)
    assert len(pickled) < 1000
    assert (pickle.loads(pickled)[:] != X).nnz == 0
    write_rows(folder, [X[:9]])
    with pytest.raises(StoreError, match="not those that were there before"):
        pickle.loads(pickled)


def test_learners_on_a_kernel_do_not_take_rows_on_disk(folder):
    with pytest.raises(ValueError, match="rows on disk are for learners without a kernel"):
        textcat.PAM(kernel="rbf").fit(open_rows(folder), some_labels())


# --- the command ---
@pytest.mark.parametrize("recipe", ["default", "paum"])  # with descriptions of topics, and without
def test_a_tagger_trained_from_disk_is_the_one_trained_in_memory(tmp_path, recipe):
    corpus, chosen = textcat.open_corpus("newswire"), textcat.read_recipe(recipe)
    in_memory = textcat.train(corpus, chosen)
    from_disk = textcat.train(corpus, chosen, rows_dir=tmp_path / "rows")
    assert from_disk.decisions.thresholds.tobytes() == in_memory.decisions.thresholds.tobytes()
    stored = in_memory.scorer.arrays()
    for name, array in from_disk.scorer.arrays().items():
        assert array.tobytes() == stored.pop(name).tobytes()
    assert not stored
    assert from_disk.facts.per_topic == in_memory.facts.per_topic
    assert len(open_rows(tmp_path / "rows")) >= len(corpus.train)


def test_the_command_keeps_rows_on_disk_also_to_cross_validate(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    lines = [f'{{"text": "{" ".join(words)}", "topics": ["{words[0]}"]}}' for words in TEXTS]
    (tmp_path / "own.jsonl").write_text("\n".join(lines))
    printed = []
    for more in ([], ["--rows-dir", "rows"]):
        monkeypatch.setattr(sys, "argv", ["textcat", "train", "own.jsonl", "--out", "model", "--force", *more])
        with contextlib.suppress(SystemExit):
            cli.main()
        printed.append(capsys.readouterr().out.partition("stage")[0])
    assert "mean average precision" in printed[0]
    assert printed[0] == printed[1]
    assert sorted(os.listdir(tmp_path)) == ["model", "own.jsonl", "rows"]


def test_a_folder_that_is_no_store_is_not_written_over(tmp_path, monkeypatch, capsys):
    (tmp_path / "thesis.txt").write_text("")
    monkeypatch.setattr(
        sys, "argv", ["textcat", "train", "newswire", "--out", str(tmp_path / "model"), "--rows-dir", str(tmp_path)]
    )
    with pytest.raises(SystemExit):
        cli.main()
    assert "exists and is no store of rows: name another folder." in capsys.readouterr().err


@pytest.mark.parametrize("n", [0, 1, 300])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_left_out_rows_on_disk_are_scored_as_in_memory(tmp_path, monkeypatch, n, dtype):
    monkeypatch.setattr("textcat.margin.primal.LARGE_BYTES", 0)
    X, labels = rows_to_store(dtype=dtype)[:n], some_labels()[:n].tocsc()
    rows = write_rows(tmp_path / "rows", [X])
    out = np.arange(0, n, 3, dtype=np.int32)
    problems = [
        Problem(np.setdiff1d(labels[:, [k]].indices, out).astype(np.int32), rules.PAUM(1, 50), left_out=left_out)
        for k in range(18)
        for left_out in (out, out[::-1])
    ]
    expected, found = (solve(some, problems, margins=True) for some in (X, rows))
    assert [s.weights.tobytes() for s in found] == [s.weights.tobytes() for s in expected]
    assert [s.held_out.tobytes() for s in found] == [s.held_out.tobytes() for s in expected]
    assert str([s.margin for s in found]) == str([s.margin for s in expected])
