"""METS: articles and pages of ALTO files beside it, wherever they are stored, and references that are refused."""

import gzip
import os

import pytest
from cases import every
from read_sources import faults, ids, read, tarred, zipped
from scanned_pages import ISSUE, ISSUE_FILES, MODS, alto, area, article, line, mets, page_of

from textcat import open_corpus
from textcat.base.errors import TextcatError
from textcat.reading import InputSettings, Rejection, batch_records, find_sources, read_batches, text_of_file
from textcat.reading.faults import FaultKind, UnreadableError
from textcat.reading.formats.mets import path_of

BODIES = ["It rose in\nRome.", "Gold fell."]


@pytest.fixture
def issue(folder):
    """Write an issue into the folder."""
    write(folder)
    return folder


def write(folder, files=ISSUE_FILES):
    for name, data in files.items():
        (folder / name).parent.mkdir(exist_ok=True, parents=True)
        (folder / name).write_bytes(data)


def bodies(found):
    return [item.zones["body"] for item in found if not faults([item])]


def test_articles_are_documents_with_headline_date_language_and_publication(issue):
    assert find_sources(["mets.xml"], InputSettings())[0].format == "mets"
    first, second = read("mets.xml", fields=("*",))
    assert (first.id, first.date, first.language) == ("mets.xml#A1", "1860-05-01", "en")
    assert first.zones == {"title": "Tin rose", "body": "It rose in\nRome."}  # over two pages, without the author
    assert first.fields == {"date": "1860-05-01", "language": "en", "publication": "The Tin Daily"}
    assert (second.id, second.zones) == ("mets.xml#A2", {"body": "Gold fell."})


def test_an_article_without_headline_has_the_title_of_its_label_or_of_its_own_description(folder):
    sections = ISSUE + MODS.format(name="M2", said="<mods:titleInfo><mods:title>Own</mods:title></mods:titleInfo>")
    labelled = article("A1", "", area(1, "B1"), said='LABEL="Label"')
    described = article("A2", "", area(1, "B2"), said='DMDID="M2"')
    write(folder, ISSUE_FILES | {"mets.xml": mets(articles=labelled + described, sections=sections)})
    assert [record.zones["title"] for record in read("mets.xml")[:2]] == ["Label", "Own"]


def test_pages_are_documents_if_there_are_no_articles(issue):
    write(issue, {"mets.xml": mets(sections=ISSUE.replace("1860-05-01", "01.05.1860"))})
    first, second = read("mets.xml")
    assert (first.id, first.date) == ("mets.xml#PAGE1", "1860-05-01")
    assert first.zones == {"body": "Tin rose\nIt rose in\nSmith"}
    assert (second.id, second.language, second.zones) == ("mets.xml#PAGE2", "en", {"body": "Rome.\nGold fell."})


def test_a_page_of_which_no_article_has_a_part_is_a_document(issue):
    write(issue, {"mets.xml": mets(articles=article("A1", "", area(1, "B1")))})
    assert ids(read("mets.xml")) == ["mets.xml#A1", "mets.xml#PAGE2"]


def test_an_article_of_whole_pages_is_none_as_its_part_of_them_is_unknown(issue):
    pages = area(1, "").replace('BETYPE="IDREF" BEGIN=""', "")
    write(issue, {"mets.xml": mets(articles=article("A1", "", pages))})
    assert ids(read("mets.xml")) == ["mets.xml#PAGE1", "mets.xml#PAGE2"]


def test_files_are_pages_if_there_is_no_structure(issue):
    write(issue, {"mets.xml": mets(pages=[])})
    assert ids(read("mets.xml")) == ["mets.xml:1", "mets.xml:2"]


def test_articles_may_be_linked_to_ranges_of_words(folder):
    words = "".join(f'<String ID="W{number}" CONTENT="{word}"/><SP/>' for number, word in enumerate("abcdef"))
    areas = "".join(
        f'<mets:div ID="R{first}" TYPE="pagearea">{area(1, f"W{first}", f"W{last}")}</mets:div>'
        for first, last in ((0, 1), (2, 2), (3, 5))
    )
    page = page_of(1).replace("</mets:div>", f"{areas}</mets:div>")
    grouped = """<mets:structLink><mets:smLinkGrp><mets:smLocatorLink xlink:href="#A1" xlink:label="article"/>
    <mets:smLocatorLink xlink:href="#R0" xlink:label="x"/><mets:smLocatorLink xlink:href="#R3" xlink:label="y"/>
    <mets:smArcLink xlink:from="article" xlink:to="x"/><mets:smArcLink xlink:from="article" xlink:to="y"/>
    </mets:smLinkGrp><mets:smLink xlink:from="A2" xlink:to="R2"/></mets:structLink>"""
    empty = '<mets:div ID="A1" TYPE="ARTICLE"/><mets:div ID="A2" TYPE="ARTICLE"/>'
    write(
        folder,
        {
            "1.xml": alto(f'<TextBlock ID="B"><TextLine>{words}</TextLine></TextBlock>'),
            "mets.xml": mets(["1.xml"], empty, pages=[page], more=grouped),
        },
    )
    assert bodies(read("mets.xml")) == ["a b d e f", "c"]


def test_an_article_inside_of_another_is_a_document_of_its_own(issue):
    inner = article("A2", "", area(1, "B2"))
    write(issue, {"mets.xml": mets(articles=article("A1", "", area(1, "B1") + inner))})
    assert bodies(read("mets.xml"))[:2] == ["Tin rose", "It rose in"]


def test_a_word_that_is_divided_between_pages_is_written_once(folder):
    first = '<String CONTENT="Erz-" SUBS_TYPE="HypPart1" SUBS_CONTENT="Erzgrube"/>'
    second = '<String CONTENT="grube" SUBS_TYPE="HypPart2" SUBS_CONTENT="Erzgrube"/>'
    files = {
        f"alto/{number}.xml": alto(f'<TextBlock ID="B{number}"><TextLine>{word}</TextLine></TextBlock>')
        for number, word in enumerate((first, second), 1)
    }
    write(folder, files | {"mets.xml": mets(articles=article("A1", "", area(1, "B1") + area(2, "B2")))})
    assert bodies(read("mets.xml")) == ["Erzgrube"]


# --- wherever it is stored --------------------------------------------------------------------------------------------


def test_pages_of_a_mets_file_are_not_read_once_more(issue, caplog):
    assert ids(read(".")) == ["mets.xml#A1", "mets.xml#A2"]
    assert "read as parts of these only" in caplog.text
    write(issue, {"alto/3.xml": alto(line("B", "Other"))})
    assert ids(read(".")) == ["alto/3.xml", "mets.xml#A1", "mets.xml#A2"]
    assert ids(read("alto/1.xml")) == ["alto/1.xml"]  # which nobody reads otherwise
    caplog.clear()
    assert ids(read("alto/1.xml", "mets.xml")) == ["mets.xml#A1", "mets.xml#A2"]
    assert "named as well as its METS file" in caplog.text


def test_pages_of_a_mets_file_that_is_broken_or_skipped_are_read_by_themselves(issue):
    assert ids(read(".", for_files=(("*mets.xml", (("skip", True),)),))) == ["alto/1.xml", "alto/2.xml"]
    write(issue, {"mets.xml": ISSUE_FILES["mets.xml"][:900]})
    assert ids(read(".")) == ["alto/1.xml", "alto/2.xml"]
    assert len(faults(read("."))) == 1


def test_among_many_files_a_mets_file_is_looked_for_by_its_name(issue, monkeypatch):
    monkeypatch.setattr("textcat.reading.scans.MOST_LOOKED_INTO", 0)
    assert ids(read(".")) == ["mets.xml#A1", "mets.xml#A2"]
    (issue / "mets.xml").rename(issue / "issue.xml")
    assert ids(read(".")) == ["alto/1.xml", "alto/2.xml", "issue.xml#A1", "issue.xml#A2"]


@pytest.mark.parametrize("pack", [zipped, tarred, lambda *members: gzip.compress(tarred(*members))])
@pytest.mark.parametrize("backwards", [False, True])
def test_an_archive_holds_a_mets_file_with_its_pages(folder, pack, backwards):
    members = [(f"x/{name}", data) for name, data in ISSUE_FILES.items()]
    name = {zipped: "a.zip", tarred: "a.tar"}.get(pack, "a.tgz")
    (folder / name).write_bytes(pack(*members[:: -1 if backwards else 1]))
    assert bodies(read(name)) == BODIES
    assert ids(read("."))[0] == f"{name}/x/mets.xml#A1"


def test_of_a_compressed_tar_not_too_much_is_copied(folder, monkeypatch):
    packed = tarred(*ISSUE_FILES.items())
    for name, data in (("a.tar", packed), ("a.tgz", gzip.compress(packed)), ("b.tgz", gzip.compress(packed)[:-9])):
        (folder / name).write_bytes(data)
    assert bodies(read("a.tgz")) == BODIES
    assert set(bodies(read("b.tgz"))) >= set(BODIES)
    monkeypatch.setattr("textcat.reading.containers.MOST_COPIED", len(ISSUE_FILES["alto/1.xml"]) + 1)
    assert bodies(read("a.tar")) == BODIES
    found = read("a.tgz")
    assert ids(found) == ["a.tgz/alto/1.xml", "a.tgz/alto/2.xml"]  # the METS file is too far behind to own them
    assert ["compressed tar" in fault.reason for fault in faults(found)] == [True, True]  # each needs the second page


def test_texts_of_a_tar_do_not_count_for_the_limit_of_files_that_a_mets_file_may_refer_to(folder, monkeypatch):
    monkeypatch.setattr("textcat.reading.containers.MOST_LOOKED_UP", len(ISSUE_FILES))
    texts = [(f"{n}.txt", b"Tin") for n in range(len(ISSUE_FILES) + 1)]
    packed = tarred(*texts, *ISSUE_FILES.items())
    (folder / "a.tar").write_bytes(packed)
    (folder / "a.tgz").write_bytes(gzip.compress(packed))
    for name in ("a.tar", "a.tgz"):
        assert bodies(read(name)) == ["Tin"] * len(texts) + BODIES


def test_files_may_be_compressed_since_they_were_referred_to(folder):
    write(folder, {f"{name}.gz": gzip.compress(data) for name, data in ISSUE_FILES.items()})
    assert bodies(read("mets.xml.gz")) == bodies(read(".")) == BODIES


def test_a_url_has_its_pages_beside_it(folder):
    import fsspec

    system = fsspec.filesystem("memory")
    for name, data in ISSUE_FILES.items():
        system.pipe(f"/scans/{name}", data)
    try:
        assert bodies(read("memory://scans/mets.xml")) == bodies(read("memory://scans")) == BODIES
        system.pipe("/scans/issue.xml", ISSUE_FILES["mets.xml"])
        system.rm("/scans/mets.xml")
        assert ids(read("memory://scans"))[:2] == [f"memory://scans/alto/{number}.xml" for number in (1, 2)]
        system.pipe("/scans/mets.xml", ISSUE_FILES["mets.xml"])
        system.rm("/scans/alto/2.xml")
        assert "missing" in faults(read("memory://scans/mets.xml"))[0].reason
    finally:
        system.rm("/scans", recursive=True)


def test_a_pipe_and_an_upload_have_no_pages_beside_them(issue):
    source = find_sources(["mets.xml"], InputSettings())[0]
    (batch,) = read_batches([source._replace(neighbours=None)], InputSettings())
    assert ["pipe" in item.reason for item in batch_records(batch, InputSettings())] == [True, True]
    with pytest.raises(TextcatError, match="METS"):
        text_of_file("mets.xml", ISSUE_FILES["mets.xml"])


@pytest.mark.parametrize("block_bytes", [1, 1500, 1 << 20])
def test_reading_begins_again_at_any_place(folder, block_bytes):
    references = [f"alto/{number}.xml" for number in range(1, 8)]
    pages = {name: alto(line("B1", name), line("B2", "x"), line("B9", "y")) for name in references}
    articles = "".join(
        article(f"A{number}", "", area(number, "B1") + area(number % 7 + 1, "B2")) for number in range(1, 8)
    )
    write(folder, pages | {"mets.xml": mets(references, articles), "z.txt": b"end"})
    settings = InputSettings(block_bytes=block_bytes)
    sources = find_sources(["."], settings)
    batches = list(read_batches(sources, settings))
    assert len(ids(read(".", block_bytes=block_bytes))) == 8
    assert ids(read(".", block_bytes=block_bytes)) == ids(read("."))
    for number, batch in enumerate(batches):
        again = list(read_batches(sources, settings, batch.end))
        assert [one.blocks for one in again] == [one.blocks for one in batches[number + 1 :]]
    sizes = [len(block.data) for batch in batches for block in batch.blocks]
    assert max(sizes) < block_bytes + 4 * len(pages["alto/1.xml"])  # in bounded memory


def test_topics_are_the_names_of_folders(folder, caplog):
    for topic in ("metal", "sport"):
        write(folder, {f"{topic}/{name}": data for name, data in ISSUE_FILES.items()})
    documents = open_corpus(".").train
    assert [(document.id, document.topics) for document in documents] == [
        ("metal/mets.xml#A1", ("metal",)),
        ("metal/mets.xml#A2", ("metal",)),
        ("sport/mets.xml#A1", ("sport",)),
        ("sport/mets.xml#A2", ("sport",)),
    ]


# --- what is refused --------------------------------------------------------------------------------------------------


@every(
    "reference, path",
    [
        ("a.xml", "a.xml"),
        ("./a/b.xml", "a/b.xml"),
        ("file://./a/b.xml", "a/b.xml"),
        ("file:a.xml", "a.xml"),
        ("a\\b.xml", "a/b.xml"),
        ("a/../b.xml", "b.xml"),
        ("a%20b.xml", "a b.xml"),
    ],
)
def test_references_are_paths_in_the_folder_of_the_mets_file(reference, path):
    assert path_of(reference) == path


@every(
    "reference",
    [
        *(
            "../a.xml",
            "a/../../b.xml",
            "/etc/passwd",
            "file:///etc/passwd",
            "%2e%2e/a.xml",
            "..\\a.xml",
            "a\0b.xml",
            ".",
        ),
        *("http://example.org/a.xml", "https://example.org/a.xml", "C:\\a.xml", "file://../a.xml", "s3://a/b.xml", ""),
    ],
)
def test_references_out_of_the_folder_are_refused(reference):
    with pytest.raises(UnreadableError, match="outside"):
        path_of(reference)


def test_a_document_that_needs_a_refused_or_missing_file_takes_no_other_with_it(issue):
    references = ["alto/1.xml", "../x.xml", "http://example.org/3.xml", "no.xml", "alto/2.xml", "mets.xml"]
    write(issue, {"mets.xml": mets(references)})
    (issue / "mets.xml").rename(issue / "m.xml")
    found = read("m.xml")
    assert ids(found) == ["m.xml#PAGE1", "m.xml#PAGE5"]
    assert [fault.position for fault in faults(found)] == [2, 3, 4, 6]
    with pytest.raises(TextcatError, match="needs"):
        open_corpus("m.xml")


@pytest.mark.parametrize("name", ["alto/1.xml", "alto"])
def test_links_out_of_the_folder_are_not_followed(issue, tmp_path_factory, name):
    outside = tmp_path_factory.mktemp("outside")
    (issue / name).rename(outside / "moved")
    os.symlink(outside / "moved", issue / name)
    reasons = [fault.reason for fault in faults(read("mets.xml"))]
    assert reasons
    assert all("link" in reason for reason in reasons)


def test_links_inside_of_the_folder_are_followed(issue):
    (issue / "alto").rename(issue / "moved")
    os.symlink("moved", issue / "alto")
    assert bodies(read("mets.xml")) == BODIES


def test_a_pipe_is_not_opened_as_a_page(issue):
    (issue / "alto/1.xml").unlink()
    os.mkfifo(issue / "alto/1.xml")
    assert "no file" in faults(read("mets.xml"))[0].reason


def test_a_mets_file_may_refer_to_itself_and_to_others_that_refer_to_it(folder, caplog):
    pointer = '<mets:structMap><mets:div><mets:mptr LOCTYPE="URL" xlink:href="{}.xml"/></mets:div></mets:structMap>'
    write(folder, {"a.xml": mets([], more=pointer.format("b")), "b.xml": mets([], more=pointer.format("a"))})
    assert [fault.kind for fault in faults(read("."))] == [FaultKind.LEFT_OUT] * 2
    write(folder, {"c.xml": mets(["c.xml"])})
    assert "no ALTO" in faults(read("c.xml"))[0].reason
    write(folder, {f"d/{name}": data for name, data in ISSUE_FILES.items()} | {"d/2.xml": mets([])})
    assert [document.id for document in open_corpus("d").train] == ["mets.xml#A1", "mets.xml#A2"]
    assert "refers to no ALTO file" in caplog.text


def test_structures_that_repeat_themselves_are_bounded(issue, monkeypatch):
    links = "".join('<mets:smLink xlink:from="A" xlink:to="PAGE1"/>' for _ in range(50))
    looped = f'<mets:structLink>{links}<mets:smLink xlink:from="PAGE1" xlink:to="A"/></mets:structLink>'
    write(issue, {"mets.xml": mets(articles='<mets:div ID="A" TYPE="ARTICLE"/>', more=looped)})
    assert len(read("mets.xml")) == 2
    monkeypatch.setattr("textcat.reading.formats.mets.MOST_AREAS", 40)
    (rejection,) = read("mets.xml")
    assert "more than 40" in rejection.reason
    (block,) = next(read_batches(find_sources(["mets.xml"], InputSettings()), InputSettings())).blocks
    assert isinstance(block, Rejection)


def test_an_article_of_the_same_words_again_and_again_is_too_long(issue):
    write(issue, {"mets.xml": mets(articles=article("A1", "", area(1, "B1") * 500) + article("A2", "", area(1, "B2")))})
    (batch,) = read_batches(find_sources(["mets.xml"], InputSettings()), InputSettings())
    first, *_ = batch_records(batch, InputSettings(max_bytes=90_000))
    assert first.zones["body"].count("Tin rose") == 500
    first, *_ = batch_records(batch, InputSettings(max_bytes=900))
    assert "at most 900" in first.reason


def test_an_area_that_the_page_lacks_is_told(issue):
    write(issue, {"mets.xml": mets(articles=article("A1", "", area(1, "B7")))})
    assert "B7" in faults(read("mets.xml"))[0].reason


def test_dates_of_dublin_core_count(issue):
    said = "<dc:date>1861-02-03</dc:date><dc:title>Gold</dc:title><dc:language>de</dc:language>"
    wrapped = f'<mets:mdWrap xmlns:dc="http://purl.org/dc/elements/1.1/">{said}</mets:mdWrap>'
    core = f'<mets:dmdSec ID="M1">{wrapped}</mets:dmdSec>'
    write(issue, {"mets.xml": mets(sections=core)})
    record = read("mets.xml", fields=("*",))[0]
    assert (record.date, record.language, record.fields["publication"]) == ("1861-02-03", "de", "Gold")


def test_articles_keep_the_order_of_their_pages(issue):
    write(issue, {"mets.xml": mets(articles=article("A1", "", area(2, "B3")) + article("A2", "", area(1, "B1")))})
    assert ids(read("mets.xml")) == ["mets.xml#A2", "mets.xml#A1"]
