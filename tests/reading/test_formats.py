"""Every format gives all it holds: each line, row, message, story or file is a record or a rejection."""

import csv
import io
import json
import mailbox
import re
from email.message import EmailMessage
from itertools import islice, pairwise

import pyarrow
import pyarrow.parquet
import pytest
from corpus_files import read as read_corpus
from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st

from textcat.reading import (
    Batch,
    Block,
    InputSettings,
    LabelSettings,
    Record,
    Rejection,
    find_sources,
    formats,
    read_batches,
)
from textcat.reading.formats import delimited, mail, reuters
from textcat.reading.records import FaultKind, RefusedError
from textcat.reading.streams import COMPRESSIONS


def parsed(form, data, position=1, offset=0, header=b"", **how):
    """What one block gives."""
    block = Block("a", form, data, position, offset, header)
    return list(formats.batch_records(Batch((block,), (), (), 0), InputSettings(**how)))


@pytest.fixture
def place(tmp_path):
    """Read bytes as a file of a format."""

    def read_as(form, data, **how):
        (tmp_path / "a").write_bytes(data)
        settings = InputSettings(format=form, **how)
        sources = [source._replace(name="a") for source in find_sources([tmp_path / "a"], settings)]
        return [found for batch in read_batches(sources, settings) for found in formats.batch_records(batch, settings)]

    return read_as


def outcome(found):
    return [item.position if isinstance(item, Record) else -item.position for item in found]


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
    assert [record[:1] + record[2:4] for record in found] == [
        ("x", 5, {"body": "Tin"}),
        ("7", 6, {"title": "Tin", "body": "rose"}),
        ("a:7", 7, {"title": "Tin", "body": "rose"}),
        ("a:8", 8, {"abstract": "Tin", "note": "rose"}),
        ("a:9", 9, {"body": ""}),
    ]


def test_fields_may_have_other_names():
    line = b'{"uid": "x", "title": "Tin", "content": "rose", "text": 3}'
    assert parsed("jsonl", line, text_fields=("content",), id_field="uid") == [
        Record("x", "a", 1, {"title": "Tin", "body": "rose"})
    ]
    assert parsed("jsonl", line, text_fields=("title",), id_field="uid") == [Record("x", "a", 1, {"body": "Tin"})]


@pytest.mark.parametrize(
    ("line", "reason"),
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


@settings(max_examples=300)
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
        assert found == Record(document.id, "a", 1, zones)


# Formats of lines

BYTES = st.lists(
    st.sampled_from([b"\n", b"\r\n", b"\n", b" ", b"{}", b'{"text": "a"}', b'"', b",", b"\xff", b"\0", b"\x85", b"a"])
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    data=st.one_of(st.binary(), BYTES.map(b"".join)), form=st.sampled_from(["jsonl", "lines"]), block=st.integers(1, 50)
)
def test_every_line_that_is_not_blank_is_a_record_or_a_rejection(place, data, form, block):
    assume(not any(compression.magic.match(data) for compression in COMPRESSIONS))
    lines = data.removeprefix(b"\xef\xbb\xbf").split(b"\n")
    found = place(form, data, block_bytes=block)
    if form == "jsonl" and re.match(rb"\[\s*(\{|\]?\s*\Z)", b"\n".join(lines).lstrip()):
        assert found or b"]" in data  # an array of objects, not lines
        return
    assert [item.position for item in found] == [i for i, line in enumerate(lines, 1) if line.strip()]


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
            assert list(read_batches(sources, how, batch.end)) == batches[n:]


def test_a_line_of_text_is_a_document():
    first, fault, last = parsed("lines", " Tin rose.\r\n\n\xe9\nGold fell.".encode("latin-1"))
    assert (first, last) == (
        Record("a:1", "a", 1, {"body": "Tin rose."}),
        Record("a:4", "a", 4, {"body": "Gold fell."}),
    )
    assert fault.reason == "Line 3 is not utf-8 (byte 13): name its encoding with --encoding."


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-be", "utf-32", "utf-7", "iso2022_jp", "cp037"])
@pytest.mark.parametrize("block", [1, 1 << 20])
def test_encodings_in_which_lines_cannot_be_cut_are_read_as_what_they_are_in_utf_8(place, encoding, block):
    data = "Tin rose.\nGold fell.".encode(encoding)
    first, second = place("lines", data, encoding=encoding, block_bytes=block)
    assert (first.zones, second.zones, second.position) == ({"body": "Tin rose."}, {"body": "Gold fell."}, 2)
    assert place("text", data, encoding=encoding)[0].zones == {"body": "Tin rose.\nGold fell."}


@pytest.mark.parametrize("encoding", ["utf-16", "utf-32"])
def test_a_byte_order_mark_tells_utf_16_and_what_is_cut_off_is_told(place, encoding):
    data = '{"text": "caf\u00e9"}\n{"text": "Tin"}\n'.encode(encoding)
    assert [record.zones["body"] for record in place("jsonl", data)] == ["café", "Tin"]
    for order in ("le", "be"):
        assert len(place("jsonl", '{"text": "Tin"}\n'.encode(f"{encoding}-{order}"), encoding=encoding)) == 1
    first, fault = place("jsonl", data[:-1], encoding=encoding)
    assert (first.position, fault.position) == (1, 0)
    assert fault.reason.endswith("): name its encoding with --encoding.")


# Delimited


def naive_rows(data, separator):
    """Where rows start and end, byte by byte: a quote opens where a value starts, and must close where one ends."""
    rows, start = [], 0
    while start < len(data):
        place, state, good = start, "start", True
        while place < len(data):
            byte = data[place : place + 1]
            after = data[place + 1 : place + 3]
            if state == "quoted":
                if byte == b'"' and after[:1] == b'"':
                    place += 1
                elif byte == b'"':
                    state = "inside"
                    good = after[:1] in (b"", b"\n", separator) or after == b"\r\n" or after == b"\r"
                    if not good:
                        break
            elif byte == b"\n":
                break
            else:
                state = "quoted" if byte == b'"' and state == "start" else "start" if byte == separator else "inside"
            place += 1
        if not good or (state == "quoted" and place >= len(data)):
            place = data.find(b"\n", start)
            place = len(data) if place < 0 else place
        end = min(place + 1, len(data))
        rows.append((start, end))
        start = end
    return rows


CELLS = st.lists(
    st.sampled_from([b'"', b'""', b",", b"\n", b"\r\n", b"a", b'","', b"\r", b'"a"', b"b"]), max_size=40
).map(b"".join)


@settings(max_examples=500)
@given(data=CELLS)
@example(b'"a\n"b\n')
def test_rows_end_where_a_reader_of_single_bytes_says(data):
    ends = list(delimited.row_ends(data, b",", final=True))
    assert ends == [end for _, end in naive_rows(data, b",")]


@settings(max_examples=300)
@given(data=CELLS, more=CELLS)
def test_a_cut_is_a_row_s_end_whatever_follows(data, more):
    cut = delimited.RowCutter(b"id,text\n", "csv", InputSettings()).cut(data)
    assert cut in {0, *delimited.row_ends(data + more, b",", final=True)}


TEXTS = st.text(st.characters(codec="utf-8", exclude_characters="\0\r", exclude_categories=["Cs"]), max_size=20)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    # A row of white space alone is a blank line where tabs separate, so there is none.
    rows=st.lists(st.tuples(TEXTS, TEXTS, TEXTS).filter(lambda row: any(map(str.strip, row)) or not any(row))),
    form=st.sampled_from([("csv", ","), ("csv", ";"), ("tsv", "\t")]),
    block=st.integers(1, 100),
    quoting=st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]),
)
def test_what_a_csv_writer_has_written_is_read_back(place, rows, form, block, quoting):
    file = io.StringIO()
    writer = csv.writer(file, delimiter=form[1], quoting=quoting)
    writer.writerow(["id", "title", "text"])
    writer.writerows(rows)
    found = place(form[0], file.getvalue().encode(), block_bytes=block)
    shown = [row for row in rows if any(cell.strip() for cell in row) or quoting == csv.QUOTE_ALL]
    assert [record.zones.get("title", "") for record in found if record.zones["body"]] == [
        row[1] for row in shown if row[2]
    ]
    bodies = [record.zones["body"] for record in found]
    assert [body for body in bodies if body] == [row[2] for row in rows if row[2]]
    named = [record.id for record in found if not record.id.startswith("a:")]
    assert named == [row[0] for row in rows if row[0] and not row[0].startswith("a:")]


@pytest.mark.parametrize("block", [1, 30, 1 << 20])
@pytest.mark.parametrize("bad", ['9,"open', '9,"x"y', '9,"open\nand on'])
def test_an_unbalanced_quote_costs_no_more_than_the_lines_of_its_row(place, block, bad):
    good = [f'{i},"Tin, ""rose""\nby {i}"' for i in range(1, 40)]
    data = "\n".join(["id,text", *good[:20], bad, *good[20:], ""]).encode()
    found = place("csv", data, block_bytes=block)
    assert [record.id for record in found if isinstance(record, Record)] == [str(i) for i in range(1, 40)]
    faults = [item for item in found if isinstance(item, Rejection)]
    assert [fault.position for fault in faults] == [42 + i for i in range(bad.count("\n") + 1)]
    assert data[faults[0].offset :][: faults[0].length] == bad.encode().partition(b"\n")[0] + b"\n"


def test_a_quote_that_nothing_closes_costs_a_line_if_rows_follow_it_and_else_the_record(place):
    rows = "".join(f"{i},Tin rose by {i}\n" for i in range(1000))
    found = place("csv", f'id,text\n7,"open\n{rows}'.encode(), max_bytes=5000, block_bytes=500)
    assert isinstance(found[0], Rejection)
    assert found[0].reason == "The record has a quote that is not closed within 5000 bytes: close it."
    assert len(found) == 1001
    long = '8,"' + "a long text\n" * 1000 + '"\n'
    found = place("csv", f"id,text\n1,Tin\n{long}2,Tin\n".encode(), max_bytes=5000, block_bytes=500)
    assert outcome(found) == [2, -3, 1004]
    assert found[1].length == len(long)


@pytest.mark.parametrize(
    ("head", "reason"),
    [
        (b"id,body2", "The file has no column 'text' (only id, body2): name the texts' column with --text-field."),
        (b"id,text,text", "The file has 2 columns 'text': rename all but one."),
        (b'id,"te"xt', "The file has no column 'text' (its header has wrong quotes (',' expected after '\"'): correct"),
        (b"id,t\xe9xt", "The file is not utf-8 (byte 4): name its encoding with --encoding."),
        (b"x" * 10_000, "The file has a header of more than 5002 bytes: check that it is a table."),
    ],
)
def test_a_file_without_a_usable_header_is_one_rejection(place, head, reason):
    (fault,) = place("csv", head + b"\n1,Tin\n", max_bytes=5000, block_bytes=100)
    assert fault.position == 0
    assert fault.reason.startswith(reason)


def test_a_column_without_a_name_is_no_title(place):
    (found,) = place("csv", b",text\n0,Tin\n")
    assert found.zones == {"body": "Tin"}


def test_columns_are_found_by_name_and_a_row_must_have_all(place):
    data = b'\xef\xbb\xbf\n"x"; body ;title;id\r\n1;rose;Tin;7\r\n\r\n1;2\r\n;;;\r\n'
    found = place("csv", data)
    assert found[0] == Record("7", "a", 3, {"title": "Tin", "body": "rose"})
    assert found[1].reason == "The row of line 5 has 2 values where the header has 4: correct it."
    assert found[2] == Record("a:6", "a", 6, {"body": ""})
    assert place("csv", b"") == place("csv", b"\n \n") == place("csv", b"id,text\n") == []
    assert place("tsv", b"id\ttext\n1\tTin, ore\n")[0].zones == {"body": "Tin, ore"}


# Reuters


def test_the_stories_are_those_of_the_corpus(reuters_archive):
    how = InputSettings(block_bytes=1 << 18)
    found = (
        item
        for batch in read_batches(find_sources([reuters_archive], how), how)
        for item in formats.batch_records(batch, how)
    )
    stories = (item for item in found if item.source.endswith(".sgm"))
    documents = list(islice(read_corpus("reuters", reuters_archive), 2500))
    for story, document in zip(stories, documents, strict=False):
        assert isinstance(story, Record)
        assert story.id == document.id
        assert story.zones == ({name: text for name, text in document.zones.items() if text} or {"body": ""})


STORY = (
    '<REUTERS TOPICS="YES" LEWISSPLIT="TRAIN" NEWID="{}"><DATE>1</DATE><TOPICS></TOPICS>'
    "<TEXT><BODY>Tin</BODY></TEXT></REUTERS>\n"
)


def test_a_story_that_is_broken_harms_no_other(place):
    cut = STORY.format(2)[:100]
    data = "<!DOCTYPE lewis>\n" + STORY.format(1) + cut + STORY.format(3) + "rubbish" + STORY.format(4) + cut
    found = place("reuters", data.encode(), block_bytes=50)
    assert outcome(found) == [1, -2, 3, -4, 4, -5]
    assert [record.id for record in found if isinstance(record, Record)] == ["1", "3", "4"]
    assert found[1].reason == (
        "Story 2 cannot be read (story 2 is cut off before </REUTERS>: correct the file or fetch it again)."
    )
    assert found[3].reason == "Story 4 has text before it that belongs to no story: correct the file."
    assert data[found[1].offset :][: found[1].length] == cut


def test_a_story_that_is_too_long_is_passed_over(place):
    long = STORY.format(2).replace("Tin", "tin " * 5000)
    found = place("reuters", (STORY.format(1) + long + STORY.format(3)).encode(), block_bytes=100, max_bytes=5000)
    assert outcome(found) == [1, -2, 3]
    assert "but a record may have at most 5000" in found[1].reason
    open_end = long.replace("</REUTERS>", "")
    found = place("reuters", (STORY.format(1) + open_end + STORY.format(3)).encode(), block_bytes=100, max_bytes=5000)
    assert outcome(found) == [1, -2, 3]


# RCV1 and text: a file is a document

NEWS = (
    '<?xml version="1.0"?><newsitem itemid="2286" date="1996-08-20"><headline>Tin</headline>'
    "<text><p>rose</p></text></newsitem>"
)


def test_a_story_of_rcv1_is_a_file(place):
    assert place("rcv1", NEWS.encode()) == [Record("2286", "a", 1, {"title": "Tin", "body": "rose"})]
    (fault,) = place("rcv1", NEWS[:-5].encode())
    assert fault.reason.startswith("The file is not a story of RCV1 (")
    assert (fault.position, fault.offset, fault.length) == (1, 0, len(NEWS) - 5)
    assert isinstance(place("rcv1", b"")[0], Rejection)


def test_a_text_is_a_file_without_a_mark_at_its_start(place):
    assert place("text", b"\xef\xbb\xbfTin\r\nrose") == [Record("a", "a", 1, {"body": "Tin\r\nrose"})]
    assert place("text", b"") == [Record("a", "a", 1, {"body": ""})]
    assert place("text", "\ufeffTin".encode("utf-16"), encoding="utf-16")[0].zones["body"].endswith("Tin")
    assert place("text", b"T\xe9n")[0].reason == "The file is not utf-8 (byte 1): name its encoding with --encoding."
    assert "The file has a NUL byte (byte 1)" in place("text", b"T\0n")[0].reason
    assert "has more than 2 bytes, the most that a record may have" in place("text", b"Tin", max_bytes=2)[0].reason


# Mail


@pytest.mark.parametrize("block", [1, 200, 1 << 20])
def test_messages_are_those_that_a_library_has_put_into_an_mbox(tmp_path, place, block):
    box = mailbox.mbox(tmp_path / "box")
    for i in range(30):
        message = EmailMessage()
        message["Subject"], message["Message-ID"] = f"Tün {i}", f"<{i}@b.org>"
        message.set_content(f"Ürose by {i}.\n\nFrom here on, at 10:30, it fell.\n" + "more\n" * i, cte="8bit")
        if i % 3 == 0:
            message.add_alternative("<p>HTML</p>", subtype="html")
        if i % 5 == 0:
            message.add_attachment("attached", filename="a.txt")
        box.add(message)
    box.close()
    found = place("mbox", (tmp_path / "box").read_bytes(), block_bytes=block)
    assert [(record.id, record.position) for record in found] == [(f"<{i}@b.org>", i + 1) for i in range(30)]
    assert [record.zones["title"] for record in found] == [f"Tün {i}" for i in range(30)]
    for i, record in enumerate(found):
        assert record.zones["body"].splitlines() == [
            f"Ürose by {i}.",
            "",
            "From here on, at 10:30, it fell.",
            *["more"] * i,
        ]


FROM = b"From a@b.org Thu Jan  1 00:00:00 1970\n"


@pytest.mark.parametrize(
    ("mail", "zones"),
    [
        (b"\n", {"body": ""}),
        (b"Subject: =?latin-1?q?Caf=E9?=\n\nx", {"title": "Café", "body": "x"}),
        (b"Subject: =?none?q?Caf?=\n\nx", {"title": "=?none?q?Caf?=", "body": "x"}),
        (b"Content-Type: text/html\n\n<style>p</style><p>Tin</p><!-- x -->rose", {"body": "Tin rose"}),
        (b"Content-Type: text/plain; charset=none\n\nx", {"body": "x"}),
        (b"Content-Type: text/plain; charset=latin-1\n\nCaf\xe9", {"body": "Café"}),
        (b"Content-Type: application/pdf\n\nx", {"body": ""}),
        (b"\n>From x\n>>From y", {"body": "From x\n>From y"}),
    ],
)
def test_a_message_gives_what_a_reader_sees(mail, zones):
    assert parsed("mbox", FROM + mail)[0].zones == zones


@pytest.mark.parametrize(
    ("html", "text"),
    [
        ("Tin<br/>rose", "Tin rose"),
        ("<!DOCTYPE html><?xml?><A HREF='a>b'/ title=\"'\">Tin</A >", "Tin"),
        ("<a title='>Tin <b>rose</b>", "Tin rose"),
        ('<a title="1 > 0">Tin</a>', "Tin"),
        ("Tin < 5 &amp; gold &gt; 7 &eacute;", "Tin < 5 & gold > 7 é"),
        ("<SCRIPT>if (a < b) '<p>'</SCRIPT >Tin<style>p", "Tin"),
        ("Tin<!-- <p> > -- -->rose<!-- and more", "Tin rose"),
        ("Tin <b rose", "Tin <b rose"),
        ("Tin <3 <", "Tin <3 <"),
    ],
)
def test_of_html_what_is_shown_is_read(html, text):
    record = parsed("mbox", FROM + f"Content-Type: text/html; charset=utf-8\n\n{html}".encode())[0]
    assert " ".join(record.zones["body"].split()) == text


HTML = FROM + b"Content-Type: text/html\n\n"
ONE_STORY = (
    b'<REUTERS TOPICS="YES" LEWISSPLIT="TRAIN" CGISPLIT="x" NEWID="1" %s><TOPICS>%s</TOPICS><TEXT>%s</TEXT></REUTERS>'
)


@pytest.mark.parametrize(
    ("form", "data"),
    [
        ("mbox", HTML + b"<" * 3_000_000),
        ("mbox", HTML + b"<" + b"a" * 1_000_000 + b"<"),
        ("mbox", HTML + b"<a" + b" " * 1_000_000 + b"<"),
        ("mbox", HTML + b"<!--" * 1_000_000),
        ("mbox", HTML + b"<script>" * 500_000),
        ("mbox", HTML + b"<a\"'" * 1_000_000 + b">"),
        ("mbox", FROM + b"Content-Type: " + b"a;" * 1_000_000 + b"\n\nx"),
        ("mbox", FROM + b"Subject: " + b"=?utf-8?q?\n " * 300_000 + b"\n\nx"),
        ("reuters", ONE_STORY % (b"A" * 1_000_000, b"", b"<BODY>Tin</BODY>")),
        ("reuters", ONE_STORY % (b"", b"<D>" * 500_000, b"<BODY>Tin</BODY>")),
        ("reuters", ONE_STORY % (b"", b"", b"<TITLE>Tin</TITLE>" + b"<AUTHOR>" * 300_000 + b"<DATELINE>x</DATELINE>")),
        ("reuters", b"<REUTERS " + b"NEWID" * 500_000 + b"</REUTERS>"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_is_made_to_take_long_takes_no_longer_than_other_texts(form, data):
    # Each of these would take minutes or hours, if the time grew with the square of the length.
    assert len(parsed(form, data)) == 1


@pytest.mark.parametrize(
    ("mail", "reason"),
    [
        (
            FROM + b"Subject: " + b"Tin " * 20_000 + b"\n\nx",
            "Message 1 has a Subject of more than 65,536 bytes: shorten it.",
        ),
        (FROM + b"\nCaf\xe9", "Message 1 has a text that is not utf-8 (its byte 3): correct its declared charset."),
        (FROM + b"\nTin\0", f"Message 1 has a NUL byte (byte {len(FROM) + 4}): leave it out."),
        (b"Subject: x\n\nx", "Message 1 does not start with a line such as"),
    ],
)
def test_a_message_that_cannot_be_read_is_rejected(mail, reason):
    fault, record = parsed("mbox", mail + b"\n\n" + FROM + b"\nTin")
    assert fault.reason.startswith(reason)
    assert record.zones == {"body": "Tin"}


def test_a_message_that_is_too_long_is_passed_over(place):
    data = FROM + b"\nTin\n\n" + FROM + b"\n" + b"x\n\nFrom here\n" * 1000 + b"\n" + FROM + b"\nTin\n"
    found = place("mbox", data, max_bytes=5000, block_bytes=100)
    assert outcome(found) == [1, -2, 3]
    assert found[1].length == len(data) - 2 * len(FROM) - 6 - 5


# Parquet


def written(table, **how):
    file = io.BytesIO()
    pyarrow.parquet.write_table(table, file, **how)
    return file.getvalue()


def test_rows_are_documents_and_a_null_is_rejected(place):
    table = pyarrow.table(
        {"id": [1, None, 3], "title": ["Tin", None, None], "text": ["rose", None, ""], "x": [[1], [2], []]}
    )
    found = place("parquet", written(table))
    assert found == [
        Record("1", "a", 1, {"title": "Tin", "body": "rose"}),
        Rejection("a", 2, "Row 2 has no text: give it one, or leave it out.", -1, -1),
        Record("3", "a", 3, {"body": ""}),
    ]


@pytest.mark.parametrize(
    "kind",
    [
        pyarrow.large_string(),
        pyarrow.string_view(),
        pyarrow.dictionary(pyarrow.int8(), pyarrow.string()),
        pyarrow.binary(),
    ],
)
def test_texts_of_every_kind_are_read(place, kind):
    column = (
        pyarrow.array([b"Tin", None, b"caf\xc3\xa9"]).cast(kind)
        if kind == pyarrow.binary()
        else pyarrow.array(["Tin", None, "café"]).cast(kind)
    )
    found = place("parquet", written(pyarrow.table({"text": column, "id": column})))
    assert [record.zones["body"] for record in found if isinstance(record, Record)] == ["Tin", "café"]
    assert [record.id for record in found if isinstance(record, Record)] == ["Tin", "café"]


def test_texts_that_are_no_utf8_are_rejected_alone(place):
    text = pyarrow.Array.from_buffers(pyarrow.string(), 2, pyarrow.array([b"T\xe9", b"Tin"]).buffers())
    for column in (text, pyarrow.array([b"T\xe9", b"Tin"])):
        fault, record = place("parquet", written(pyarrow.table({"text": column})))
        assert "Row 1 is not utf-8 (byte 1 of the text)" in fault.reason
        assert record.zones == {"body": "Tin"}
    column = pyarrow.array([b"T\xe9"])
    assert place("parquet", written(pyarrow.table({"text": column})), encoding="latin-1")[0].zones == {"body": "Té"}


@pytest.mark.parametrize(
    ("table", "reason"),
    [
        (
            {"id": ["1"], "note": ["Tin"]},
            "The file has no column 'text' (only id, note): name the texts' column with --text-field.",
        ),
        ({"text": [1]}, "The file has int64 in the column 'text', which is not text: name another column."),
        (
            {"text": ["a"], "id": [1.5]},
            "The file has double in the column 'id', which is not text: name another column.",
        ),
    ],
)
def test_a_table_without_texts_is_one_rejection(place, table, reason):
    (fault,) = place("parquet", written(pyarrow.table(table)))
    assert (fault.position, fault.reason) == (0, reason)


def test_a_text_that_stands_in_many_rows_takes_the_memory_of_one(place):
    table = pyarrow.table({"text": pyarrow.DictionaryArray.from_arrays([0] * 20_000, ["x" * 1_000_000])})
    data = written(table)
    assert len(data) < 200_000
    found = place("parquet", data)
    assert len(found) == 20_000
    assert {len(record.zones["body"]) for record in found} == {1_000_000}
    assert len(place("parquet", data, max_bytes=999_999)) == 20_000


def test_a_damaged_table_is_rejected(place):
    data = written(pyarrow.table({"text": ["Tin rose"] * 10}))
    for broken in (b"", data[:-10], data[4:], b"PAR1" + bytes(len(data) - 8) + b"PAR1"):
        (fault,) = place("parquet", broken)
        assert "is damaged or incomplete" in fault.reason


# Any bytes

TOKENS = [
    b"\n",
    b"From ",
    FROM,
    b"\n\n",
    b"<REUTERS",
    b"</REUTERS>",
    b">",
    b'"',
    b",",
    b"text",
    b"{",
    b"}",
    b"id,text\n",
    b"PAR1",
    b"\xff",
    b"\0",
]


@settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    form=st.sampled_from(sorted(formats.FORMATS)),
    data=st.lists(st.one_of(st.sampled_from(TOKENS), st.binary(max_size=8))).map(b"".join),
    block=st.integers(1, 60),
    encoding=st.sampled_from(["", "latin-1", "utf-8-sig", "cp1252", "shift_jis"]),
)
def test_any_bytes_give_records_and_rejections_in_order_whatever_the_blocks(place, form, data, block, encoding):
    found = place(form, data, block_bytes=block, encoding=encoding)
    assert found == place(form, data, encoding=encoding)
    assert outcome(found) == sorted(outcome(found), key=abs)
    assert all(item.reason.endswith(".") for item in found if isinstance(item, Rejection))
    json.dumps([item for item in found if isinstance(item, Rejection)]).encode()
    places = [(item.offset, item.length) for item in found if isinstance(item, Rejection) and item.offset >= 0]
    assert all(start + length <= end for (start, length), (end, _) in pairwise(places))


@settings(max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_a_table_with_changed_bytes_is_no_crash(place, data):
    table = bytearray(written(pyarrow.table({"id": range(50), "text": ["Tin rose"] * 50})))
    for place_, byte in data.draw(st.lists(st.tuples(st.integers(0, len(table) - 1), st.integers(0, 255)), max_size=3)):
        table[place_] = byte
    place("parquet", bytes(table))


def test_all_formats_are_named_once():
    assert set(formats.FORMATS) == formats.WHOLE | set(delimited.SEPARATORS) | {
        "annif",
        "jsonl",
        "json",
        "lines",
        "parquet",
        "mbox",
        "reuters",
    }
    assert mail.MessageCutter().cut(b"") == reuters.StoryCutter().cut(b"") == 0
