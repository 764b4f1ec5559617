"""Corpora of one JSON object a line."""

import gzip
import itertools
import json
import sys
from contextlib import suppress

import pytest
from cases import every
from corpus_files import parse as parse_file
from corpus_files import read
from formats_read import outcome, parsed
from hypothesis import given
from hypothesis import strategies as st

from textcat.base.errors import TextcatError
from textcat.corpus.catalogue import open_corpus
from textcat.corpus.documents import Document
from textcat.reading import (
    DamagedError,
    InputSettings,
    LabelSettings,
    Record,
    Rejection,
    find_sources,
    read_batches,
)
from textcat.reading.faults import FaultKind, RefusedError
from textcat.reading.formats.jsonl import ARRAY


def parse(lines, name="a.jsonl", **options):
    return parse_file("jsonl", name, lines.encode(), folder="parts" if "/" in name else "", **options)


def test_a_line_gives_its_id_zones_topics_date_and_part():
    line = {"id": "7", "title": "Tin up", "body": "Tin rose.", "topics": ["tin", "gold", "tin"], "date": "1987"}
    (document,) = parse(json.dumps({**line, "split": "test", "editor": 3}))
    assert document == Document("7", {"title": "Tin up", "body": "Tin rose."}, ("tin", "gold"), "1987", "test")


def test_a_text_is_a_body_and_zones_are_as_they_stand():
    assert parse('{"text": "Tin rose."}')[0].zones == {"title": "", "body": "Tin rose."}
    assert parse('{"title": "Tin", "text": "rose."}')[0].zones == {"title": "Tin", "body": "rose."}
    assert parse('{"zones": {"abstract": "Tin", "body": "rose."}}')[0].zones == {"abstract": "Tin", "body": "rose."}


@every(
    "topics, names",
    [
        ("18446744073709551617", ("18446744073709551617",)),
        ('["tin", -9223372036854775809]', ("tin", "-9223372036854775809")),
        ("9223372036854775809", ("9223372036854775809",)),
        ("3.0", ("3",)),
        ('["caf\\u00e9", "\\ud83d\\ude00", "\\ud83d"]', ("café", "\U0001f600", "\ufffd")),
    ],
)
def test_names_of_topics_are_read_exactly(topics, names):
    (document,) = parse(f'{{"text": "Tin", "topics": {topics}}}')
    assert document.topics == names


def test_lines_in_other_encodings_have_labels():
    (document,) = parse_file(
        "jsonl", "a.jsonl", '{"text": "Café", "topics": ["thé"]}'.encode("cp1252"), encoding="cp1252"
    )
    assert (document.zones["body"], document.topics) == ("Café", ("thé",))


def test_what_a_line_does_not_say_is_by_default():
    first, second = parse('{"text": "Tin"}\n\n  \n{"text": "Gold", "id": 12, "topics": "gold", "date": null}\r\n')
    assert (first.id, first.topics, first.date, first.split) == ("a.jsonl:1", (), "", "")
    assert (second.id, second.topics) == ("12", ("gold",))
    assert parse('\ufeff{"text": "Tin", "topics": null}')[0].topics == ()


@every(
    "name, part",
    [
        ("train.jsonl", ""),
        ("news-test.jsonl", ""),
        ("test/part-0.ndjson", ""),
        ("a.jsonl", ""),
        ("contest.jsonl", ""),
    ],
)
def test_the_name_of_a_file_alone_decides_no_part(name, part):
    assert parse('{"text": "Tin"}', name)[0].split == part
    assert parse('{"text": "Tin", "split": "unused"}', name)[0].split == "unused"


def test_fields_may_have_other_names():
    options = {"id_field": "uid", "text_fields": ["content"], "topics_field": "label"}
    (document,) = parse('{"uid": "x", "content": "Tin", "label": "tin", "text": "no"}', **options)
    assert document == Document("x", {"title": "", "body": "Tin"}, ("tin",))


@every(
    "line, message",
    [
        ('{"a', r"is not valid JSON \(Unterminated string starting at column 2\): correct it"),
        ("{", r"is not valid JSON \(Expecting property name enclosed in double quotes at column 2\): correct it"),
        ("[1]", r"holds \[1\]: it must be a JSON object"),
        ("{}", r"has no text: give it 'text', or 'title' and 'body', or name the field that holds it"),
        ('{"text": 3}', "has the text 3: it must be a string"),
        ('{"text": "a", "id": []}', r"has the id \[\]: it must be a string"),
        ('{"text": "a", "topics": {"tin": 2}}', r'has the topics {"tin": 2}: for each topic, there must be a'),
        ('{"text": "a", "topics": ["tin", 1.5]}', r'has the topics \["tin", 1.5\]: they must be a list of names'),
        ('{"text": "a", "topics": true}', "has the topics true: they must be a list of names"),
        ('{"text": "a", "topics": [" "]}', r'has the topics \[" "\]: they must be a list of names'),
        ('{"text": "a", "split": "dev"}', "has the split 'dev': it must be one of train, test, unused"),
        ('{"zones": ["a"]}', r'has the zones \["a"\]: they must be an object of texts'),
        ('{"zones": {"title": 1}}', "has the zones.title 1: it must be a string"),
        ("[" * 100_000, "is not valid JSON"),
        ('{"id": ' + "1" * 5000 + ', "text": "a"}', "is not valid JSON"),
    ],
)
def test_a_malformed_line_is_told_with_file_and_number(line, message):
    with pytest.raises(TextcatError, match=rf"a\.jsonl: line 2 {message}"):
        parse('{"text": "Tin"}\n' + line)


@given(st.text(max_size=200))
def test_any_text_comes_through_or_is_told_of(text):
    assert parse(json.dumps({"text": text}))[0].zones["body"] == text.encode("utf-16", "surrogatepass").decode(
        "utf-16", "replace"
    )


@given(st.text(max_size=200))
def test_no_text_breaks_the_reader(text):
    with suppress(TextcatError):
        parse(text.encode("utf-8", "replace").decode())


def test_half_a_surrogate_pair_is_no_character():
    (document,) = parse(r'{"text": "tin \ud83d up \ud83d\ude00", "topics": ["\udc00"]}')
    assert document.zones["body"] == "tin � up 😀"
    assert document.topics == ("�",)


def test_an_array_that_is_cut_off_is_damaged(tmp_path):
    path = tmp_path / "a.json"
    for end in ("", ",", ",\n "):
        path.write_text('[{"text": "Tin", "topics": ["tin"]}' + end)
        with pytest.raises(DamagedError, match=r"a\.json .*\(its array ends without \]\)"):
            open_corpus(path)


LINES = '{"text": "Tin rose.", "topics": ["tin"]}\n{"text": "Gold fell.", "topics": ["gold"]}\n'


def test_a_file_a_folder_and_their_compressed_likes_are_corpora_without_a_card(tmp_path):
    (tmp_path / "mail.jsonl").write_text(LINES)
    (tmp_path / "mail.jsonl.gz").write_bytes(gzip.compress(LINES.encode()))
    for name in ("mail.jsonl", "mail.jsonl.gz"):
        corpus = open_corpus(tmp_path / name)
        assert (len(corpus.train), len(corpus.test), corpus.topics) == (2, 0, ("gold", "tin"))
        assert corpus.train[1].id == "mail.jsonl:2"
    parts = tmp_path / "parts"
    parts.mkdir()
    for part in ("train", "test"):
        (parts / f"{part}.jsonl").write_text(LINES)
    corpus = open_corpus(parts)
    assert (len(corpus.train), len(corpus.test), corpus.topics) == (2, 2, ("gold", "tin"))


def test_a_card_names_the_fields(tmp_path):
    (tmp_path / "mail.jsonl").write_text('{"content": "Tin", "label": "tin"}\n')
    card = tmp_path / "mail.toml"
    card.write_text(
        'reader = "jsonl"\nfiles = ["mail.jsonl"]\noptions = { text_fields = ["content"], topics_field = "label" }\n',
        encoding="utf-8",
    )
    assert open_corpus(card).topics == ("tin",)


def test_two_documents_of_one_id_are_told_with_their_files(tmp_path):
    for part in ("train", "test"):
        (tmp_path / f"{part}.jsonl").write_text('{"id": "1", "text": "Tin", "topics": "tin"}\n')
    with pytest.raises(TextcatError, match=r"two documents '1', in test\.jsonl:1 and in train\.jsonl:1"):
        open_corpus(tmp_path)


def test_zstandard_is_read_where_its_package_is(tmp_path):
    zstandard = pytest.importorskip("zstandard")
    compressed = zstandard.ZstdCompressor().compress(LINES.encode())
    whole = compressed + compressed
    path = tmp_path / "mail.jsonl.zst"
    path.write_bytes(whole)
    assert [document.zones["body"] for document in read("jsonl", path)] == ["Tin rose.", "Gold fell."] * 2
    for cut in (5, len(whole) // 2 + 3, len(whole) - 1):
        path.write_bytes(whole[:cut])
        with pytest.raises(DamagedError):
            list(read("jsonl", path))


def test_zstandard_is_asked_for_where_its_package_is_not(tmp_path, monkeypatch):
    zstandard = pytest.importorskip("zstandard")
    (tmp_path / "mail.jsonl.zst").write_bytes(zstandard.compress(LINES.encode()))
    monkeypatch.setitem(sys.modules, "zstandard", None)
    with pytest.raises(TextcatError, match=r"pip install 'textcat-margin\[zst\]'"):
        list(read("jsonl", tmp_path / "mail.jsonl.zst"))


# JSON Lines


def test_a_line_gives_its_id_and_its_texts():
    lines = [
        {"id": "x", "text": "Tin"},
        {"id": 7, "title": "Tin", "text": "rose", "date": 1987},
        {"title": "Tin", "body": "rose"},
        {"zones": {"abstract": "Tin", "body": "", "note": "rose"}},
        {"id": None, "text": ""},
    ]
    found = parsed("jsonl", "\n".join(map(json.dumps, lines)).encode(), position=5)
    assert [(record.id, record.position, record.zones) for record in found] == [
        ("x", 5, {"body": "Tin"}),
        ("7", 6, {"title": "Tin", "body": "rose"}),
        ("a:7", 7, {"title": "Tin", "body": "rose"}),
        ("a:8", 8, {"abstract": "Tin", "note": "rose"}),
        ("a:9", 9, {"body": ""}),
    ]


def test_fields_of_a_record_may_have_other_names():
    line = b'{"uid": "x", "title": "Tin", "content": "rose", "text": 3}'
    assert parsed("jsonl", line, text_fields=("content", "title"), id_field="uid") == [
        Record("x", {"title": "Tin", "body": "rose"}, source="a", position=1)
    ]
    assert parsed("jsonl", line, text_fields=("content",), id_field="uid") == [
        Record("x", {"body": "rose"}, source="a", position=1)
    ]
    assert parsed("jsonl", line, text_fields=("title",), id_field="uid") == [
        Record("x", {"body": "Tin"}, source="a", position=1)
    ]


@every(
    "line, reason",
    [
        (b'{"text": "Tin"', "Line 3 is not valid JSON (Expecting ',' delimiter at column 15): correct it."),
        (b"[1]", 'Line 3 holds [1]: it must be a JSON object, such as {"text": "…"}.'),
        (b'{"id": 1}', "Line 3 has no text: give it 'text', or 'title' and 'body', or name the field that holds it."),
        (b'{"text": 1}', "Line 3 has the text 1: it must be a string."),
        (b'{"text": "", "id": true}', "Line 3 has the id true: it must be a string."),
        (b'{"text": "caf\xe9"}', "Line 3 is not utf-8 (byte 34): name its encoding with --encoding."),
        (b'{"text": "\0"}', "Line 3 has a NUL byte (byte 31), so it is not text in utf-8: leave it out or convert it."),
        (b"[" * 100_000, "Line 3 is not valid JSON (maximum recursion depth exceeded"),
    ],
)
def test_a_line_that_holds_no_document_is_rejected_with_its_place_and_reason(line, reason):
    (first, fault, last) = parsed("jsonl", b'{"text":"1"}\r\n\n' + line + b'\n{"text": "2"}', offset=6)
    assert (first.zones, last.zones, last.position) == ({"body": "1"}, {"body": "2"}, 4)
    assert (fault.source, fault.position, fault.offset, fault.length) == ("a", 3, 21, len(line))
    assert fault.reason.startswith(reason)


def test_a_nul_that_is_escaped_and_halves_of_surrogates_are_text():
    (nul, half, large) = parsed(
        "jsonl", b'{"text": "a\\u0000b"}\n{"text": "a\\ud800b"}\n{"text": "", "id": 18446744073709551617}'
    )
    assert nul.zones == {"body": "a\0b"}
    assert half.zones == {"body": "a\N{REPLACEMENT CHARACTER}b"}
    assert large.id == "18446744073709551617"


def test_lines_may_be_in_another_encoding():
    line = '{"text": "café"}\n'
    assert parsed("jsonl", line.encode("latin-1"), encoding="latin-1")[0].zones == {"body": "café"}
    assert parsed("jsonl", b"\xef\xbb\xbf" + line.encode())[0].zones == {"body": "café"}


VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(st.characters(), max_size=5),
    st.text("\ud800a", max_size=2),
)


ZONES = st.one_of(VALUES, st.dictionaries(st.sampled_from(["title", "body", "note"]), VALUES))


OBJECTS = st.fixed_dictionaries(
    {}, optional={"id": VALUES, "text": VALUES, "title": VALUES, "body": VALUES, "zones": ZONES, "x": ZONES}
)


@given(line=st.one_of(OBJECTS, VALUES))
def test_a_line_means_what_it_means_in_a_corpus(line):
    data = json.dumps(line).encode()
    (found,) = parsed("jsonl", data)
    documents, error = [], ""
    try:
        documents = parsed("jsonl", data, labels=LabelSettings())
    except RefusedError as refusal:
        error = f"{refusal.part or 'The file'} {refusal.fault}."
    assert (error != "") == isinstance(found, Rejection)
    if error:
        assert found.reason == error
    for document in documents:
        zones = {name: text for name, text in document.zones.items() if text} or {"body": ""}
        assert found == Record(document.id, zones, source="a", position=1)


@pytest.mark.parametrize("block", [1, 1 << 20])
def test_an_array_that_is_cut_off_is_told_from_a_whole_one(place, block):
    whole = b' [{"text": "Tin"},\n {"text": "ore", "zone": {}} ]\n'
    for form in ("json", "jsonl"):
        assert outcome(place(form, whole, block_bytes=block)) == [1, 2]
        for n in range(2, len(whole) - 2):
            *found, fault = place(form, whole[:n], block_bytes=block)
            assert isinstance(fault, Rejection), whole[:n]
            assert outcome(found) == list(range(1, fault.position))
    assert place("json", b"[]", block_bytes=block) == []
    assert outcome(place("json", b'\n{"text": "no array"}', block_bytes=block)) == [1]
    (fault,) = place("json", b"\xef\xbb\xbf[ ", block_bytes=block)
    reason = "The array ends without ], so objects may be missing: check whether the file is complete."
    assert fault == Rejection("a", 1, reason, 0, 5, FaultKind.DAMAGE)
    for end in (b"\xef\xbb\xbf", b",\xef\xbb\xbf\n"):  # a byte order mark, as between files put behind each other
        assert outcome(place("json", b'[{"text": "Tin"}]' + end, block_bytes=block)) == [1]
        _, fault = place("json", b'[{"text": "Tin"}' + end, block_bytes=block)
        assert fault.reason == reason


@pytest.mark.parametrize("block", [1, 30, 1 << 20])
def test_who_resumes_behind_the_last_object_of_an_array_is_told_that_it_is_cut_off(tmp_path, block):
    for name in ("a.json", "b.json"):
        (tmp_path / name).write_text('[{"text": "Tin"}, {"text": "ore"}')
    how = InputSettings(block_bytes=block)
    for sources in (find_sources([tmp_path], how), find_sources([tmp_path / "a.json", tmp_path / "b.json"], how)):
        batches = list(read_batches(sources, how))
        faults = [item for batch in batches for item in batch.blocks if isinstance(item, Rejection)]
        assert [fault.position for fault in faults] == [3, 3]
        for n, batch in enumerate(batches, 1):
            rest = read_batches(sources, how, batch.end)
            assert [batch[:-1] for batch in rest] == [batch[:-1] for batch in batches[n:]]


@every("text", ["tin } ", 'tin "{ ', "tin \\", '\\"}, {"', "tin"])
def test_an_object_of_an_array_that_is_too_long_is_passed_over_and_counted_once(place, text):
    long = json.dumps({"text": text * 20_000, "further": {"a": ["}"]}})
    data = f'[{{"text": "Tin"}},\n{long},\n{{"text": "Gold"}}]'.encode()
    found = place("json", data, max_bytes=5000, block_bytes=100)
    assert outcome(found) == [1, -2, 3]
    assert found[1].length == len(long) + 2
    assert "a record may have at most 5000" in found[1].reason


def test_the_last_objects_of_an_array_are_counted_also_where_they_are_as_long_as_those_before():
    settings = InputSettings(format="json")
    cutter = ARRAY.cutter(b"", "json", settings)
    before, last = b'[{"id": 1}, {"id": 2}', b', {"id": 3, "n": 20}]'
    assert cutter.cut(before + last[:5]) == len(before) == len(last)
    assert cutter.count(before) == 2
    assert cutter.count(last) == 1


@every("block", [1, 7, 30, 1 << 20])
@every("other", ["}" * 9, "}\n}\n]\n}", "null", '"tin {"', "1, [2, 3], :", "]]}}", "\\}", "}, \u4e2d"])
def test_what_is_no_object_of_an_array_is_rejected_once_and_no_object_behind_it_is_lost(place, block, other):
    objects = [json.dumps({"text": text}) for text in ("Tin", "ore {", "Gold")]
    data = f"[{objects[0]}, {other}\n{objects[1]}, {objects[2]}, {other}]".encode()
    found = place("json", data, block_bytes=block)
    assert outcome(found) == [1, -2, 3, 4, -5]
    assert data[found[1].offset :].startswith(other.encode().lstrip(b"]"))
    assert found[1].length in range(1, len(other.encode()) + 1)


@every("block", [1, 7, 30, 1 << 20])
@every("is_last", [False, True])
@every(
    "others",
    [["null", '"x"'], ["[1, 2]"], ["[1, 2]", "3", "true", '"é, ]"', "[[4], 5]"], ["null"], ['"\\ud800"', "-1.5e3"]],
)
def test_each_value_of_an_array_that_is_no_object_is_rejected_by_its_number(place, block, is_last, others):
    """Positions count the values of the array."""
    for before in range(3):
        objects = [f'{{"text": "Tin {i}"}}' for i in range(3)]
        values = [*objects[:before], *others, *(() if is_last else objects[before:])]
        for between in (",", ", ", "\n,\n  "):
            data = f"[{between.join(values)}]".encode()
            found = place("json", data, block_bytes=block)
            n = len(others)
            expected = [-i if before < i <= before + n else i for i in range(1, len(values) + 1)]
            assert outcome(found) == expected
            for fault, other in zip(found[before : before + n], others, strict=True):
                shown = json.dumps(json.loads(other), ensure_ascii=False)
                assert f"Object {fault.position} holds {shown}: it must be a JSON object" in fault.reason
                assert data[fault.offset :][: fault.length] == other.encode()


@pytest.mark.parametrize("n", [1, 3000, 40_000])
@pytest.mark.parametrize("other", ["}", "} ", '"tin {" ', '"\\"{" '])
def test_what_is_no_object_is_passed_over_up_to_the_next_object_where_it_is_too_long(place, n, other):
    data = f'[{{"text": "Tin"}}, {other * n}{{"text": "ore"}}, {{"text": "Gold"}}]'.encode()
    found = place("json", data, max_bytes=5000, block_bytes=100)
    assert outcome(found) == [1, -2, 3, 4]
    assert place("json", data, max_bytes=1 << 20)[2:] == found[2:]


CUT = [
    '{"text": "Gold pri',
    '{"text": "Gold pri\\',
    '{"text": "Gold, ',
    '{"text": "Tin", "x": [1, 2',
    '{"text": "Tin", "x": [',
    "{broken",
]
CUT += [
    '{"text": "Tin",',
    '{"text":',
    '{"text": "Tin", "x": [{"y": "pri',
    '{"text": "Tin", "x": [{"y": 1},',
    '{"x": "a" {',
    "{",
]


@every("cut", CUT)
@every("block", [1, 40, 1 << 20])
def test_an_object_that_is_cut_off_costs_no_object_on_a_later_line(place, block, cut):
    for end, indent, damaged in itertools.product(["\n", "\r\n", "\n\n \n"], [None, 1], [0, 2, 4]):
        objects = [json.dumps({"text": f"Tin {i}", "x": {"y": [1, {}]}}, indent=indent) for i in range(6)]
        stored = [*objects[:damaged], cut, *objects[damaged + 1 :]]
        found = place("json", end.join(stored).encode(), block_bytes=block)
        assert outcome(found) == [i if i != damaged + 1 else -i for i in range(1, 7)]
        array = f"[{end}  " + f",{end}  ".join(part.replace("\n", "\n  ") for part in stored) + f"{end}]"
        found = place("json", array.encode(), block_bytes=block)
        assert outcome(found) == [i if i != damaged + 1 else -i for i in range(1, 7)]


@every("block", [1, 100, 1 << 20])
def test_objects_inside_an_object_may_begin_at_the_start_of_a_line(place, block):
    one = '{"text": "Tin",\n"x": [\n{"y": "[{\\"z\\n{"},\n{"y": 2}\n, 3,\n{}], "z":\n{"y": [\n{}\n]\n}\n}'
    assert json.loads(one)
    assert outcome(place("json", "\n".join([one] * 3).encode(), block_bytes=block)) == [1, 2, 3]
    assert outcome(place("json", f"[{one},\n{one}]".encode(), block_bytes=block)) == [1, 2]


@pytest.mark.parametrize("cut", ['{"text": "ore ', '{"x": [1, {"y": "', '{"text": "ore\\'])
@pytest.mark.parametrize("n", [1, 7, 2000])
def test_an_object_that_is_cut_off_after_more_bytes_than_are_held_costs_no_object_on_a_later_line(place, cut, n):
    for space in (" ", "\n", "\\n, "):
        data = f'[\n  {{"text": "Tin"}},\n  {cut}{("tin" + space) * n}\n  {{"text": "ore"}},\n  {{"text": "Gold"}}\n]'
        for block in (1, 50, 64):
            found = place("json", data.encode(), max_bytes=1100, block_bytes=block)
            assert outcome(found) == [1, -2, 3, 4]


def test_objects_that_cannot_be_told_apart_are_counted_in_one_rejection(place):
    objects = [json.dumps({"text": f"Tin {i}", "x": {"y": [1, {}]}}) for i in range(1, 201)]
    objects[9] = '{"text": "Tin'
    for data in (", ".join(objects), f"[{', '.join(objects)}]"):
        *found, fault = place("json", data.encode(), block_bytes=70)
        assert outcome(found) == list(range(1, 10))
        assert (fault.position, fault.kind, fault.n_further) == (10, FaultKind.DAMAGE, 189)
        assert fault.length == len(data) - fault.offset
        assert "about 189 further objects" in fault.reason
        fault = place("json", data.encode(), max_bytes=1100, block_bytes=70)[9]
        assert fault.n_further > 100
        assert "1100" in fault.reason


def test_files_of_json_that_were_put_behind_each_other_are_read_whatever_is_between_them(place):
    one = '\ufeff[{"text": "Tin"}, {"text": "ore"}]\n'
    assert outcome(place("json", (one * 3).encode(), block_bytes=20)) == [1, 2, 3, 4, 5, 6]
    assert outcome(place("json", b'{"text": "Tin"}\x1e{"text": "ore"}\n\x1e{"text": "Gold"}')) == [1, -2, 3, -4, 5]
