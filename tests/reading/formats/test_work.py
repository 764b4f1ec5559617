"""The work of the readers grows no faster than their input: calls and bytes are counted, not time."""

import sys

import pytest
from cases import every
from formats_read import parsed
from lxml import etree
from read_sources import faults, read
from scanned_pages import ISSUE, MODS, alto, area, article, file_of, line, mets

from textcat.reading import InputSettings, batch_records, find_sources, read_batches, text_of_file
from textcat.reading.columns import columns_among
from textcat.reading.formats import mets as mets_format
from textcat.reading.formats.alto import read_page
from textcat.reading.formats.delimited import RowCutter, row_ends


def calls(function, *arguments):
    """How many functions are called, those of C and each step of a generator among them."""
    n = 0

    def count(_frame, event, _argument):
        nonlocal n
        n += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        function(*arguments)
    finally:
        sys.setprofile(before)
    return n


def written(folder, files):
    for name, data in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)


def deep(tag, depth, inside):
    return f'<{tag} ID="d">' * depth + inside + f"</{tag}>" * depth


def newsml(inside):
    return f"<NewsML><NewsItem>{inside}</NewsItem></NewsML>".encode()


def links(to, n):
    return "<mets:structLink>" + f'<mets:smLink xlink:from="A" xlink:to="{to}"/>' * n + "</mets:structLink>"


STRINGS = '<String CONTENT="a"/>' * 300
BLOCKS = "".join(line(f"B{number}", "a", "b") for number in range(200))
ORDER = '<ReadingOrder><OrderedGroup ID="g"><ElementRef ID="r" REF="B7 L3"/></OrderedGroup></ReadingOrder>'


# Each takes a depth or a number, and gives the files of a folder.
DEEP = {
    "blocks in blocks, in reading order": lambda depth: {
        "1.xml": alto(deep("ComposedBlock", depth, BLOCKS), order=ORDER)
    },
    "blocks in blocks that are looked for": lambda depth: {
        "1.xml": alto(deep("ComposedBlock", depth, BLOCKS)),
        "mets.xml": mets(["1.xml"], article("A", "", area(1, "d") + area(1, "B3"))),
    },
    "words in lines that are looked for": lambda depth: {
        "1.xml": alto(f'<TextBlock ID="B">{deep("TextLine", depth, STRINGS)}</TextBlock>'),
        "mets.xml": mets(["1.xml"], article("A", "", area(1, "d"))),
    },
    "articles in parts of an issue": lambda depth: {
        "1.xml": alto(BLOCKS),
        "mets.xml": mets(
            ["1.xml"], deep("mets:div", depth, "".join(article(f"A{n}", "", area(1, f"B{n}")) for n in range(100)))
        ),
    },
    "files in groups": lambda depth: {
        "1.xml": alto(BLOCKS),
        "mets.xml": mets(["1.xml"]).replace(
            b"</mets:fileSec>",
            deep("mets:fileGrp", depth, file_of(1, "1.xml") * 100).encode() + b"</mets:fileSec>",
        ),
    },
    "contents in contents": lambda depth: {
        "1.xml": newsml("<ContentItem><DataContent>" * depth + "<p/>" * 300 + "</DataContent></ContentItem>" * depth)
    },
}


@pytest.mark.parametrize("shape", DEEP)
def test_what_is_around_elements_is_looked_up_once(folder, shape):
    written(folder, DEEP[shape](2))
    read(".")  # what is imported and kept is so by now
    flat = calls(read, ".")
    written(folder, DEEP[shape](100))
    assert calls(read, ".") <= flat + 100 * 120  # a few for each element around, none for each inside of each


def _sections(n):
    return "".join(MODS.format(name=f"N{number}", said="") for number in range(n))


MANY = {
    "sections without dates, of articles": lambda n: {
        "1.xml": alto(BLOCKS),
        "mets.xml": mets(["1.xml"], article("A", "", area(1, "B1")) * n, sections=_sections(n)),
    },
    "links of many articles to the same parts": lambda n: {
        "1.xml": alto(BLOCKS),
        "mets.xml": mets(
            ["1.xml"],
            '<mets:div ID="P"/>' + '<mets:div ID="A" TYPE="ARTICLE"/>' * n,
            more=links("P", n),
        ),
    },
}


@pytest.mark.parametrize("shape", MANY)
def test_what_is_the_same_for_a_file_is_found_once(folder, shape):
    written(folder, MANY[shape](10))
    read(".")
    few = calls(read, ".")
    written(folder, MANY[shape](25))
    some = calls(read, ".")
    written(folder, MANY[shape](100))
    assert calls(read, ".") - some <= 6 * (some - few)  # five times as many more


def test_an_item_is_parsed_with_the_namespaces_that_it_has(monkeypatch):
    declared = b"".join(b" xmlns:n%d='urn:%d'" % (number, number) for number in range(1000))
    header = b"<rss xmlns='%s'%s><channel>" % (b"u" * 10_000, declared)
    item = b"<item n3:a='b'><n17:title>Tin</n17:title><n999:guid>1</n999:guid></item>"
    lengths = []
    parse = etree.fromstring
    monkeypatch.setattr(etree, "fromstring", lambda data, parser: lengths.append(len(data)) or parse(data, parser))
    first, second = parsed("rss", item * 2, header=header)
    assert first.zones == second.zones == {"title": "Tin"}
    assert (first.id, len(lengths)) == ("1", 2)
    assert max(lengths) < len(item) + 200
    (unknown,) = parsed("rss", item.replace(b"n17", b"x"), header=header)
    assert "not well-formed" in unknown.reason


def test_a_prefix_of_a_file_with_few_namespaces_is_known():
    header = b"<rss xmlns:a='urn:a' xmlns:b='%s'><channel>" % (b"u" * 1000)
    assert parsed("rss", b"<item><b:title>Tin</b:title></item>", header=header)[0].zones == {"title": "Tin"}


# --- scanned pages ----------------------------------------------------------------------------------------------------


def blocks_read(files, folder):
    written(folder, files)
    settings = InputSettings()
    batches = list(read_batches(find_sources(["mets.xml"], settings), settings))
    found = [item for batch in batches for item in batch_records(batch, settings)]
    return [block for batch in batches for block in batch.blocks], found


def test_a_title_that_many_articles_share_is_stored_once_and_bounded(folder):
    section = ISSUE.replace("Tin Daily", "Tin " * 20_000)
    articles = article("A", "", area(1, "B1"), said='DMDID="M1"') * 50
    (block,), found = blocks_read({"1.xml": alto(BLOCKS), "mets.xml": mets(["1.xml"], articles, section)}, folder)
    assert len(found) == 50
    assert found[0].zones["title"].startswith("The Tin Tin ")
    assert len(found[0].zones["title"]) <= 4096
    assert all(item.zones["title"] is found[0].zones["title"] for item in found)
    assert len(block.header) < 10_000


def test_a_long_id_that_many_links_lead_to_is_stored_once(folder):
    name = "B" * 10_000
    part = f'<mets:div ID="P">{area(1, name)}</mets:div>'
    files = {
        "1.xml": alto(line(name, "a")),
        "mets.xml": mets(["1.xml"], f'<mets:div ID="A" TYPE="ARTICLE"/>{part}', more=links("P", 100)),
    }
    (block,), (item,) = blocks_read(files, folder)
    assert item.zones["body"].split() == ["a"] * 100
    assert len(block.header) < 20_000


def test_a_document_that_repeats_a_part_of_a_page_is_as_long_as_a_record_at_most(folder):
    written(
        folder,
        {"1.xml": alto(line("B1", "a" * 1000)), "mets.xml": mets(["1.xml"], article("A", "", area(1, "B1") * 9))},
    )
    assert len(read("mets.xml", max_bytes=10_000)[0].zones["body"]) == 9 * 1001 - 1
    assert "a record may have at most 8000" in faults(read("mets.xml", max_bytes=8000))[0].reason


def test_the_words_of_a_page_are_in_a_bounded_number_of_documents(folder, monkeypatch):
    monkeypatch.setattr(mets_format, "LEAST_WORDS", 0)
    monkeypatch.setattr(mets_format, "MOST_TIMES", 3)
    written(
        folder, {"1.xml": alto(line("B1", "a", "b")), "mets.xml": mets(["1.xml"], article("A", "", area(1, "B1")) * 4)}
    )
    assert [bool(faults([item])) for item in read("mets.xml")] == [False, False, False, True]
    monkeypatch.setattr(mets_format, "LEAST_WORDS", 8)
    assert not faults(read("mets.xml"))


def naive_words(root, places, name):
    """The words of the elements with an ID, in reading order, by asking each word for all that is around it."""
    strings = [element for element in root.iter() if element.tag.endswith("String")]
    inside = [
        k for k, one in enumerate(strings) if name in {one.get("ID"), *(up.get("ID") for up in one.iterancestors())}
    ]
    return [strings[k].get("CONTENT") for k in sorted(inside, key=places.__getitem__)]


@every("order", ["", "B5 B1 B3", "C1 B0", "B9 B8 B7 B6 B5 B4 B3 B2 B1 B0"])
def test_elements_have_the_words_that_a_naive_reader_finds(order):
    blocks = [
        f'<TextBlock ID="B{n}"><TextLine ID="L{n % 3}"><String ID="S{n}" CONTENT="{n}"/><String CONTENT="{n}x"/>'
        "</TextLine></TextBlock>"
        for n in range(10)
    ]
    inner = blocks[2] + '<ComposedBlock ID="C1">' + "".join(blocks[3:6]) + "</ComposedBlock>"
    inner = f'<ComposedBlock ID="C1">{inner}</ComposedBlock>'
    said = f'<ReadingOrder><OrderedGroup ID="g"><ElementRef ID="r" REF="{order}"/></OrderedGroup></ReadingOrder>'
    data = alto("".join(blocks[:2]), inner, "".join(blocks[6:]), order=said if order else "")
    names = ["P1", "PS", "C1", "B4", "L0", "L1", "S7", "r"]
    page = read_page(data, InputSettings(), names)
    read_in_order = [word.text for word in page.words]
    root = etree.fromstring(data)
    in_file = [element.get("CONTENT") for element in root.iter() if element.tag.endswith("String")]
    places = [read_in_order.index(text) for text in in_file]
    assert sorted(places) == list(range(20))
    for name in names:
        assert [word.text for word in page.between(name, "") or ()] == naive_words(root, places, name)
    assert page.between("none", "") is None
    first, last = page.between("B4", "")[0], page.between("S7", "")[-1]
    start, stop = page.words.index(first), page.words.index(last)
    expected = page.words[start : stop + 1] if start <= stop else page.between("B4", "")
    assert page.between("B4", "S7") == expected


@pytest.mark.parametrize(
    "text",
    [
        "[" * 2000,
        "[" * 1000 + "]" * 1000,
        "[a " * 700,
        "![" * 1000,
        "![[ " * 500,
        "[*" * 1000,
        "[a]: b\n\n" + "[`" * 1000,
    ],
)
def test_open_brackets_of_markdown_are_looked_at_a_few_times_however_many_are_around_them(text):
    text_of_file("a.md", b"[a](b)")  # imports the parser
    assert calls(text_of_file, "a.md", text.encode()) < 100 * len(text)


@pytest.mark.parametrize("piece", ["[", "![", "[#", "[ "])
def test_brackets_that_nothing_closes_are_text_like_any_other(piece):
    text_of_file("a.md", b"[a](b)")
    other = calls(text_of_file, "a.md", f"[a](b) {piece.replace('[', '!') * 1000}".encode())
    assert calls(text_of_file, "a.md", f"[a](b) {piece * 1000}".encode()) < 2 * other


def test_a_table_may_have_very_many_columns():
    # Were each name looked for among all of them, this would take minutes.
    names = ["text", *(f"c{i}" for i in range(100_000))]
    which = columns_among(names, InputSettings(fields=("*",)))
    assert len(which.names()) == 100_001


class CountedBytes(bytes):
    """Bytes that count those which are searched."""

    n_searched = 0

    def find(self, part, start=0, end=sys.maxsize):
        place = super().find(part, start, end)
        self.n_searched += (min(end, len(self)) if place < 0 else place + 1) - start
        return place


@every("final", [True, False])
@every("piece", [b';""', b';",', b'a""', b'\\"', b'""', b'"a";', b'"a";"\n";', b';""\n', b'"\n', b'"a\n', b'\r"'])
def test_of_rows_with_quotes_each_byte_is_searched_a_few_times(piece, final):
    data = CountedBytes(piece * 3000)
    for _ in row_ends(data, b";", final):
        pass
    assert data.n_searched < 10 * len(data)


@pytest.mark.parametrize("piece", [b';""', b'a""', b'\\"', b'"a";', b'"a";"\n";', b'\r"'])
def test_of_a_row_that_is_passed_over_each_byte_is_searched_a_few_times(piece):
    data = CountedBytes(piece * 3000)
    RowCutter(b"id;text\n", "csv", InputSettings()).skip(data)
    assert data.n_searched < 10 * len(data)
