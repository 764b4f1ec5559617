"""The papers' data sets: the real files have the papers' counts, small ones are read right, missing ones are named."""

import bz2
import gzip
import os

import numpy as np
import pytest

from textcat.base.errors import TextcatError
from textcat.papers import datasets
from textcat.papers.datasets import MissingData, load

# Rows, features, positives, and the largest ‖x‖² where it is known: a paper gives R, or attributes are binary.
COUNTS = {
    "sonar": (104, 60, 49, 3.8121**2 - 1),
    "wbc": (683, 9, 239, 917 - 10**2 - 1),
    "wbc-11": (672, 9, 237, 1716 - 30**2),
    "ionosphere": (351, 34, 225, None),
    "votes": (435, 16, 267, 16),
    "tic-tac-toe": (958, 9, 626, 9),
    "german": (1000, 24, 700, None),
    "mushroom": (5644, 125, 3488, 22),
    "adult-1605": (1605, 123, 395, 14),
    "adult-22696": (22696, 123, 5506, 14),
    "adult": (32561, 123, 7841, 14),
    "web-2477": (2477, 300, 72, None),
    "web": (49749, 300, 1479, None),
}
PLATT = [name for name in datasets.DATASET_SOURCES if name.startswith(("adult-", "web-")) and name not in COUNTS]


@pytest.fixture(scope="session")
def real():
    if not os.environ.get("TEXTCAT_DATASETS"):
        pytest.skip("data: the papers' data sets are absent, TEXTCAT_DATASETS is not set to a folder of them")


@pytest.fixture
def own(tmp_path, monkeypatch):
    """An empty folder of data sets, and a user without a cache."""
    monkeypatch.setenv("TEXTCAT_DATASETS", str(tmp_path / "own"))
    monkeypatch.setattr(datasets.fetch, "cache_folder", lambda: tmp_path / "cache" / "corpora")
    (tmp_path / "own").mkdir()
    return tmp_path / "own"


def source(name, shape, positives):
    """What `load` expects of a data set, made small."""
    return {name: datasets.DATASET_SOURCES[name] | {"shape": [*shape], "positives": positives}}


@pytest.fixture
def expect(monkeypatch):
    return lambda *changed: monkeypatch.setattr(
        datasets, "DATASET_SOURCES", datasets.DATASET_SOURCES | source(*changed)
    )


# --- the real files --------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("real")
@pytest.mark.parametrize("name", COUNTS)
def test_a_data_set_has_the_counts_of_the_papers(name):
    if sentence := datasets.missing(name):
        pytest.skip(f"data: {sentence}")
    n_rows, n_features, positives, longest = COUNTS[name]
    dataset = load(name)
    assert dataset.X.shape == (n_rows, n_features)
    assert dataset.X.dtype == np.float64
    assert (dataset.y.dtype, set(dataset.y), np.sum(dataset.y == 1)) == (np.int8, {1, -1}, positives)
    assert np.all(dataset.X.data != 0)
    if longest is not None:
        assert dataset.X.multiply(dataset.X).sum(axis=1).max() == pytest.approx(longest, rel=2e-5)


@pytest.mark.usefixtures("real")
def test_exactly_22_attributes_of_a_mushroom_are_true():
    rows = load("mushroom").X
    assert set(rows.data) == {1.0}
    assert set(np.diff(rows.indptr)) == {22}


@pytest.mark.usefixtures("real")
def test_the_digits_of_usps_have_pixels_from_minus_one_to_one():
    usps = load("usps")
    assert (usps.X.shape, usps.X_test.shape) == ((7291, 256), (2007, 256))
    assert (usps.X.min(), usps.X.max(), usps.X_test.min(), usps.X_test.max()) == (-1, 1, -1, 1)
    assert np.bincount(usps.y).tolist() == [1194, 1005, 731, 658, 652, 556, 664, 645, 542, 644]
    assert np.bincount(usps.y_test).tolist() == [359, 264, 198, 166, 200, 160, 170, 147, 166, 177]


@pytest.mark.usefixtures("real")
@pytest.mark.where_long("to compare 70,000 rows takes seconds")
def test_the_smaller_adult_and_web_sets_are_drawn_from_the_larger_not_their_first_rows():
    for small, large in (("adult-1605", "adult-22696"), ("adult-22696", "adult"), ("web-2477", "web")):
        few, many = load(small), load(large)
        assert few.X[: len(few.y)].tolil().rows.tolist() != many.X[: len(few.y)].tolil().rows.tolist()
        rows = iter(zip(many.X.tolil().rows.tolist(), many.y.tolist(), strict=True))
        assert all(row in rows for row in zip(few.X.tolil().rows.tolist(), few.y.tolist(), strict=True))


# --- reading ---------------------------------------------------------------------------------------------------------


def test_sonar_is_the_marked_mines_and_then_the_marked_rocks(own, expect):
    expect("sonar", (3, 3), 2)
    (own / "sonar.mines").write_text("About *CM00\n\n*CM1:\n{.1 .2\n .3}\n\nCM2:\n{.4 .5 .6}\n*CM3:\n{0 0 1}\n")
    (own / "sonar.rocks").write_text("CR1:\n{.4 .5 .6}\n*CR2:\n{.7 .8 .9}\n")
    sonar = load("sonar")
    assert sonar.X.toarray().tolist() == [[0.1, 0.2, 0.3], [0, 0, 1], [0.7, 0.8, 0.9]]
    assert sonar.y.tolist() == [1, 1, -1]


def test_wbc_leaves_rows_with_a_missing_value_and_the_ids_out(own, expect):
    expect("wbc", (2, 2), 1)
    (own / "breast-cancer-wisconsin.data").write_text("7,5,1,2\n8,?,1,4\n9,0,10,4\n")
    wbc = load("wbc")
    assert wbc.X.toarray().tolist() == [[5, 1], [0, 10]]
    assert wbc.X.nnz == 3
    assert wbc.y.tolist() == [-1, 1]


@pytest.mark.parametrize(
    ("name", "file", "text", "rows", "labels"),
    [
        ("ionosphere", "ionosphere.data", "1,-.5,g\n0,.25,b\n", [[1, -0.5], [0, 0.25]], [1, -1]),
        ("votes", "house-votes-84.data", "republican,y,?\ndemocrat,n,y\n", [[1, 0], [-1, 1]], [-1, 1]),
        ("tic-tac-toe", "tic-tac-toe.data", "x,b,positive\no,x,negative\n", [[1, 0], [-1, 1]], [1, -1]),
        ("german", "german.data-numeric", "  1  6  2 \n 4 0   1\n", [[1, 6], [4, 0]], [-1, 1]),
        ("covertype", "covtype.data", "3000,1,2\n500,0,1\n", [[3.0, 0.001], [0.5, 0]], [-1, 1]),
    ],
)
def test_the_tables_of_uci_are_read_as_the_papers_code_them(own, expect, name, file, text, rows, labels):
    expect(name, (2, 2), 1)
    (own / file).write_text(text)
    assert load(name).X.toarray().tolist() == rows
    assert load(name).y.tolist() == labels


def test_a_mushroom_has_a_column_for_every_value_of_every_attribute(own, expect):
    expect("mushroom", (1, 125), 1)
    missing = "x" * 10 + "?" + "x" * 11
    (own / "agaricus-lepiota.data").write_text(f"p,{','.join(missing)}\ne,{','.join('bfntafcbkebssnnpwopkag')}\n")
    values = datasets.DATASET_SOURCES["mushroom"]["options"]["values"]
    assert (len(values), sum(map(len, values))) == (22, 125)
    row = load("mushroom").X.toarray()[0]
    assert np.flatnonzero(row)[:4].tolist() == [0, 6, 10, 20]
    assert row.sum() == 22


def test_the_vectors_of_rcv1_are_joined_with_the_topics_by_document(own, expect):
    expect("rcv1-c11", (2, 47236), 1)
    (own / "lyrl2004_vectors_test_pt0.dat").write_text("26151  2:.5 47236:.25\n26152  1:1\n")
    (own / "rcv1-v2.topics.qrels").write_text("C11 26152 1\nCCAT 26151 1\nC11 2 1\n")
    rcv1 = load("rcv1-c11")
    assert rcv1.X[[0, 0, 1], [1, 47235, 0]].tolist() == [0.5, 0.25, 1]
    assert rcv1.y.tolist() == [-1, 1]


@pytest.mark.parametrize(("suffix", "opened"), [("", open), (".bz2", bz2.open), (".gz", gzip.open)])
@pytest.mark.parametrize("folder", ["", "libsvm"])
def test_a_file_may_be_packed_and_lie_in_a_folder_of_its_kind(own, expect, suffix, opened, folder):
    expect("adult-3185", (2, 123), 1)
    (own / folder).mkdir(exist_ok=True)
    with opened(own / folder / f"a3a{suffix}", "wb") as file:
        file.write(b"+1 3:1 123:1 \n-1 \n")
    dataset = load("adult-3185")
    assert dataset.X[[0, 0], [2, 122]].tolist() == [1, 1]
    assert dataset.y.tolist() == [1, -1]


def test_a_file_may_lie_in_the_cache(own, expect):
    expect("adult-3185", (1, 123), 1)
    cache = datasets.folders()[1]
    cache.mkdir(parents=True)
    (cache / "a3a").write_text("+1 1:1\n")
    assert load("adult-3185").y.tolist() == [1]


def test_usps_is_read_from_either_of_its_two_forms(own, expect):
    expect("usps", (11, 256), 9)
    (own / "usps").write_text("".join(f"{digit + 1} 1:-1 256:{digit / 10}\n" for digit in range(10)))
    (own / "usps.t").write_text("10 2:.5\n")
    as_text = load("usps")
    x, x_test = np.full((10, 256), 0.5, np.float32), np.full((1, 256), 0.5, np.float32)
    x[:, 0], x[:, 255], x_test[0, 1] = 0, (1 + np.arange(10) / 10) / 2, 0.75
    np.savez(own / "usps.npz", train_x=x, train_y=np.arange(10), test_x=x_test, test_y=[9])
    as_arrays = load("usps")
    assert as_text.y.tolist() == as_arrays.y.tolist() == list(range(10))
    assert as_text.y_test.tolist() == as_arrays.y_test.tolist() == [9]
    np.testing.assert_allclose(as_arrays.X.toarray(), as_text.X.toarray(), atol=1e-7)
    np.testing.assert_allclose(as_arrays.X_test.toarray(), as_text.X_test.toarray(), atol=1e-7)


# --- what is not there, or not right ---------------------------------------------------------------------------------


@pytest.mark.parametrize("name", datasets.DATASET_SOURCES)
def test_a_data_set_that_is_missing_is_named_with_its_file_and_where_to_put_it(own, tmp_path, name):
    with pytest.raises(MissingData, match=rf"The data set {name} needs the file \S+: put it") as raised:
        load(name)
    assert datasets.missing(name) == str(raised.value)
    for part in (
        "https://",
        "the folder that the variable TEXTCAT_DATASETS names",
        str(tmp_path / "cache" / "datasets"),
    ):
        assert part in str(raised.value)
    assert "\n" not in str(raised.value)


def test_without_a_folder_of_ones_own_the_cache_is_searched_and_named_as_seen_from_home(own, monkeypatch):
    monkeypatch.delenv("TEXTCAT_DATASETS")
    monkeypatch.setattr(datasets.Path, "home", lambda: own.parent)
    with pytest.raises(MissingData, match=r"names or into ~/cache/datasets\.$"):
        load("sonar")


def test_a_corpus_that_is_missing_is_named_with_how_to_fetch_it(own, monkeypatch):
    monkeypatch.delenv("TEXTCAT_CORPORA", raising=False)
    with pytest.raises(MissingData, match=r"`textcat corpora fetch reuters21578` downloads it\. Or put reuters21"):
        datasets.corpus("reuters21578")
    assert "TEXTCAT_CORPORA" in datasets.missing("reuters21578")
    assert "apply as https://trec.nist.gov" in datasets.missing("rcv1")


def test_a_corpus_that_ships_is_never_missing(own):
    assert datasets.missing("newswire") is None
    assert datasets.corpus("newswire").name == "newswire"


def test_there_is_no_data_set_of_another_name():
    with pytest.raises(TextcatError, match="no data set 'iris'; there are sonar, wbc,"):
        load("iris")


def test_a_file_with_other_counts_is_refused(own):
    (own / "a3a").write_text("+1 1:1\n")
    with pytest.raises(
        TextcatError, match=r"a3a is not the papers' adult-3185: it has 1 rows .* should have 3185 of 123"
    ):
        load("adult-3185")


@pytest.mark.parametrize("text", ["1,2,3\n", "a,y,n\n", "republican,z\n", "democrat,y\nrepublican\n", "\xff"])
def test_a_file_of_something_else_is_refused_in_a_sentence(own, text):
    (own / "house-votes-84.data").write_text(text, encoding="latin-1")
    with pytest.raises(TextcatError, match=r"house-votes-84\.data is damaged or no file of votes .*: get it anew from"):
        load("votes")


def test_a_damaged_archive_is_refused_in_a_sentence(own):
    (own / "a3a.bz2").write_bytes(bz2.compress(b"+1 1:1\n" * 99)[:-9])
    with pytest.raises(TextcatError, match=r"a3a\.bz2 is damaged or no file of adult-3185"):
        load("adult-3185")
    (own / "usps.npz").write_bytes(b"PK")
    with pytest.raises(TextcatError, match=r"usps\.npz is damaged or no file of usps .*: get it anew from"):
        load("usps")


def test_every_size_of_platts_subsets_is_known():
    assert len(PLATT) == 12
    assert {"adult-3185", "adult-6414", "adult-11220", "adult-16100", "web-4912", "web-9888", "web-24692"} <= set(PLATT)
