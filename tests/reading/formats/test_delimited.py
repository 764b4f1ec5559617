"""CSV and TSV: rows, quotes, headers and columns."""

import csv
import io

import pytest
from cases import every
from formats_read import outcome
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from same_documents import BARE, tagged, trained_on, write

from textcat.base.errors import TextcatError
from textcat.corpus.catalogue import open_corpus
from textcat.reading import (
    InputSettings,
    Record,
    Rejection,
    find_sources,
    formats,
    read_batches,
)
from textcat.reading.formats import delimited

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


@given(data=CELLS)
@example(b'"a\n"b\n')
def test_rows_end_where_a_reader_of_single_bytes_says(data):
    ends = list(delimited.row_ends(data, b",", final=True))
    assert ends == [end for _, end in naive_rows(data, b",")]


@given(data=CELLS, more=CELLS)
def test_a_cut_is_a_row_s_end_whatever_follows(data, more):
    cut = delimited.RowCutter(b"id,text\n", "csv", InputSettings()).cut(data)
    assert cut in {0, *delimited.row_ends(data + more, b",", final=True)}


TEXTS = st.text(st.characters(exclude_characters="\0\r", exclude_categories=["Cs"]), max_size=20)


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


LONG_PIECES = st.sampled_from(
    (
        *('"', ",", "\n", "\r\n", ',"', '",', '"x"y', "\ufeff", "x" * 100, "x" * 4090, "x" * 6000, " " * 4099),
        *('""' * 2500, "a,b\n" * 25, '1,"a\nb"\n' * 700, "a\n" * 2100),
    )
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    header=st.sampled_from(["text\n", "id,text\n", "id,text,n\n", f"{'n' * 4090},text\n"]),
    pieces=st.lists(LONG_PIECES, max_size=15),
    block=st.sampled_from([77, 1000, 5003]),
    plain_quotes=st.booleans(),
)
@example("id,text\n", ['1,"', "a,b\n" * 2000], 77, False)
@example("id,text,n\n", ['1,"', "a\n", "a,b\n" * 2000, 'x"\n2,b,c\n'], 1000, False)
def test_rows_and_rejections_are_the_same_for_all_sizes_of_blocks(place, header, pieces, block, plain_quotes):
    data = (header + "".join(pieces)).encode()
    by_size = [
        place("csv", data, max_bytes=4096, plain_quotes=plain_quotes, block_bytes=n_bytes)
        for n_bytes in (block, 1 << 20)
    ]
    assert by_size[0] == by_size[1]


@every("block", [1, 30, 1 << 20])
@every("bad", ['9,"open', '9,"x"y', '9,"open\nand on'])
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


def test_what_a_quote_that_nothing_closes_costs_in_a_column_alone_is_told(place):
    data = b'text\nTin\n"open\n' + b"Tin rose.\n" * 1000
    found = place("csv", data, max_bytes=5000, block_bytes=500)
    assert (outcome(found), found[1].n_further) == ([2, -3], 1000)
    assert "1,000 further lines" in found[1].reason
    closed = place("csv", data.rstrip() + b'"', max_bytes=5000, block_bytes=500)
    assert (outcome(closed), closed[1].n_further) == ([2, -3], 0)


@every("block", [100, 500, 1 << 20])
@every("lines", [2, 20, 1000])
@every("end", ['",5', '"', '"\n', '",5\n', '"",more",5'])
def test_an_overlong_row_at_the_end_whose_quotes_are_closed_has_no_further_lines(place, block, lines, end):
    data = f'id,text,n\n1,hello,1\n2,"{"Tin rose by a lot." * 9}{f"{chr(10)}Tin rose." * lines}{"x" * 1000}{end}'
    found = place("csv", data.encode(), max_bytes=1000, block_bytes=block)
    assert (outcome(found), found[1].n_further) == ([2, -3], 0)
    assert "split it" in found[1].reason


@every("block", [100, 500])
@every("end", ["", '""', '""hi""', ',""', "\n"])
def test_an_open_quote_is_told_whatever_the_file_ends_with(place, block, end):
    data = f'text\nTin\n"open{f"{chr(10)}Tin rose." * 1000}{end}'
    found = place("csv", data.encode(), max_bytes=1000, block_bytes=block)
    assert (outcome(found), found[1].n_further) == ([2, -3], 1000 - (end != "\n"))
    assert "not closed" in found[1].reason


@pytest.mark.parametrize("block", [100, 1 << 20])
def test_the_line_after_an_overlong_one_is_read_in_a_column_alone_without_a_last_line_end(place, block):
    found = place("csv", f"text\nTin\n{'x' * 6000}\nGold".encode(), max_bytes=1000, block_bytes=block)
    assert outcome(found) == [2, -3, 4]


@every("block", [500, 1 << 20])
@every("n_rows", [1, 2, 1000])
@every("end", ["\n", ""])
def test_a_line_with_an_unclosed_quote_costs_itself_alone_however_long_it_is(place, block, n_rows, end):
    rows = "\n".join(f"{i},Tin rose by {i}" for i in range(n_rows)) + end
    for n in (4985, *range(4990, 5006), 7000, 50_000):
        bad = f'7,"{"x" * n}\n'
        found = place("csv", f"id,text\n1,Tin\n{bad}{rows}".encode(), max_bytes=5000, block_bytes=block)
        assert outcome(found) == [2, -3, *range(4, 4 + n_rows)], n
        assert found[1].length == len(bad), n


@every(
    "head, reason",
    [
        (
            b"id,body2",
            "The file has no column 'text' (only id, body2): name the texts' column with --text-field",
        ),
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
    assert found[0] == Record("7", {"title": "Tin", "body": "rose"}, source="a", position=3)
    assert found[1].reason == "The row of line 5 has 2 values where the header has 4: correct it."
    assert found[2] == Record("a:6", {"body": ""}, source="a", position=6)
    assert place("csv", b"") == place("csv", b"\n \n") == place("csv", b"id,text\n") == []
    assert place("tsv", b"id\ttext\n1\tTin, ore\n")[0].zones == {"body": "Tin, ore"}


@pytest.mark.parametrize("form", ["csv", "tsv", "parquet"])
def test_columns_with_usual_names_are_found_and_it_is_said(tmp_path, form, caplog):
    path = write(tmp_path, form, {"Headline": "Tin up", "abstract": "Tin rose.", "Label": "tin"})
    (document,) = open_corpus(path).train
    assert (document.zones, document.topics) == ({"title": "Tin up", "body": "Tin rose."}, ("tin",))
    assert "text from 'abstract', title from 'Headline', topics from 'Label'" in caplog.text


@pytest.mark.parametrize("form", ["csv", "tsv", "parquet"])
@pytest.mark.parametrize("columns", [("story", "abstract"), ("title",), ("note", "headline")])
def test_columns_are_not_guessed_among_several_or_by_a_title_alone(tmp_path, form, columns):
    path = write(tmp_path, form, dict.fromkeys((*columns, "topics"), "tin"))
    sentence = (
        rf"has no column 'text' \(only {', '.join(columns)}, topics\).*: name the texts' column with --text-field"
    )
    with pytest.raises(TextcatError, match=sentence):
        open_corpus(path)
    (fault,) = [
        item for batch in read_batches(find_sources([path], InputSettings()), InputSettings()) for item in batch.blocks
    ]
    assert f"has no column 'text' (only {', '.join(columns)}, topics)" in fault.reason


@pytest.mark.parametrize("row", ["Wheat rose,grain", "7,grain", "Gold fell in London.,metal,money"])
def test_a_first_row_that_reads_like_a_document_names_the_option(tmp_path, row):
    (tmp_path / "a.csv").write_text(f"{row}\n{row}\n")
    with pytest.raises(TextcatError, match="which seems to be no header: name its columns with --columns"):
        open_corpus(tmp_path / "a.csv")


def test_default_names_come_first(tmp_path):
    path = write(tmp_path, "csv", {"text": "Tin", "story": "x", "topics": "tin", "label": "y", "nr": "7"})
    (document,) = open_corpus(path).train
    assert (document.zones["body"], document.topics) == ("Tin", ("tin",))
    assert document.id != "7"


def test_quotes_may_be_ordinary_characters(tmp_path):
    path = tmp_path / "a.tsv"
    path.write_text('text\ttopics\n"Tin rose\ttin\n5" of tin"\ttin\n', encoding="utf-8")
    with pytest.raises(TextcatError, match=r"a\.tsv: the row of line 2 has wrong quotes"):
        open_corpus(path)
    assert trained_on(path, plain_quotes=True)[0] == [("", '"Tin rose'), ("", '5" of tin"')]
    assert tagged(path, plain_quotes=True, block_bytes=5) == [("", '"Tin rose'), ("", '5" of tin"')]


@pytest.mark.parametrize("form", ["tsv", "csv"])
@pytest.mark.parametrize("mark", ["", "\ufeff", "utf-16"])
@pytest.mark.parametrize("plain_quotes", [False, True])
def test_columns_are_named_where_no_row_has_their_names(tmp_path, form, mark, plain_quotes):
    text = BARE[form].replace('"', '"' if plain_quotes else "")
    (tmp_path / f"a.{form}").write_bytes(text.encode("utf-16") if mark == "utf-16" else (mark + text).encode())
    how = {"columns": ("title", "topics"), "topics_separator": " ", "plain_quotes": plain_quotes}
    titles = [(line.partition(";" if form == "csv" else "\t")[0], "") for line in text.splitlines() if line.strip()]
    topics = [("p1", "p2"), ("p3", "p1"), ()]
    assert trained_on(tmp_path / f"a.{form}", **how) == (titles, topics)
    assert tagged(tmp_path / f"a.{form}", **how) == titles
    one_by_one = InputSettings(**how, block_bytes=1)
    items = [
        record
        for batch in read_batches(find_sources([tmp_path / f"a.{form}"], one_by_one), one_by_one)
        for record in formats.batch_records(batch, one_by_one)
    ]
    assert [item.position for item in items] == ([1, 3, 4] if form == "tsv" else [1, 2, 3])


def test_rows_without_quotes_are_the_same_read_together_or_each_by_itself(tmp_path):
    header, rows = "id\ttext\ttopics\tsplit\n", ["1\tTin\tp1;p2\ttest", "", " \t", "2\t Gold \tp1\t", "\tx\t\ttrain"]
    how = InputSettings(plain_quotes=True, topics_separator=";")
    for broken in ("", "3\ttoo few", "3\tNUL\0\tp1\t"):
        (tmp_path / "a.tsv").write_text(header + "\n".join([*rows, broken]) + "\r\n")
        together, single = (
            [
                ((item.id, item.source, item.position) if isinstance(item, Record) else item)
                for batch in read_batches(find_sources([tmp_path / "a.tsv"], how), how)
                for item in formats.batch_records(batch, how)
            ]
            for how in (how, how._replace(block_bytes=1))
        )
        assert together == single
        assert len(together) == (4 if broken else 3)
    with pytest.raises(TextcatError, match=r"a\.tsv: the row of line 7 has a NUL byte"):
        open_corpus(tmp_path / "a.tsv", settings=how)


def test_default_names_may_have_capitals(tmp_path):
    (tmp_path / "a.csv").write_text("Doc Nr.,Title,Text,Topics\n1,Up,Tin rose,tin\n")
    (document,) = open_corpus(tmp_path / "a.csv").train
    assert (document.zones, document.topics) == ({"title": "Up", "body": "Tin rose"}, ("tin",))


@pytest.mark.parametrize("names", ["id,title,The Story,topics", "Doc Nr.,Title,My Story,My Topics"])
def test_a_header_with_a_usual_name_is_one_however_long_the_others_are(tmp_path, names):
    (tmp_path / "a.csv").write_text(f"{names}\n1,2,3{',4' * (names.count(',') - 2)}\n")
    with pytest.raises(TextcatError, match=r"has no column 'text' \(only .*--text-field"):
        open_corpus(tmp_path / "a.csv")
