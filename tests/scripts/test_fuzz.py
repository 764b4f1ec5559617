"""Whatever bytes a reader or the loader of models is given, it reads them whole or says in a sentence why not."""

import gc
import gzip
import io
import json
import os
import shutil
import zipfile
from contextlib import suppress
from functools import cache

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest
import zstandard
from cases import every
from fuzzing import checks, models
from fuzzing.targets import TARGETS
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from textcat.base.errors import TextcatError
from textcat.base.journal import journal_line, read_journal
from textcat.corpus.cards import read_card
from textcat.model.storage import load
from textcat.reading import Block, ByteStream, InputSettings, LabelSettings, Rejection, formats, read_batches
from textcat.reading.streams import LookAhead
from textcat.recipes.recipe import read_recipe

EXAMPLES = settings(
    max_examples=100 if "TEXTCAT_LONG" in os.environ else 8,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=list(HealthCheck),
)


@cache
def seeds_of(name):
    return list(TARGETS[name].seeds())


@st.composite
def changed(draw, name):
    """A valid input with some of its bytes taken out, doubled, replaced, or words of its format put in."""
    data, words = draw(st.sampled_from(seeds_of(name))), [*TARGETS[name].words, b""]
    for _ in range(draw(st.integers(0, 3))):
        first, last = sorted(draw(st.tuples(st.integers(0, len(data)), st.integers(0, len(data)))))
        new = draw(st.sampled_from(words) | st.binary(max_size=4) | st.just(data[first:last] * 2))
        data = data[:first] + new + data[min(last, first + draw(st.sampled_from((0, 1, 1000)))) :]
    return data


@pytest.mark.sampled
@pytest.mark.parametrize("name", TARGETS)
def test_every_valid_input_passes(name):
    seeds = seeds_of(name)
    many = len(seeds) > 100 and "TEXTCAT_LONG" not in os.environ
    for seed in seeds[:: 5 if many else 1]:
        TARGETS[name].check(seed)


@pytest.mark.sampled
@every("name", TARGETS)
def test_any_bytes_are_read_or_refused(name):
    @EXAMPLES
    @given(st.binary(max_size=300))
    def holds(data):
        TARGETS[name].check(data)

    holds()


@pytest.mark.sampled
@pytest.mark.parametrize("name", TARGETS)
def test_changed_inputs_are_read_or_refused(name):
    @EXAMPLES
    @given(changed(name))
    def holds(data):
        TARGETS[name].check(data)

    holds()


# --- what fuzzing has found ------------------------------------------------------------------------------------------


@every(
    "name, data",
    [
        ("jsonl", b'\r\x00{"text": "a"}\r{"text": "b"}'),  # carriage returns alone end lines
        ("docx", b"-/\x01\x00\x00\x00:\x00\xd0>\x11\xe0"),  # bytes of a file of Word are in no encoding
        ("warc", b"\x0f\x00\x1f\x8b\x08WARC/1.0\r\n\r\n"),  # what looks like gzip is refused from some byte on
        ("array", b'\x0f\x00[{"text": "a"}]\xef\xbb\xbf'),  # a byte order mark may stand behind an array
    ],
)
def test_checks_that_were_too_strict_hold(name, data):
    TARGETS[name].check(data)


DEEP = "[" * 100_000
LONG = "9" * 5000


def test_halves_of_surrogate_pairs_do_not_pass_as_names_of_zones():
    block = Block("a", "jsonl", rb'{"zones": {"ti\ud800tle": "Tin"}}')
    (record,) = formats.block_records(block, InputSettings(labels=LabelSettings()))
    assert record.zones == {"ti\ufffdtle": "Tin"}


@pytest.mark.parametrize("read", [read_card, read_recipe])
@pytest.mark.parametrize("value", [DEEP, LONG])
def test_toml_that_its_parser_gives_up_on_is_refused(read, value, tmp_path):
    path = tmp_path / "a.toml"
    path.write_text(f"a = {value}")
    with pytest.raises(TextcatError, match="not valid TOML"):
        read(path)


def test_a_journal_ends_before_a_line_of_brackets_within_brackets(tmp_path):
    path = tmp_path / "journal"
    path.write_bytes(journal_line({"model": "a"}))
    with path.open("ab") as file:
        file.write(f"{DEEP}\n".encode())
    assert read_journal(path).lines == [{"model": "a"}]


def zipped(*files):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files:
            archive.writestr(name, data)
    return buffer.getvalue()


def test_what_is_read_of_zips_in_zips_grows_from_piece_to_piece_and_is_the_same_when_gone_on_with():
    inner = zipped(("b.txt", b"gold " * 5000), ("c.txt", b"tin"))
    outer = zipped(("in.zip", inner), ("../up.txt", b"no"), ("d.txt", b"a"), ("on.zip", inner))
    how = InputSettings(block_bytes=1)
    batches, found = checks.check_sources([checks.source("a.zip", outer, how)], how)
    assert len(found) == len(batches) == 6
    assert [batch.read for batch in batches] == sorted(batch.read for batch in batches)
    assert batches[-1].read == len(outer)


def test_what_is_read_of_a_pipe_is_not_forgotten_where_it_breaks_off():
    data, how = gzip.compress(b"tin\n" * 9)[:-4], InputSettings(lines=True, block_bytes=1)
    batches, _ = checks.check_sources([checks.source("a.txt.gz", data, how, way=2)], how)
    assert batches[-1].read == len(data)


BOMB, CUT_OFF = zstandard.compress(bytes(40 << 20)), zstandard.compress(b"id,text\n1,tin\n" * 9)[:-2]


def test_a_group_of_parquet_that_gives_fewer_rows_than_it_has_is_no_end_of_the_group():
    sink = io.BytesIO()
    table = pyarrow.table({"text": ["Tin", "Gold", "Wheat", "Corn"]})
    pyarrow.parquet.write_table(table, sink, row_group_size=2, compression="none", use_dictionary=False)
    data = sink.getvalue()
    data = data[:5] + b"\x02" + data[6:]  # what the first page holds, no longer values
    _, found = checks.check_sources([checks.source("a.parquet", data, InputSettings())], InputSettings())
    (rejection,) = found
    assert "group 1 has 0 rows where it should have 2" in rejection.reason


def test_groups_of_parquet_that_have_less_than_no_rows_are_damaged():
    sink = io.BytesIO()
    pyarrow.parquet.write_table(pyarrow.table({"text": ["Tin", "Gold", "Wheat", "Corn"]}), sink, row_group_size=2)
    data = sink.getvalue()
    # Two rows are written as 4, and less than none as 3; which of the fours it is, the reader tells.
    fours = [i for i, byte in enumerate(data) if byte == 4]
    changed = [data[:i] + b"\x03" + data[i + 1 :] for i in fours]
    (data,) = [each for each in changed if _sizes_of_groups(each) == [2, -2]]
    _, found = checks.check_sources([checks.source("a.parquet", data, InputSettings())], InputSettings())
    assert "damaged" in found[-1].reason


def _sizes_of_groups(data):
    with suppress(Exception):
        metadata = pyarrow.parquet.read_metadata(io.BytesIO(data))
        return [metadata.row_group(i).num_rows for i in range(metadata.num_row_groups)]


@every("form", ["jsonl", "text", "csv", "tar", "zip", "parquet"])
@every("data", [BOMB, CUT_OFF])
def test_what_breaks_off_is_let_go_of_at_once(form, data):
    gc.collect()
    gc.freeze()  # what there is already is not looked through again
    gc.disable()
    try:
        name, how = f"a.{form}.zst", InputSettings(format="" if form in ("tar", "zip") else form)
        (item,) = [item for batch in read_batches([checks.source(name, data, how)], how) for item in batch.blocks][-1:]
        assert isinstance(item, Rejection)
        left = [found for found in gc.get_objects() if isinstance(found, ByteStream | LookAhead)]
    finally:
        gc.enable()
    assert not left


@pytest.fixture
def model(tmp_path):
    return shutil.copytree(models.models()[0], tmp_path / "model")


def assert_damaged(model):
    models.seal_manifest(model)
    for mapped in (True, False):
        with pytest.raises(TextcatError, match=r"is damaged.*: train the model again\."):
            load(model, mapped=mapped)


@pytest.mark.parametrize("kind", ["int8", "float16", "complex64", "U3", "M8[s]", "f8,i4", ">f8"])
@pytest.mark.parametrize("name", ["weights", "bias", "thresholds", "idf"])
def test_an_array_of_anything_but_numbers_as_save_writes_them_is_damage(name, kind, model):
    shape = np.load(model / f"{name}.npy").shape
    np.save(model / f"{name}.npy", np.zeros(shape, kind))
    assert_damaged(model)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"PK\x03\x04",
        b"\x93NUMPY\x01\x00v\x00{'descr':\xa2'>f4', 'fortran_order': False".ljust(128),  # its header ends too early
        b"\x93NUMPY\x01\x00v\x00"
        + b"{'descr': '<f4', 'fortran_order': False, 'shape': (1099511627776,)}".ljust(117)
        + b"\n",
        b"\x93NUMPY\x01\x00v\x00" + b"{'descr': ',f4', 'fortran_order': False, 'shape': (2,)}".ljust(117) + b"\n",
    ],
)
def test_a_file_that_is_no_array_of_its_size_is_damage(content, model):
    (model / "bias.npy").write_bytes(content)
    assert_damaged(model)


def test_weights_in_the_order_of_fortran_are_damage(model):
    np.save(model / "weights.npy", np.asfortranarray(np.load(model / "weights.npy")))
    assert_damaged(model)


@pytest.fixture
def sparse_model(tmp_path):
    return shutil.copytree(models.models()[models.SPARSE_SEEDS], tmp_path / "sparse")


STARTS, TOPICS, VALUES = "weights_indptr", "weights_indices", "weights_data"


@pytest.mark.parametrize("kind", ["int8", "int32", "int64", "uint32", "float16", "float32", ">i4", ">i8", "M8[s]"])
@pytest.mark.parametrize("name", [STARTS, TOPICS, VALUES])
def test_sparse_weights_of_another_type_are_damage(name, kind, sparse_model):
    values = np.load(sparse_model / f"{name}.npy")
    np.save(sparse_model / f"{name}.npy", values.astype(kind))
    if (name, kind) == (TOPICS, "int32"):  # as those of very many topics have them
        models.seal_manifest(sparse_model)
        load(sparse_model)
    elif values.dtype != kind:
        assert_damaged(sparse_model)


def changed_at(place, value, kind=None):
    def change(values):
        return np.concatenate([values[:place], [value], values[place:][1:]]).astype(kind or values.dtype)

    return change


@pytest.mark.parametrize(
    ("name", "change"),
    [
        *((name, lambda values: values[:-1]) for name in (STARTS, TOPICS, VALUES)),
        *((name, lambda values: values[:0]) for name in (STARTS, TOPICS, VALUES)),
        *((name, lambda values: values[:, np.newaxis]) for name in (STARTS, TOPICS, VALUES)),
        *((name, lambda values: np.append(values, values[-1:])) for name in (STARTS, TOPICS, VALUES)),
        *((TOPICS, changed_at(0, value)) for value in (2, 2**16 - 1)),
        *((TOPICS, changed_at(0, value, np.int32)) for value in (-1, 2, 2**31 - 1, -(2**31))),
        *((STARTS, changed_at(0, value)) for value in (-1, 1, 2**62)),
        *((STARTS, changed_at(1, value)) for value in (-1, 10**6, 2**62, -(2**62))),
        (STARTS, lambda values: values[::-1]),
        (TOPICS, lambda values: values[::-1]),
        (TOPICS, np.zeros_like),
    ],
)
def test_sparse_weights_that_are_no_rows_of_topics_are_damage(name, change, sparse_model):
    np.save(sparse_model / f"{name}.npy", change(np.load(sparse_model / f"{name}.npy")))
    assert_damaged(sparse_model)


@pytest.mark.parametrize("names", [(STARTS,), (TOPICS, VALUES), (STARTS, TOPICS, VALUES)])
def test_a_model_with_a_part_of_sparse_weights_or_with_both_forms_is_damaged(names, model, sparse_model):
    manifest = json.loads((model / "manifest.json").read_bytes())
    for name in names:
        shutil.copy(sparse_model / f"{name}.npy", model)
        manifest["files"][f"{name}.npy"] = ""
    (model / "manifest.json").write_text(json.dumps(manifest))
    models.seal_manifest(model)
    with pytest.raises(TextcatError, match=r"manifest\.json is damaged, .*: train the model again\."):
        load(model)


@pytest.fixture
def listed_model(tmp_path):
    return shutil.copytree(models.models()[models.LISTED_SEEDS], tmp_path / "listed")


@pytest.mark.parametrize("kind", ["float64", "float16", "int32", ">f4"])
@pytest.mark.parametrize("name", ["bias", "centroids_data", "related_data"])
def test_numbers_of_shortlists_of_another_type_are_damage(name, kind, listed_model):
    np.save(listed_model / f"{name}.npy", np.load(listed_model / f"{name}.npy").astype(kind))
    assert_damaged(listed_model)


@pytest.mark.parametrize("entries", [{"size": 0}, {"size": 3}, {"size": True}, {"related": {}}, {"related": None}])
def test_lengths_of_shortlists_that_do_not_fit_are_damage(entries, listed_model):
    path = listed_model / "manifest.json"
    manifest = json.loads(path.read_bytes())
    assert manifest["scorer"]["size"] == 2
    manifest["scorer"] |= entries
    path.write_text(json.dumps(manifest))
    assert_damaged(listed_model)


@pytest.mark.parametrize("terms", ['["a", 1]', '{"a": 1}', '"abc"', DEEP, "1", '["\\ud800"]', '["a", "a"]'])
def test_a_vocabulary_of_anything_but_terms_is_damage(terms, model):
    (model / "vocabulary.json").write_text(terms)
    assert_damaged(model)


ALTERNATIVE = [[0, 0, 0, 0, 1, 0, 0, 0], 1]
REGEXES = {"prefix_search": ["^a", 32], "suffix_search": ["a$", 32]}
TABLES = {
    "lang": "en",
    "spacy": "3",
    "url": [0],
    "regexes": REGEXES,
    "stop_words": ["the"],
    "cuts": {"a.": ["a."]},
    "tokens": {"a.": ["a."]},
    "sets": [f"{2**130 - 1:x}", "1"],
    "alternatives": [[ALTERNATIVE], None, []],
}


def test_tables_of_a_tokenizer_are_read(model):
    (model / "tokenizer.json").write_text(json.dumps(TABLES))
    models.seal_manifest(model)
    load(model)


@every(
    "entries",
    [
        *({"sets": sets} for sets in (1, [], ["x", "1"], [1, 1], ["-1", "1"], [f"{2**130:x}", "1"])),
        *({"alternatives": [[each], None, []]} for each in (1, [1], [[0] * 8, 1], [[0] * 7, -1], [[2] * 8, -1])),
        *({"alternatives": [[[ALTERNATIVE[0], n]], None, []]} for n in (0, 2, 5, 1.0, "1", None, -2, 10**30)),
        *({"alternatives": each} for each in (None, [], [None], {"a": 1})),
        *(
            {"cuts": cuts}
            for cuts in ([], {"a.": [""]}, {"a.": [1]}, {"a.": 1}, {"a.": []}, {"no special case": ["a"]})
        ),
        *({"tokens": tokens} for tokens in ([], {"a": [""]}, {"a": [1]}, {"": ["a"]}, None)),
        *({"regexes": regexes} for regexes in (1, [], {}, {**REGEXES, "a": ["a", 32]})),
        *(
            {"regexes": {**REGEXES, "url_match": regex}}
            for regex in (["(", 32], ["a", -1], ["a", 10**30], "ab", ["a", "b"])
        ),
        *({"url": url} for url in (1, [2], ["1"])),
        *({"stop_words": words} for words in (None, [1], [["a"]], [False], [0], [None])),
        *({"lang": 1}, {"spacy": ""}, {"unknown": 1}),
    ],
)
def test_tables_that_make_no_sense_are_damage(entries, model):
    (model / "tokenizer.json").write_text(json.dumps({**TABLES, **entries}))
    assert_damaged(model)


@pytest.mark.parametrize("content", ["", "[]", "null", "1", DEEP])
def test_what_is_no_tables_of_a_tokenizer_is_damage(content, model):
    (model / "tokenizer.json").write_text(content)
    assert_damaged(model)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        *(("topics", value) for value in ([1, 2], ["a", "a"], ["a", "\ud800"], ["a"], [])),
        *(("train_sizes", value) for value in ([1], [1, None], [1, 10**30], [1, 0.5])),
        *(("facts", value) for value in ({"stopped": 1}, {"stopped": ["converged"]})),
        *(("features", {"n_documents": 4, "n_terms": 3, "average_lengths": value}) for value in ([], {"body": "a"})),
        ("features", {"n_documents": "4", "n_terms": 3}),
        *(("recipe", value) for value in ({"tokens": 1}, {"features": {"ngrams": [2]}}, {"name": "a"})),
    ],
)
def test_entries_of_a_manifest_that_do_not_fit_are_damage(key, value, model):
    path = model / "manifest.json"
    path.write_text(json.dumps({**json.loads(path.read_bytes()), key: value}))
    assert_damaged(model)
