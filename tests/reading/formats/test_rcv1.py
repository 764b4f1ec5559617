"""Reuters Corpus Volume 1 on made-up files in its format: stories, days, zips, splits, and training on it."""

import gzip
import io
import os
import stat
import sys
import tarfile
import zipfile
from collections import Counter

import pytest
from cases import every
from corpus_files import parse as parse_file
from corpus_files import read, read_one_by_one
from hypothesis import given
from hypothesis import strategies as st

import textcat
from textcat import cli
from textcat.base.errors import TextcatError
from textcat.corpus import fetch
from textcat.corpus.cards import card, read_card
from textcat.corpus.catalogue import open_corpus
from textcat.corpus.fetch import fetch_corpus
from textcat.reading import (
    DamagedError,
    LabelSettings,
    Record,
    Rejection,
    compression,
)
from textcat.reading.formats import rcv1

WEEKS = {"train": "1996-08-26 to 1996-09-01", "test": "1996-09-02 to 1996-09-08"}
STORY = """<?xml version="1.0" encoding="iso-8859-1" ?>
<newsitem itemid="2286" id="root" date="1996-08-20" xml:lang="en">
<title>MEXICO: Tin &amp; gold rise.</title>
<headline>Tin &amp; gold rise.</headline>
<byline>A. Smith</byline>
<dateline>MEXICO CITY 1996-08-20</dateline>
<text>
<p>Tin rose &quot;late&quot;.</p>
<p> The caf\xe9
    closed. </p>
<p></p>
</text>
<copyright>(c) Reuters Limited 1996</copyright>
<metadata>
<codes class="bip:countries:1.0">
  <code code="MEX">
    <editdetail attribution="Reuters BIP Coding Group" action="confirmed" date="1996-08-20"/>
  </code>
</codes>
<codes class="bip:industries:1.0">
  <code code="I22400">
  </code>
</codes>
<codes class="bip:topics:1.0">
  <code code="C15">
    <editdetail attribution="Reuters BIP Coding Group" action="confirmed" date="1996-08-20"/>
  </code>
  <code code="M141">
  </code>
  <code code="C15">
  </code>
</codes>
<dc element="dc.publisher" value="Reuters Holdings Plc"/>
</metadata>
</newsitem>
"""


def parse(text, name="2286newsML.xml", **options):
    data = text if isinstance(text, bytes) else text.encode("latin-1")
    (document,) = parse_file("rcv1", name, data, folder="rcv1", **options)
    return document


def story(itemid, date, topics=("C15",), text="Tin rose.", countries=("MEX",)):
    """A small story of RCV1."""
    codes = "".join(
        f'<codes class="{kind}">{"".join(f"""<code code="{code}"></code>""" for code in chosen)}</codes>'
        for kind, chosen in (("bip:countries:1.0", countries), ("bip:topics:1.0", topics))
    )
    return (
        f'<?xml version="1.0" encoding="iso-8859-1" ?>\n<newsitem itemid="{itemid}" id="root" date="{date}">'
        f"<headline>Story {itemid}.</headline><text><p>{text}</p></text><metadata>{codes}</metadata></newsitem>"
    ).encode("latin-1")


def zip_of(files):
    """The bytes of a zip of {name or ZipInfo: bytes}."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for entry, data in files.items():
            archive.writestr(entry, data)
    return buffer.getvalue()


def write(folder, files):
    for name, data in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)
    return folder


def write_tar(path, files):
    with tarfile.open(path, f"w:{path.suffix[1:]}") as archive:
        for name, data in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return path


def days(first=18000):
    """Two stories a day, the days around the two weeks included: {day: {file: story}}."""
    dates = [f"1996-08-{day}" for day in range(25, 32)] + [f"1996-09-0{day}" for day in range(1, 10)]
    return {
        date.replace("-", ""): {
            f"{itemid}newsML.xml": story(itemid, date, ("CCAT", "C15") if itemid % 2 else ("GCAT",))
            for itemid in range(first + 2 * number, first + 2 * number + 2)
        }
        for number, date in enumerate(dates)
    }


def day_folders():
    return {f"{day}/{name}": data for day, files in days().items() for name, data in files.items()}


def day_zips():
    return {f"{day}.zip": zip_of(files) for day, files in days().items()}


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    """An empty user cache and no other place to search."""
    monkeypatch.delenv("TEXTCAT_CORPORA", raising=False)
    monkeypatch.setattr(fetch, "cache_folder", lambda: tmp_path / "cache")
    return tmp_path / "cache"


# ---- stories ----


def test_a_story_gives_its_id_zones_topics_and_date():
    document = parse(STORY)
    assert (document.id, document.date, document.split) == ("2286", "1996-08-20", "")
    assert document.topics == ("C15", "M141")
    assert list(document.zones) == ["title", "dateline", "body"]
    assert document.zones["title"] == "Tin & gold rise."
    assert document.zones["dateline"] == "MEXICO CITY 1996-08-20"
    assert document.zones["body"] == 'Tin rose "late".\nThe café\n    closed.'


def test_a_story_without_headline_has_its_title():
    assert parse(STORY.replace("<headline>Tin &amp; gold rise.</headline>", "<headline/>")).zones["title"] == (
        "MEXICO: Tin & gold rise."
    )


def test_a_story_without_topic_codes_or_text_is_a_document_all_the_same():
    bare = '<newsitem itemid="7" date="1996-08-20"/>'
    assert parse(bare) == textcat.corpus.documents.Document(
        "7", {"title": "", "dateline": "", "body": ""}, (), "1996-08-20"
    )
    assert parse(STORY.replace("bip:topics:1.0", "bip:other:1.0")).topics == ()


def test_the_declared_encoding_counts_unless_another_is_given():
    assert "café" in parse(STORY.encode("latin-1")).zones["body"]
    utf8 = STORY.replace("iso-8859-1", "utf-8")
    assert "café" in parse(utf8.encode("utf-8")).zones["body"]
    with pytest.raises(TextcatError, match=r"2286newsML.xml in .*rcv1 is not a story .* name its encoding with"):
        parse(utf8.encode("latin-1"))
    assert "café" in parse(utf8.encode("latin-1"), encoding="latin-1").zones["body"]


BOMB = '<!DOCTYPE newsitem [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;">]>'
THIEF = '<!DOCTYPE newsitem [<!ENTITY a SYSTEM "file:///etc/passwd">]>'


@every("encoding", ["iso-8859-1", "utf-16", "cp1252"])
@every("declaration", [BOMB, THIEF])
def test_entities_are_refused_in_every_encoding(declaration, encoding):
    evil = STORY.replace("<newsitem", f"{declaration}<newsitem").replace("Tin rose", "&a; rose")
    evil = evil.replace('<?xml version="1.0" encoding="iso-8859-1" ?>\n', "")
    with pytest.raises(TextcatError, match=r"\(it declares the entity 'a'\)"):
        parse(evil.encode(encoding), encoding="" if encoding == "utf-16" else encoding)


@every(
    "broken, fault",
    [
        (STORY[:-20], "no element found|unclosed token"),
        (STORY.replace("</dateline>", ""), "mismatched tag"),
        (STORY.replace("&amp;", "&"), "not well-formed"),
        (STORY.replace("&amp;", "&nbsp;"), "undefined entity"),
        (STORY.replace(' itemid="2286"', ""), "its newsitem has the itemid ''"),
        (STORY.replace("2286", "x1"), "its newsitem has the itemid 'x1'"),
        (STORY.replace('date="1996-08-20" xml', 'date="20 August" xml'), "its newsitem has the date '20 August'"),
        (STORY.replace("newsitem", "item"), "it has no newsitem"),
        (STORY.replace("iso-8859-1", "latin-99"), "unknown encoding"),
        (STORY.replace("iso-8859-1", "big5"), "multi-byte encodings are not supported|unknown encoding"),
        ("", "no element found"),
    ],
)
def test_a_malformed_story_is_told_with_its_file(broken, fault):
    with pytest.raises(TextcatError, match=rf"^19960820/2286newsML.xml in .*rcv1 is not a story of RCV1 \(.*({fault})"):
        parse(broken, "19960820/2286newsML.xml")


@given(st.binary(max_size=200), st.integers(0, len(STORY)))
def test_no_bytes_break_the_reader(data, place):
    text = STORY.encode("latin-1")
    try:
        document = parse(text[:place] + data + text[place:])
    except TextcatError:
        return
    assert all(isinstance(zone, str) for zone in document.zones.values())


# ---- parts and versions ----


@every(
    "date, itemid, by_date, by_id",
    [
        ("1996-08-25", 2285, "unused", "unused"),
        ("1996-08-26", 2286, "train", "train"),
        ("1996-09-01", 26150, "train", "train"),
        ("1996-09-02", 26151, "test", "test"),
        ("1996-09-08", 810596, "test", "test"),
        ("1996-09-09", 810597, "unused", "unused"),
    ],
)
def test_the_parts_are_ranges_of_dates_or_itemids(date, itemid, by_date, by_id):
    text = story(itemid, date)
    assert parse(text).split == ""
    assert parse(text, **WEEKS).split == by_date
    assert parse(text, train="2286 to 26150", test="26151 to 810596").split == by_id


def test_without_a_test_range_the_other_stories_are_unused():
    assert [parse(story(i, "1996-08-20"), train="1 to 2").split for i in (2, 3)] == ["train", "unused"]


@every("text", ["1996-08-26", "1996-08-26 to 26150", "august", "2286-26150"])
def test_what_is_no_range_is_told(text):
    with pytest.raises(TextcatError, match=f"'{text}' is not a range of stories: write '1996-08-26 to 1996-09-01' or"):
        parse(STORY, train=text)


def test_version_2_adds_the_topics_above_and_leaves_out_stories_without_codes():
    topics = ("C1511", "GSPO", "M11", "E211", "G154")
    added = ("C1511", "C151", "C15", "CCAT", "GSPO", "GCAT", "M11", "MCAT", "E211", "E21", "ECAT", "G154", "G15")
    whole = story(2286, "1996-08-20", topics)
    assert parse(whole, version="1").topics == topics
    assert parse(whole, version="2").topics == added
    for lacking in (story(2286, "1996-08-20", ()), story(2286, "1996-08-20", countries=())):
        assert parse(lacking, version="1", train="2286 to 2286").split == "train"
        assert parse(lacking, version="2", train="2286 to 2286").split == "unused"
    with pytest.raises(TextcatError, match="no version '3' of RCV1: use one of 1, 2"):
        parse(STORY, version="3")


def test_files_that_are_no_stories_are_passed_over():
    for name in ("19960820/2286newsML.xml", "19960820.zip/2286newsML.xml", "rcv1/x/2504NEWS.XML", "1.xml"):
        assert rcv1.is_wanted_story(name, LabelSettings())
    for name in ("codes/topic_codes.txt", "dtds/newsML.xml", "dtds/newsML.dtd", "README", "19960820.zip", "1.html"):
        assert not rcv1.is_wanted_story(name, LabelSettings())


def test_stories_of_other_days_are_not_read():
    for day in ("19960825/", "rcv1/19960909/", "19960909.zip/", "19960909.ZIP/x/"):
        assert not rcv1.is_wanted_story(f"{day}1newsML.xml", LabelSettings(**WEEKS))
        assert rcv1.is_wanted_story(f"{day}1newsML.xml", LabelSettings(train="1 to 2", test=WEEKS["test"]))
    assert rcv1.is_wanted_story("19960826/1newsML.xml", LabelSettings(**WEEKS))
    assert rcv1.is_wanted_story("1newsML.xml", LabelSettings(**WEEKS))


# ---- folders and archives ----


def sources(folder):
    """The same stories in every packing."""
    zips = {**day_zips(), "codes.zip": zip_of({"topic_codes.txt": b"C15"})}
    (folder / "whole.zip").write_bytes(zip_of(zips))
    (folder / "flat.zip").write_bytes(zip_of({name.split("/")[1]: data for name, data in day_folders().items()}))
    return [
        write(folder / "zips", zips),
        write(folder / "folders", {**day_folders(), "dtds/newsML.dtd": b"", "19960826/.hidden.xml": b""}),
        write(folder / "compressed", {f"{name}.gz": gzip.compress(data) for name, data in day_folders().items()}),
        folder / "whole.zip",
        folder / "flat.zip",
        write_tar(folder / "a.tar.xz", {f"rcv1/{name}": data for name, data in day_folders().items()}),
        write_tar(folder / "b.tar.gz", {f"rcv1/{name}": data for name, data in zips.items()}),
        write_tar(folder / "c.tar.gz", {f"{name}.gz": gzip.compress(data) for name, data in day_folders().items()}),
    ]


def test_folders_zips_and_archives_give_the_same_stories(tmp_path):
    expected = [parse(data, **WEEKS) for data in day_folders().values()]
    used = [document for document in expected if document.split != "unused"]
    assert Counter(document.split for document in expected) == {"train": 14, "test": 14, "unused": 4}
    for path in sources(tmp_path):
        assert list(read("rcv1", path)) == [parse(data) for data in day_folders().values()]
        assert [d for d in read("rcv1", path, **WEEKS) if d.split != "unused"] == used
        assert open_corpus(path).topics == ("C15", "CCAT", "GCAT")


def test_one_day_or_story_is_read_by_itself(tmp_path):
    day = days()["19960826"]
    write(tmp_path, {"19960826.zip": zip_of(day), "18002newsML.xml": day["18002newsML.xml"]})
    (tmp_path / "18003newsML.xml.gz").write_bytes(gzip.compress(day["18003newsML.xml"]))
    expected = [parse(data) for data in day.values()]
    assert list(read("rcv1", tmp_path / "19960826.zip")) == expected
    assert list(read("rcv1", tmp_path / "18002newsML.xml", tmp_path / "18003newsML.xml.gz")) == expected


def test_stories_come_one_by_one_without_the_next_zip_being_read(tmp_path):
    write(tmp_path, {**day_zips(), "19960909.zip": b"no zip"})
    stories = read_one_by_one("rcv1", tmp_path)
    assert [next(stories).id for _ in range(30)] == [str(18000 + number) for number in range(30)]
    with pytest.raises(DamagedError, match=r"19960909\.zip .*\(File is not a zip file\)"):
        next(stories)


def test_a_zip_cut_anywhere_is_damaged(tmp_path):
    day = day_zips()["19960826.zip"]
    for cut in (*range(0, len(day), 61), len(day) - 1):
        write(tmp_path, {"19960826.zip": day[:cut]})
        with pytest.raises(DamagedError, match=r"19960826\.zip is damaged"):
            list(read("rcv1", tmp_path / "19960826.zip"))
    archive = write_tar(tmp_path / "rcv1.tar.gz", {"rcv1/19960826.zip": day[:-30]})
    with pytest.raises(DamagedError, match=r"rcv1\.tar\.gz is damaged .*rcv1/19960826\.zip: File is not a zip file"):
        list(read("rcv1", archive))


def test_a_changed_byte_in_a_zip_is_damage_of_that_zip(tmp_path):
    day = bytearray(zip_of({"1newsML.xml": bytes(range(256)) * 9}))
    day[80] ^= 255
    for path in (tmp_path / "rcv1" / "19960826.zip", tmp_path / "19960826.zip"):
        write(path.parent, {path.name: bytes(day)})
        with pytest.raises(DamagedError, match=r"19960826\.zip is damaged"):
            list(read("rcv1", tmp_path / "rcv1" if path.parent.name == "rcv1" else path))


def entry(name, mode=0o644 | stat.S_IFREG):
    info = zipfile.ZipInfo(name)
    info.create_system, info.external_attr = 3, mode << 16
    return info


@pytest.mark.parametrize(
    ("info", "reason"),
    [
        (entry("../1newsML.xml"), "a path that leads out of the archive"),
        (entry("x/../../1newsML.xml"), "a path that leads out of the archive"),
        (entry("/tmp/1newsML.xml"), "a path that leads out of the archive"),
        (entry("..\\1newsML.xml"), "a path that leads out of the archive"),
        (entry("C:\\1newsML.xml"), "a path that leads out of the archive"),
        (entry("1newsML.xml", stat.S_IFLNK), "a link or device"),
        (entry("1newsML.xml", stat.S_IFCHR), "a link or device"),
    ],
)
def test_a_zip_that_reaches_outside_is_refused(tmp_path, info, reason):
    write(tmp_path, {"19960826.zip": zip_of({info: b"/etc/passwd"})})
    for path in (tmp_path, tmp_path / "19960826.zip"):
        with pytest.raises(TextcatError, match=rf"19960826\.zip holds {reason}"):
            list(read("rcv1", path))


def test_an_encrypted_story_is_refused(tmp_path):
    day = bytearray(zip_of({"1newsML.xml": b"x"}))
    for place in (6, day.index(b"PK\x01\x02") + 8):  # the flags, in the entry's own header and in the directory
        day[place] |= 1
    write(tmp_path, {"19960826.zip": bytes(day)})
    with pytest.raises(TextcatError, match=r"19960826\.zip holds an encrypted file \('1newsML.xml'\)"):
        list(read("rcv1", tmp_path))


def test_a_file_that_unpacks_to_too_much_is_not_unpacked(tmp_path, monkeypatch):
    monkeypatch.setattr(compression, "FLOOR", 1 << 16)
    large = bytes(8 << 20)
    write(tmp_path / "a", {"1newsML.xml.gz": gzip.compress(large)})
    write(tmp_path / "b", {"19960826.zip": zip_of({"1newsML.xml": large})})
    write(tmp_path / "c", {"19960826.zip": zip_of({"1newsML.xml.gz": gzip.compress(large)})})
    write_tar(tmp_path / "d.tar.gz", {"1newsML.xml": large})
    write_tar(tmp_path / "e.tar.gz", {"19960826.zip": zip_of({"1newsML.xml": large})})
    for name, blamed in {
        "a": "1newsML.xml.gz",
        "b": "19960826.zip",
        "c": "19960826.zip",
        "d.tar.gz": "d.tar.gz",
        "e.tar.gz": "e.tar.gz",
    }.items():
        with pytest.raises(DamagedError, match=rf"{blamed} is damaged .* unpacks to more than 1000 times its size"):
            list(read("rcv1", tmp_path / name))


def test_zips_in_zips_end(tmp_path):
    data = zip_of({"1newsML.xml": story(1, "1996-08-26")})
    for depth in range(5):
        (tmp_path / "nested.zip").write_bytes(data)
        if depth <= 2:
            assert len(read("rcv1", tmp_path / "nested.zip")) == 1
        else:
            with pytest.raises(TextcatError, match="is nested in too many archives"):
                read("rcv1", tmp_path / "nested.zip")
        data = zip_of({"inner.zip": data})


# ---- the corpus ----


def test_the_two_weeks_of_the_paper_are_the_corpus(tmp_path):
    write(tmp_path / "rcv1", day_zips())
    corpus = open_corpus("rcv1", tmp_path)
    assert (len(corpus.train), len(corpus.test), corpus.unused) == (14, 14, [])
    assert {document.date for document in corpus.train} == {f"1996-08-{day}" for day in range(26, 32)} | {"1996-09-01"}
    assert {document.date for document in corpus.test} == {f"1996-09-0{day}" for day in range(2, 9)}
    assert corpus.topics == ("C15", "CCAT", "GCAT")
    assert [document.id for document in corpus.train] == [str(18002 + number) for number in range(14)]


def test_the_benchmark_split_takes_all_days_and_the_topics_above(tmp_path):
    stories = {(2285, ()), (2286, ("C151",)), (26150, ("GSPO",)), (26151, ("C15",)), (810596, ("GSPO",)), (30000, ())}
    write(tmp_path / "rcv1", {f"{itemid}newsML.xml": story(itemid, "1996-08-20", topics) for itemid, topics in stories})
    corpus = open_corpus("rcv1-lyrl2004", tmp_path)
    assert [[d.id for d in part] for part in (corpus.train, corpus.test, corpus.unused)] == [
        ["2286", "26150"],
        ["26151", "810596"],
        ["2285", "30000"],
    ]
    assert corpus.topics == ("C15", "CCAT", "GCAT", "GSPO")


def test_a_story_that_is_there_twice_is_told(tmp_path):
    day = days()["19960826"]
    write(tmp_path / "rcv1", {"19960826.zip": zip_of(day), **{f"19960826/{name}": data for name, data in day.items()}})
    with pytest.raises(
        TextcatError,
        match=r"'18002', in 19960826\.zip/18002newsML\.xml and in 19960826/18002newsML\.xml",
    ):
        open_corpus("rcv1", tmp_path)


def test_a_folder_without_the_weeks_is_told(tmp_path):
    write(tmp_path / "rcv1", {"19970101.zip": zip_of({"1newsML.xml": story(1, "1997-01-01")})})
    with pytest.raises(TextcatError, match="holds no file the reader 'rcv1' reads"):
        open_corpus("rcv1", tmp_path)


def test_fetching_says_where_one_applies_and_where_the_files_go(tmp_path, cache):
    for name in ("rcv1", "rcv1-lyrl2004"):
        with pytest.raises(TextcatError, match=r"no URL .*trec\.nist\.gov/data/reuters.* day zips .* TEXTCAT_CORPORA"):
            fetch_corpus(card(name))
        with pytest.raises(TextcatError, match=rf"{name} is in none of .*cache\. NIST gives it .* Put rcv1\.tar\.xz"):
            open_corpus(name)


def test_what_was_put_into_the_cache_by_hand_is_found_and_checked(cache):
    write(cache / "rcv1", day_zips())
    assert fetch_corpus(card("rcv1")) == cache / "rcv1"
    (cache / "rcv1" / "19960826.zip").write_bytes(b"")
    with pytest.raises(DamagedError, match=r"19960826\.zip is damaged"):
        fetch_corpus(card("rcv1"))


def test_a_card_of_the_users_own_chooses_other_days(tmp_path):
    write(tmp_path, {"rcv1.zip": zip_of(day_zips())})
    options = '{ train = "1996-08-25 to 1996-08-25", test = "1996-08-26 to 1996-08-27" }'
    (tmp_path / "mine.toml").write_text(f'reader = "rcv1"\nfiles = ["rcv1.zip"]\noptions = {options}\n')
    corpus = open_corpus(read_card(tmp_path / "mine.toml"))
    assert (len(corpus.train), len(corpus.test)) == (2, 4)


def test_xml_files_with_numbers_in_topic_folders_are_no_guess_for_rcv1(tmp_path):
    write(tmp_path / "mine", {"tin/1.xml": b"<a/>", "gold/2.xml": b"<a/>"})
    assert open_corpus(tmp_path / "mine").topics == ("gold", "tin")


def test_the_command_line_trains_on_it(tmp_path, monkeypatch, capsys):
    words = {"C15": "profit rose in the quarter", "GSPO": "the match was won by a goal"}
    dates = [f"1996-08-{day}" for day in range(26, 30)] + [f"1996-09-0{day}" for day in range(3, 7)]
    stories = [
        (day, 5000 + 10 * number + copy, ("C15", "GSPO")[copy % 2])
        for number, day in enumerate(dates)
        for copy in range(6)
    ]
    files = {
        f"{day.replace('-', '')}/{itemid}newsML.xml": story(itemid, day, (topic,), f"{words[topic]} number {itemid}")
        for day, itemid, topic in stories
    }
    write(tmp_path / "corpora" / "rcv1", files)
    monkeypatch.setenv("TEXTCAT_CORPORA", str(tmp_path / "corpora"))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["textcat", "train", "rcv1", "--recipe", "paum-2002", "--jobs", "1", "--out", "m"])
    with pytest.raises(SystemExit) as end:
        cli.main()
    printed = capsys.readouterr()
    assert (end.value.code or 0, printed.err) == (0, "")
    lines = [line.split() for line in printed.out.splitlines()]
    assert lines[:2] == [
        ["ALL"],
        ["mean", "average", "precision", "(MAP)", "1.000"],
    ]  # TOP10 and LAST30 would be the same
    assert os.path.isdir("m")
    assert textcat.load("m").facts.corpus == "rcv1"


# RCV1 and text: a file is a document

NEWS = (
    '<?xml version="1.0"?><newsitem itemid="2286" date="1996-08-20"><headline>Tin</headline>'
    "<text><p>rose</p></text></newsitem>"
)


def test_a_story_of_rcv1_is_a_file(place):
    assert place("rcv1", NEWS.encode()) == [
        Record("2286", {"title": "Tin", "body": "rose"}, (), "1996-08-20", source="a", position=1)
    ]
    (fault,) = place("rcv1", NEWS[:-5].encode())
    assert fault.reason.startswith("The file is not a story of RCV1 (")
    assert (fault.position, fault.offset, fault.length) == (1, 0, len(NEWS) - 5)
    assert isinstance(place("rcv1", b"")[0], Rejection)
