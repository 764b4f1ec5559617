"""Reuters SGML, folders per topic, and the members of folders and archives."""

import gzip
import io
import tarfile
from collections import Counter

import pytest
from corpus_files import names, read
from corpus_files import parse as parse_file
from hypothesis import given
from hypothesis import strategies as st

from textcat.errors import TextcatError
from textcat.reading import DamagedError

STORY = """<REUTERS TOPICS="YES" LEWISSPLIT="TRAIN" CGISPLIT="TRAINING-SET" OLDID="5" NEWID="7">
<DATE> 3-MAR-1987 10:02:11.63</DATE>
<TOPICS><D>tin</D><D>gold</D><D>tin</D></TOPICS>
<UNKNOWN>&#5;&#5;C T</UNKNOWN>
<TEXT>&#2;
<TITLE>TIN &lt;TIN> UP</TITLE>
<DATELINE>    BRISTOL, March 3 - </DATELINE><BODY>Tin &amp; gold&#127;rose.
    More &eacute;tain &unknown; &#x26; caf\xe9.
&#3;</BODY></TEXT>
</REUTERS>
"""
OTHER = STORY.replace('NEWID="7"', 'NEWID="8"').replace("TIN UP", "TIN DOWN")
UNPROC = """<TEXT TYPE="UNPROC">&#2;
WEEKLY RETURN
 Tin....12 vs....&lt;14
&#3;

</TEXT>"""
BRIEF = """<TEXT TYPE="BRIEF">&#2;
******<TITLE>TIN UP
</TITLE>Blah blah blah.
&#3;

</TEXT>"""


def parse(text, **options):
    return parse_file("reuters", "a.sgm", text.encode("latin-1"), **options)


def with_text(element):
    return STORY[: STORY.index("<TEXT>")] + element + "\n</REUTERS>\n"


def tar(path, entries, mode="w:gz"):
    """Write an archive of (name or TarInfo, bytes)."""
    with tarfile.open(path, mode) as archive:
        for entry, data in entries:
            info = entry if isinstance(entry, tarfile.TarInfo) else tarfile.TarInfo(entry)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return path


# ---- Reuters ----


def test_a_story_gives_its_id_zones_topics_date_and_part():
    (document,) = parse(STORY)
    assert document.id == "7"
    assert document.topics == ("tin", "gold")
    assert document.date == "3-MAR-1987 10:02:11.63"
    assert document.split == "train"
    assert list(document.zones) == ["title", "dateline", "body"]
    assert document.zones["title"] == "TIN <TIN> UP"
    assert document.zones["dateline"] == "BRISTOL, March 3 -"


def test_entities_and_control_characters_are_decoded_and_unknown_entities_stay():
    (document,) = parse(STORY)
    assert document.zones["body"] == "Tin & gold rose.\n    More étain &unknown; & café."


def test_an_entity_is_decoded_once():
    (document,) = parse(STORY.replace("TIN UP", "x").replace("TIN &lt;TIN> UP", "&amp;lt;"))
    assert document.zones["title"] == "&lt;"


def test_raw_control_characters_become_spaces():
    (document,) = parse(STORY.replace("TIN &lt;TIN> UP", "TIN\x01\x7fUP &#0; &#55296; &#9999999;A"))
    assert document.zones["title"].split() == ["TIN", "UP", "A"]


def test_an_unprocessed_story_keeps_its_whole_text_as_body():
    (document,) = parse(with_text(UNPROC))
    assert document.zones == {"title": "", "dateline": "", "body": "WEEKLY RETURN\n Tin....12 vs....<14"}


def test_a_brief_story_is_its_title():
    (document,) = parse(with_text(BRIEF))
    assert document.zones == {"title": "TIN UP", "dateline": "", "body": ""}


def test_text_outside_of_all_elements_goes_to_the_body_and_the_author_does_not():
    loose = STORY.replace("</TITLE>\n", "</TITLE>\n<AUTHOR>    By A. Smith</AUTHOR>\n MTH LAST\n")
    (document,) = parse(loose)
    assert document.zones["body"].startswith("MTH LAST\nTin & gold")


@pytest.mark.parametrize(
    ("indexed", "lewis", "cgi", "expected"),
    [
        ("YES", "TRAIN", "TRAINING-SET", ("train", "train", "train")),
        ("NO", "TEST", "TRAINING-SET", ("unused", "test", "train")),
        ("BYPASS", "TEST", "PUBLISHED-TESTSET", ("unused", "unused", "test")),
        ("YES", "NOT-USED", "TRAINING-SET", ("unused", "unused", "train")),
    ],
)
def test_the_splits_follow_the_attributes(indexed, lewis, cgi, expected):
    story = (
        STORY.replace('"YES"', f'"{indexed}"').replace('"TRAIN"', f'"{lewis}"').replace('"TRAINING-SET"', f'"{cgi}"')
    )
    assert tuple(parse(story, split=split)[0].split for split in ("modapte", "modlewis", "modhayes")) == expected


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        (STORY[:-60], "a.sgm: story 7 is cut off before </REUTERS>"),
        (STORY[:-60] + STORY, "a.sgm: story 7 is cut off before </REUTERS>"),
        (STORY.replace(' NEWID="7"', ""), "a.sgm: a story without NEWID has no attribute NEWID"),
        (STORY.replace("LEWISSPLIT", "SPLIT"), "story 7 has no attribute LEWISSPLIT"),
        (STORY.replace('"TRAIN"', '"TRIAN"'), "story 7 has the unknown value LEWISSPLIT='TRIAN'"),
        (STORY.replace('"YES"', '"PERHAPS"'), "story 7 has the unknown value TOPICS='PERHAPS'"),
        (STORY.replace("</BODY>", ""), "story 7 has no </BODY>"),
        (STORY.replace("<TEXT>", ""), "story 7 has no <TEXT"),
        (STORY.replace("<TOPICS>", ""), "story 7 has no <TOPICS>"),
    ],
)
def test_a_malformed_story_is_told_with_file_and_number(broken, message):
    with pytest.raises(TextcatError, match=message.replace("(", r"\(")):
        parse(broken)


@given(st.integers(0, len(STORY) - 1))
def test_a_file_cut_anywhere_gives_its_stories_or_an_error(cut):
    try:
        documents = parse(STORY + STORY[:cut])
    except TextcatError:
        return
    assert len(documents) == 1 + ("</REUTERS>" in STORY[:cut])


@given(st.binary(max_size=300))
def test_no_bytes_break_the_reader(data):
    story = STORY.encode("latin-1").replace(b"TIN &lt;TIN> UP", data)
    try:
        documents = parse_file("reuters", "a.sgm", story)
    except TextcatError:
        return
    assert all(isinstance(d.zones["title"], str) for d in documents)


def test_an_unknown_split_or_encoding_is_told():
    with pytest.raises(TextcatError, match=r"'apte': .*modapte, modlewis, modhayes"):
        parse(STORY, split="apte")
    with pytest.raises(TextcatError, match="no encoding 'latin-99'"):
        parse(STORY, encoding="latin-99")


@pytest.fixture
def sources(tmp_path):
    """The same two stories as a folder, compressed files, and archives."""
    data, other = STORY.encode("latin-1"), OTHER.encode("latin-1")
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "a.sgm").write_bytes(data)
    (folder / "b.sgm.gz").write_bytes(gzip.compress(other))
    (folder / "README").write_bytes(b"no stories")
    entries = [("x/a.sgm", data), ("x/b.sgm", other), ("x/README", b"no stories")]
    archives = [tar(tmp_path / f"r.tar{suffix}", entries, f"w:{suffix[1:]}") for suffix in ("", ".gz", ".xz", ".bz2")]
    return [[folder], [folder / "a.sgm", folder / "b.sgm.gz"], *([archive] for archive in archives)]


def test_folders_files_and_archives_give_the_same_stories(sources):
    for paths in sources:
        assert list(read("reuters", *paths)) == parse(STORY) + parse(OTHER)


def test_a_single_file_may_be_compressed(tmp_path):
    (tmp_path / "a.sgm.gz").write_bytes(gzip.compress(STORY.encode("latin-1")))
    assert list(read("reuters", tmp_path / "a.sgm.gz")) == parse(STORY)


def test_an_archive_a_browser_has_uncompressed_is_read_all_the_same(tmp_path, sources):
    renamed = (tmp_path / "r.tar").rename(tmp_path / "plain.tar.gz")
    assert len(list(read("reuters", renamed))) == 2


def test_the_whole_collection_has_its_published_counts(reuters_archive):
    documents = list(read("reuters", reuters_archive))
    assert len({d.id for d in documents}) == 21578
    assert Counter(d.split for d in documents) == {"train": 9603, "test": 3299, "unused": 8676}
    # README, section VII: 120 TOPICS categories occur, 57 of them 20 times or more.
    occurrences = Counter(topic for d in documents for topic in d.topics)
    assert len(occurrences) == 120
    assert sum(count >= 20 for count in occurrences.values()) == 57
    assert Counter(d.split for d in documents if not d.topics) == {"train": 1828, "test": 280, "unused": 8103}
    # An UNPROC story that is empty in the source.
    assert [d.id for d in documents if not any(d.zones.values())] == ["12793"]
    assert not any(
        ord(character) < 32 and character not in "\n\t"
        for d in documents
        for character in set("".join(d.zones.values()))
    )


@pytest.mark.parametrize(
    ("split", "expected"),
    [
        ("modlewis", {"train": 13625, "test": 6188, "unused": 1765}),
        ("modhayes", {"train": 20856, "test": 722}),
    ],
)
def test_the_other_splits_have_their_published_counts(reuters_archive, split, expected):
    assert Counter(d.split for d in read("reuters", reuters_archive, split=split)) == expected


# ---- folders per topic ----


POST = "From: ann@x.org\nSubject: Re: Tin\n prices\nLines: 2\n\nTin rose.\n\nMore."


@pytest.fixture
def newsgroups(tmp_path):
    for part, topic, name in [("20news-train", "tin", "1"), ("20news-train", "gold", "2"), ("20news-test", "tin", "3")]:
        (tmp_path / part / topic).mkdir(parents=True, exist_ok=True)
        (tmp_path / part / topic / name).write_text(POST, encoding="latin-1")
    (tmp_path / "README").write_text("no post")
    (tmp_path / "20news-train" / ".DS_Store").write_bytes(b"\xff")
    return tmp_path


def test_folders_give_topic_and_part(newsgroups):
    documents = list(read("folders", newsgroups))
    assert [(d.id, d.topics, d.split) for d in documents] == [
        ("20news-test/tin/3", ("tin",), "test"),
        ("20news-train/gold/2", ("gold",), "train"),
        ("20news-train/tin/1", ("tin",), "train"),
    ]


def test_folders_without_parts_have_no_split(tmp_path):
    (tmp_path / "contests").mkdir()
    (tmp_path / "contests" / "a.txt").write_text("text", encoding="utf-8")
    assert [(d.topics, d.split) for d in read("folders", tmp_path)] == [(("contests",), "")]


@pytest.mark.parametrize(
    ("headers", "title", "body"),
    [
        ("keep", "", POST),
        ("title", "Re: Tin prices", POST),
        ("subject", "Re: Tin prices", "Tin rose.\n\nMore."),
        ("drop", "", "Tin rose.\n\nMore."),
    ],
)
def test_headers_are_kept_or_dropped(newsgroups, headers, title, body):
    for document in read("folders", newsgroups, headers=headers):
        assert document.zones == {"title": title, "body": body}


def test_a_text_without_headers_loses_nothing(tmp_path):
    (tmp_path / "tin").mkdir()
    (tmp_path / "tin" / "1").write_text("Tin rose.\r\n\r\nMore.", encoding="utf-8", newline="")
    (document,) = read("folders", tmp_path, headers="subject")
    assert document.zones["body"] == "Tin rose.\n\nMore."


def test_a_text_in_another_encoding_is_told(tmp_path):
    (tmp_path / "tin").mkdir()
    (tmp_path / "tin" / "1").write_bytes(b"caf\xe9")
    with pytest.raises(TextcatError, match=r"tin/1 in .* utf-8 \(byte 3\): .*--encoding"):
        list(read("folders", tmp_path))
    assert read("folders", tmp_path, encoding="latin-1")[0].zones["body"] == "café"


def test_an_unknown_treatment_of_headers_is_told(newsgroups):
    with pytest.raises(TextcatError, match=r"'strip' .*keep, title, subject, drop"):
        list(read("folders", newsgroups, headers="strip"))


def test_twenty_newsgroups_has_its_published_counts(newsgroups_archive):
    documents = list(read("folders", newsgroups_archive, headers="subject", encoding="latin-1"))
    assert Counter(d.split for d in documents) == {"train": 11314, "test": 7532}
    assert len({d.topics for d in documents}) == 20
    assert len({d.id for d in documents}) == 18846


# ---- archives ----


def link(name, kind):
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, "/etc/passwd"
    return info


@pytest.mark.parametrize(
    ("entry", "reason"),
    [
        ("../a.sgm", "a path that leads out of the archive"),
        ("x/../../a.sgm", "a path that leads out of the archive"),
        ("/tmp/a.sgm", "a path that leads out of the archive"),
        ("..\\a.sgm", "a path that leads out of the archive"),
        ("C:\\a.sgm", "a path that leads out of the archive"),
        (link("a.sgm", tarfile.SYMTYPE), "a link or device"),
        (link("a.sgm", tarfile.LNKTYPE), "a link or device"),
        (link("a.sgm", tarfile.CHRTYPE), "a link or device"),
        (link("a.sgm", tarfile.FIFOTYPE), "a link or device"),
    ],
)
def test_an_archive_that_reaches_outside_is_refused(tmp_path, entry, reason):
    with pytest.raises(TextcatError, match=f"holds {reason}"):
        read("reuters", tar(tmp_path / "bad.tar", [(entry, b"")], "w"))


@pytest.mark.parametrize("suffix", ["", ".gz", ".xz", ".bz2"])
def test_an_archive_cut_anywhere_is_damaged(tmp_path, suffix):
    whole = tar(tmp_path / f"a.tar{suffix}", [("a", bytes(range(256)) * 9), ("b", b"b" * 600)], f"w:{suffix[1:]}")
    data = whole.read_bytes()
    # A plain archive ends in a run of zeros, whose length does not matter.
    end = len(data.rstrip(b"\0")) if suffix == "" else len(data)
    for cut in sorted({*range(0, end, 97), end - 1}):
        whole.write_bytes(data[:cut])
        with pytest.raises(DamagedError, match=r"is damaged or incomplete .*: fetch or copy it again"):
            read("lines", whole)


@pytest.mark.parametrize("suffix", [".gz", ".xz", ".bz2"])
def test_a_changed_byte_in_a_compressed_archive_is_damage(tmp_path, suffix):
    path = tar(tmp_path / f"a.tar{suffix}", [("a", bytes(range(256)) * 9)], f"w:{suffix[1:]}")
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 255
    path.write_bytes(data)
    with pytest.raises(DamagedError):
        read("lines", path)


def test_a_header_that_is_none_is_damage_not_the_end(tmp_path):
    path = tar(tmp_path / "a.tar", [("a", b"a" * 600), ("b", b"b" * 600)], "w")
    data = bytearray(path.read_bytes())
    data[1536] ^= 1  # the first byte of the second header
    path.write_bytes(data)
    with pytest.raises(DamagedError, match="bad checksum"):
        read("lines", path)


def test_a_member_of_absurd_size_is_damage(tmp_path):
    info = tarfile.TarInfo("a")
    info.pax_headers = {"size": "9" * 30}
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w", format=tarfile.PAX_FORMAT) as archive:
        archive.addfile(info)
    (tmp_path / "a.tar.gz").write_bytes(gzip.compress(data.getvalue()))
    with pytest.raises(DamagedError):
        read("lines", tmp_path / "a.tar.gz")


def test_a_web_page_saved_as_an_archive_is_damaged(tmp_path):
    (tmp_path / "a.tar.gz").write_bytes(b"<html>Not found</html>" * 100)
    with pytest.raises(DamagedError):
        read("lines", tmp_path / "a.tar.gz")


def test_a_damaged_compressed_file_and_a_missing_path_are_told(tmp_path):
    (tmp_path / "a.sgm.gz").write_bytes(gzip.compress(STORY.encode("latin-1"))[:-9])
    with pytest.raises(DamagedError):
        read("reuters", tmp_path / "a.sgm.gz")
    with pytest.raises(TextcatError, match=r"nowhere .*\(No such file or directory\)"):
        read("reuters", tmp_path / "nowhere")


def test_names_are_those_of_the_members(sources):
    (folder,), (one, other), *archives = sources
    assert names(folder) == ["README", "a.sgm", "b.sgm"]
    assert (names(one), names(other)) == (["a.sgm"], ["b.sgm"])
    for (archive,) in archives:
        assert names(archive) == ["x/a.sgm", "x/b.sgm", "x/README"]
