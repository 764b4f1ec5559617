"""Archives of the web: pages in WARC and WET, with what surrounds them, and damaged ones."""

import gzip
import io
import random
import tracemalloc
import zipfile
from functools import partial

import brotli
import pytest
import zstandard
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from read_sources import COMPRESSIONS, faults, ids, read, tarred, zipped
from web_records import PAGE, TEXT, pages, record, response

from textcat import open_corpus
from textcat.base.errors import TextcatError
from textcat.reading import FaultKind, InputSettings, Record, find_sources, read_batches, text_of_file


def damage(found):
    return [fault for fault in faults(found) if fault.kind is not FaultKind.LEFT_OUT]


def reasons(found):
    return [fault.reason for fault in faults(found)]


def body(found):
    (one,) = found
    return one.zones["body"]


def test_a_page_gives_its_title_text_date_language_and_address(folder):
    (folder / "a").write_bytes(response(PAGE))
    assert find_sources(["a"], InputSettings())[0].format == "warc"
    (one,) = read("a", fields=("*",))
    assert (one.id, one.date, one.language) == ("urn:uuid:1", "2024-05-01T10:00:00Z", "en-GB")
    assert one.zones["title"] == "Tin rose"
    assert one.zones["body"].startswith("Home Sport Weather\nTin rose\n")
    assert one.fields == {
        "uri": "http://example.org/1",
        "date": "2024-05-01T10:00:00Z",
        "language": "en-GB",
        "published": "2024-04-30",
    }
    assert read("a", fields=("uri",))[0].fields == {"uri": "http://example.org/1"}


def test_a_text_of_wet_gives_its_text_and_the_language_that_was_identified(folder):
    language = {"WARC_Identified_Content_Language": "deu,eng"}
    wet = record("conversion", "Zinn stieg.\nGold fiel é.".encode(), 1, "text/plain", **language)
    (folder / "a.warc.wet.gz").write_bytes(gzip.compress(record("warcinfo", b"a: b", 9)) + gzip.compress(wet))
    left_out, one = read("a.warc.wet.gz")
    assert (one.zones, one.language) == ({"body": "Zinn stieg.\nGold fiel é."}, "deu")
    assert left_out.reason == "Record 1 is a warcinfo record, not a page: it is left out."


def test_what_is_no_page_is_left_out_with_its_reason(folder):
    (folder / "a.warc").write_bytes(
        b"".join(
            [
                record("request", b"GET / HTTP/1.1\r\n\r\n"),
                record("revisit", b"HTTP/1.1 200 OK\r\n\r\n"),
                record("metadata", b"{}"),
                record("rubbish", b"{}"),
                response("<p>Not found", status="404 Not Found"),
                response(b"\x89PNG", form="image/png"),
                record("response", b"1.2.3.4", form="text/dns"),
                response("{}", form=""),
                response("<p>Tin", WARC_Segment_Number=1),
                response("<html><p>Tin.", form=""),
                response("Tin.", form="Text/Plain; charset=x"),
                record("resource", b"<p>Tin.", form="text/html"),
            ]
        )
    )
    found = read("a.warc")
    assert [one.zones["body"] for one in found if isinstance(one, Record)] == ["Tin.", "Tin.", "Tin."]
    assert {fault.kind for fault in faults(found)} == {FaultKind.LEFT_OUT}
    assert reasons(found) == [
        "Record 1 is a request record, not a page: it is left out.",
        "Record 2 is a revisit record, not a page: it is left out.",
        "Record 3 is a metadata record, not a page: it is left out.",
        "Record 4 is a record of an unknown type, not a page: it is left out.",
        "Record 5 has the HTTP status 404: it is left out.",
        "Record 6 is neither HTML nor plain text: it is left out.",
        "Record 7 is neither HTML nor plain text: it is left out.",
        "Record 8 is neither HTML nor plain text: it is left out.",
        "Record 9 is one of several parts of a page: it is left out.",
    ]


@pytest.mark.parametrize(
    ("fields", "stored"),
    [
        ("Transfer-Encoding: chunked", b"4\r\n<p>T\r\n3;a=b\r\nin.\r\n0\r\n\r\n"),
        ("Transfer-Encoding: chunked", b"<p>Tin."),
        ("Content-Encoding: gzip", gzip.compress(b"<p>Tin.")),
        ("Content-Encoding: gzip", b"<p>Tin."),
        ("Content-Encoding: br", brotli.compress(b"<p>Tin.")),
        ("Content-Encoding: br", b"<p>Tin."),
        ("Content-Encoding: deflate", b"x\x9c\xb3)\xb0\x0b\xc9\xcc\xd3\x03\x00\x07Y\x01\xf3"),
        ("Content-Encoding: identity", b"<p>Tin."),
        ("Content-Encoding: br, gzip", gzip.compress(brotli.compress(b"<p>Tin."))),
    ],
)
def test_a_body_is_unpacked_as_its_fields_say_or_read_as_it_is(folder, fields, stored):
    if "deflate" in fields:
        import zlib

        stored = zlib.compress(b"<p>Tin.")
    (folder / "a.warc").write_bytes(response(stored, fields=f"{fields}\r\n"))
    assert body(read("a.warc")) == "Tin."


@pytest.mark.parametrize("pack", [gzip.compress, partial(brotli.compress, quality=5)], ids=["gzip", "br"])
def test_a_body_that_is_a_bomb_or_cut_off_is_rejected(folder, pack):
    field = f"Content-Encoding: {'gzip' if pack is gzip.compress else 'br'}\r\n"
    packed = pack(random.Random(1).randbytes(30_000))
    bomb, cut = pack(b"<p>" + bytes(18 << 20)), packed[:-100]
    cut_by_crawler = response(cut, 3, fields=field, WARC_Truncated="length", form="text/plain; charset=latin-1")
    (folder / "a.warc").write_bytes(response(bomb, fields=field) + response(cut, 2, fields=field) + cut_by_crawler)
    tracemalloc.start()
    found = read("a.warc")
    assert tracemalloc.get_traced_memory()[1] < 80 << 20
    tracemalloc.stop()
    assert "unpacks to more than 16777216 bytes" in reasons(found)[0]
    assert "damaged body (it is cut off)" in reasons(found)[1]
    assert "cut off" not in " ".join(reasons(found)[2:])  # that the crawler cut is known to be cut


@pytest.mark.parametrize(
    ("form", "html", "text"),
    [
        ("text/html; charset=windows-1251", "<meta charset=utf-8><p>Олово".encode("cp1251"), "Олово"),
        ("text/html", "<meta charset=windows-1251><p>Олово".encode("cp1251"), "Олово"),
        ("text/html", "<p>é".encode(), "é"),
        ("text/html", "<p>é".encode("latin-1"), "é"),
        ("text/html; charset=rubbish", "<p>é".encode(), "é"),
        ('text/html; charset="ISO-8859-1"', "\ufeff<p>é".encode(), "é"),
        ("text/plain; charset=latin-1", "é".encode("latin-1"), "é"),
    ],
)
def test_the_encoding_is_that_of_the_response_or_of_the_page_or_else_utf8(folder, form, html, text):
    (folder / "a.warc").write_bytes(response(html, form=form))
    assert body(read("a.warc")) == text


@pytest.mark.parametrize("version", [b"WARC/1.0", b"WARC/0.18"])
def test_all_versions_and_plain_line_ends_are_read(folder, version):
    data = response("<p>Tin.", version=version)
    (folder / "a.warc").write_bytes(data + data.replace(b"uuid:1", b"uuid:2").replace(b"\r\n", b"\n", 8))
    assert len(read("a.warc", encoding="")) == 2


@pytest.mark.parametrize("ending", COMPRESSIONS)
def test_records_are_members_of_their_own_or_not(folder, ending):
    pack = COMPRESSIONS[ending]
    (folder / f"a.warc{ending}").write_bytes(b"".join(map(pack, pages(20))))
    (folder / f"b.warc{ending}").write_bytes(pack(b"".join(pages(20))))
    assert ids(read(f"a.warc{ending}")) == ids(read(f"b.warc{ending}")) == [f"urn:uuid:{i}" for i in range(1, 21)]


def test_archives_of_the_web_are_read_in_zips_tars_and_urls(folder):
    data = gzip.compress(response(PAGE))
    (folder / "a.zip").write_bytes(zipped(("x/a.warc.gz", data), method=zipfile.ZIP_STORED))
    (folder / "a.tar").write_bytes(tarred(("x/a.warc.gz", data), ("x/b", data)))
    (folder / "a.warc.gz").write_bytes(data)
    assert ids(read("a.zip", "a.tar", (folder / "a.warc.gz").as_uri())) == ["urn:uuid:1"] * 4


@pytest.mark.parametrize("block_bytes", [1, 500, 3000, 1 << 20])
def test_reading_resumes_from_every_checkpoint(folder, block_bytes):
    (folder / "a.warc.gz").write_bytes(b"".join(map(gzip.compress, pages(12, 40))))
    how = InputSettings(block_bytes=block_bytes)
    sources = find_sources(["a.warc.gz"], how)
    batches = list(read_batches(sources, how))
    for i, batch in enumerate(batches):
        assert list(read_batches(sources, how, batch.end)) == batches[i + 1 :]
    assert read("a.warc.gz", block_bytes=block_bytes) == read("a.warc.gz")


# --- damage -----------------------------------------------------------------------------------------------------------

RECORDS = pages(10, 100)
UNCHECKED = settings(suppress_health_check=list(HealthCheck))


@UNCHECKED
@given(st.integers(0, len(RECORDS) - 2), st.floats(0, 1), st.sampled_from([gzip.compress, zstandard.compress, bytes]))
def test_where_a_record_is_torn_it_alone_is_missing_and_is_told(tmp_path_factory, number, share, pack):
    ending = {gzip.compress: ".gz", zstandard.compress: ".zst"}.get(pack, "")
    path = tmp_path_factory.mktemp("torn") / f"a.warc{ending}"
    packed = [pack(one) for one in RECORDS]
    whole = packed[number] if pack is not bytes else packed[number][:-4]  # the empty lines behind it may be missing
    packed[number] = whole[: int(share * (len(whole) - 1))]
    path.write_bytes(b"".join(packed))
    found = read(path)
    kept = [f"urn:uuid:{i}" for i in range(1, 11) if not number % 2 or i != number // 2 + 1]
    assert ids(found) == kept
    assert len(damage(found)) == bool(packed[number])


@UNCHECKED
@given(st.integers(0, len(RECORDS) - 2), st.floats(0, 0.999), st.integers(1, 255), st.sampled_from([gzip, zstandard]))
def test_where_a_packed_byte_is_changed_the_other_records_are_read(tmp_path_factory, number, share, flipped, packer):
    path = tmp_path_factory.mktemp("torn") / f"a.warc.{'gz' if packer is gzip else 'zst'}"
    pack = gzip.compress if packer is gzip else zstandard.ZstdCompressor(write_checksum=True).compress
    packed = [bytearray(pack(one)) for one in RECORDS]
    packed[number][int(share * len(packed[number]))] ^= flipped
    path.write_bytes(b"".join(packed))
    found = read(path)
    others = {f"urn:uuid:{i}" for i in range(1, 11)} - {f"urn:uuid:{number // 2 + 1}"}
    assert others <= set(ids(found))
    assert len(ids(found)) == len(set(ids(found)))


def test_a_record_that_ends_by_chance_where_another_ends_is_told_to_be_torn(folder):
    before, other, behind = (response("<p>Tin. " * 40, number) for number in (1, 3, 4))
    torn = response("<p>Tin. " * 90, 2)
    (folder / "a.warc").write_bytes(before + torn[: len(torn) - len(other)] + other + behind)
    for block_bytes in (1, 1 << 20):
        found = read("a.warc", block_bytes=block_bytes)
        assert ids(found) == ["urn:uuid:1", "urn:uuid:3", "urn:uuid:4"]
        assert len(damage(found)) == 1


def test_a_page_may_show_the_head_of_a_record(folder):
    shown = response("<p>WARC/1.0\r\nWARC-Type: response\r\nContent-Length: 5\r\n\r\n<p>That was a head. " * 9)
    (folder / "a.warc").write_bytes(shown * 3)
    assert ids(read("a.warc")) == ["urn:uuid:1"] * 3


def test_a_cut_archive_is_told_and_what_comes_before_is_read(folder):
    data = b"".join(map(gzip.compress, pages(5)))
    (folder / "a.warc.gz").write_bytes(data[:-50])
    (folder / "b.warc").write_bytes(b"".join(pages(5))[:-50])
    assert ids(read("a.warc.gz")) == ids(read("b.warc")) == [f"urn:uuid:{i}" for i in range(1, 5)]
    assert "is damaged or incomplete" in reasons(read("a.warc.gz"))[-1]
    assert "is cut off: it has" in reasons(read("b.warc"))[-1]


def test_records_behind_a_long_damaged_member_are_read_too(folder):
    noise = random.Random(3).randbytes(3 << 20)
    members = [*map(gzip.compress, [*pages(1), response(noise, 7, form="image/png"), *pages(1)])]
    torn = [*members[:2], members[2][: 2 << 20], *members[3:]]
    (folder / "a.warc.gz").write_bytes(b"".join(torn))
    found = read("a.warc.gz")
    assert ids(found) == ["urn:uuid:1"] * 2
    assert len(damage(found)) == 1


def test_a_record_that_is_too_long_is_passed_over(folder):
    long = [response("<p>Tin. " * 1000, 8), response(b"x" * 9000, 9, form="video/mp4"), record("request", b"x" * 9000)]
    (folder / "a.warc").write_bytes(b"".join([*pages(1), *long, *pages(1)]))
    for block_bytes in (1, 100):
        found = read("a.warc", max_bytes=5000, block_bytes=block_bytes)
        assert ids(found) == ["urn:uuid:1"] * 2
        assert "but a record may have at most 5000" in reasons(found)[1]
        assert [fault.kind is FaultKind.LEFT_OUT for fault in faults(found)[2:4]] == [True, True]


def test_memory_is_bounded_by_the_longest_record(folder):
    with gzip.open(folder / "a.warc.gz", "wb", 1) as file:
        body = b"x" * (1 << 20)
        size = 200 * len(body)
        file.write(record("response", b"", form="video/mp4").replace(b"Length: 0", b"Length: %d" % size)[:-4])
        for _ in range(200):
            file.write(random.Random(1).randbytes(100) + body[:-100])
        file.write(b"\r\n\r\n" + b"".join(pages(1)))
    tracemalloc.start()
    found = read("a.warc.gz")
    assert tracemalloc.get_traced_memory()[1] < 100 << 20
    tracemalloc.stop()
    assert ids(found) == ["urn:uuid:1"]


@pytest.mark.parametrize("data", [b"WARC/1.1\r\n" * 50_000, b"WARC/1.1\r\nA: b\r\n\r\n" * 25_000])
def test_heads_without_end_take_time_in_proportion_to_their_length(folder, data):
    (folder / "a.warc").write_bytes(data)
    assert ids(read("a.warc")) == []


# --- corpora and single documents -------------------------------------------------------------------------------------


def test_a_corpus_takes_the_topics_from_folders_and_files(folder, caplog):
    for name in ("tin", "gold"):
        (folder / f"{name}.warc.gz").write_bytes(
            b"".join(map(gzip.compress, [
                record("request", b"GET", f"{name}-1"),
                response(f"<p>{name}", f"{name}-2"),
                record("request", b"GET", f"{name}-3"),
                response(b"x" * (17 << 20), f"{name}-4", form="video/mp4"),
                response("<p>No", f"{name}-5", status="404 Not Found"),
            ]))
        )  # fmt: skip
    documents = open_corpus(".").train
    assert [(one.zones["body"], one.topics) for one in documents] == [("gold", ("gold",)), ("tin", ("tin",))]
    told = [entry.getMessage() for entry in caplog.records if "gold" in entry.getMessage()]
    assert len(told) == len({*told}) == 3
    assert any("what is a request record, not a page, is left out" in text for text in told)


def test_a_corpus_with_a_torn_record_is_refused(folder):
    (folder / "tin.warc").write_bytes(b"".join(pages(3))[:-30])
    with pytest.raises(TextcatError, match=r"damaged or incomplete .*cut off"):
        open_corpus("tin.warc")


def test_one_page_is_a_document_for_the_server():
    data = io.BytesIO(b"".join(pages(1))).getvalue()
    assert text_of_file("a.warc", data)["title"] == "Tin 1"
    assert text_of_file("a", data)["title"] == "Tin 1"
    with pytest.raises(TextcatError, match="has 2 documents"):
        text_of_file("a.warc", b"".join(pages(2)))


def test_the_main_text_is_read_if_it_is_asked_for(folder):
    (folder / "a.warc").write_bytes(response(PAGE))
    (one,) = read("a.warc", main_text=True, fields=("author", "published"))
    assert one.zones["title"] == "Tin rose"
    assert TEXT in one.zones["body"]
    assert not {"Sport", "Wheat", "Imprint"} & {*one.zones["body"].replace("\n", " ").split()}
    assert one.fields == {"author": "Ann Smith", "published": "2024-04-30"}


def test_a_log_of_the_crawler_is_left_out(folder):
    log = record("resource", b"wget a b", form="text/plain", WARC_Target_URI="<metadata://gnu.org/wget/log.txt>")
    (folder / "a.warc").write_bytes(log)
    assert reasons(read("a.warc")) == ["Record 1 is a log of the crawler, not a page: it is left out."]
