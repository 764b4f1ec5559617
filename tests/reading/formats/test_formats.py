"""Every format gives all it holds: each line, row, message, story or file is a record or a rejection."""

import json
import re
from itertools import pairwise

import pytest
from cases import every
from formats_read import FROM, outcome, parsed
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from textcat.reading import (
    InputSettings,
    Rejection,
    formats,
)
from textcat.reading.compression import COMPRESSIONS
from textcat.reading.formats import delimited, mail, reuters

# Formats of lines

BYTES = st.lists(
    st.sampled_from(
        [b"\n", b"\r\n", b"\n", b" ", b"{}", b'{"text": "a"}', b'"', b",", b"\xff", b"\0", b"\x85", b"a", b"\r"]
    )
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    data=st.one_of(st.binary(), BYTES.map(b"".join)), form=st.sampled_from(["jsonl", "lines"]), block=st.integers(1, 50)
)
def test_every_line_that_is_not_blank_is_a_record_or_a_rejection(place, data, form, block):
    assume(not any(compression.magic.match(data) for compression in COMPRESSIONS))
    returns = form == "lines" or b"\n" not in data  # whether lone carriage returns end lines, too
    lines = re.split(rb"\r?\n|\r" if returns else rb"\n", data.removeprefix(b"\xef\xbb\xbf"))
    found = place(form, data, block_bytes=block)
    if form == "jsonl" and re.match(rb"\[\s*(\{|\]?\s*\Z)", b"\n".join(lines).lstrip()):
        assert found or b"]" in data  # an array of objects, not lines
        return
    assert [item.position for item in found] == [i for i, line in enumerate(lines, 1) if line.strip()]


@every("encoding", ["utf-16", "utf-16-be", "utf-32", "utf-7", "iso2022_jp", "cp037"])
@every("block", [1, 1 << 20])
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


HTML = FROM + b"Content-Type: text/html\n\n"


ONE_STORY = (
    b'<REUTERS TOPICS="YES" LEWISSPLIT="TRAIN" CGISPLIT="x" NEWID="1" %s><TOPICS>%s</TOPICS><TEXT>%s</TEXT></REUTERS>'
)


@pytest.mark.parametrize(
    ("form", "data"),
    [
        ("mbox", HTML + b"<" * 500_000),
        ("mbox", HTML + b"<" + b"a" * 500_000 + b"<"),
        ("mbox", HTML + b"<a" + b" " * 500_000 + b"<"),
        ("mbox", HTML + b"<!--" * 500_000),
        ("mbox", HTML + b"<script>" * 250_000),
        ("mbox", HTML + b"<a\"'" * 150_000 + b">"),
        ("mbox", FROM + b"Content-Type: " + b"a;" * 500_000 + b"\n\nx"),
        ("mbox", FROM + b"Subject: " + b"=?utf-8?q?\n " * 150_000 + b"\n\nx"),
        ("reuters", ONE_STORY % (b"A" * 500_000, b"", b"<BODY>Tin</BODY>")),
        ("reuters", ONE_STORY % (b"", b"<D>" * 500_000, b"<BODY>Tin</BODY>")),
        ("reuters", ONE_STORY % (b"", b"", b"<TITLE>Tin</TITLE>" + b"<AUTHOR>" * 150_000 + b"<DATELINE>x</DATELINE>")),
        ("reuters", b"<REUTERS " + b"NEWID" * 250_000 + b"</REUTERS>"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_is_made_to_take_long_takes_no_longer_than_other_texts(form, data):
    # Each of these would take minutes or hours, if the time grew with the square of the length.
    assert len(parsed(form, data)) == 1


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


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
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
    json.dumps([item[:5] for item in found if isinstance(item, Rejection)]).encode()  # the last one is its kind
    places = [(item.offset, item.length) for item in found if isinstance(item, Rejection) and item.offset >= 0]
    assert all(start + length <= end for (start, length), (end, _) in pairwise(places))


def test_all_formats_are_named_once():
    assert set(formats.FORMATS) == formats.WHOLE | formats.REFERENCES | formats.NEWS | formats.SCANS | set(
        delimited.SEPARATORS
    ) | {
        "annif",
        "jsonl",
        "json",
        "lines",
        "parquet",
        "mbox",
        "reuters",
        "warc",
    }
    assert all(form.cutter(b"", "", InputSettings()).cut(b"") == 0 for form in (mail.MBOX, reuters.FORMAT))
