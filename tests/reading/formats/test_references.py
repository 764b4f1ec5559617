"""RIS and MEDLINE: every export is read, whatever its line ends and slips; and RIS is written as it was read."""

import pytest
from cases import every
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from read_sources import read

from textcat.reading import Block, InputSettings, Record, Rejection, find_sources, formats, read_documents
from textcat.reading.formats.references import common_fields, divided_names, reference_content, ris_entry

RIS = """Provider: Ovid

TY  - JOUR
ID  - 17
T1  - Screening of abstracts
AU  - Doe, Jane
AU  - Müller, R.
PY  - 2019/03/12/
T2  - Journal of Screening
SP  - 12
EP  - 34
AB  - Background: IL-6 was
IL-6 measured.
KW  - tin
KW  - gold
DO  - https://doi.org/10.1000/xyz123
M3  - Article
ER  -

TY  - BOOK
TI  - No end
TY  - JOUR
TI  - Third
ER  - \n"""
FIELDS = {
    "type": "JOUR",
    "id": "17",
    "authors": ["Doe, Jane", "Müller, R."],
    "year": "2019",
    "date": "2019/03/12",
    "journal": "Journal of Screening",
    "pages": "12-34",
    "doi": "10.1000/xyz123",
    "keywords": ["tin", "gold"],
    "M3": "Article",
    "ris": RIS[RIS.index("TY") : RIS.index("ER")].rstrip("\n"),
}
NBIB = """
PMID- 31234567
TI  - Effects of tin in a
      randomised trial.
LID - 10.1000/abc [doi]
AB  - BACKGROUND: Tin.
FAU - Doe, Jane
AU  - Doe J
DP  - 2019 Mar 12
TA  - J Tin
JT  - Journal of tin
MH  - *Humans
OT  - gold

PMID- 31234568
TI  - Second.
"""


@every("block", [1, 100, 1 << 20])
@every("end", ["\n", "\r\n"])
@every("encoding", ["utf-8", "utf-8-sig", "latin-1", "utf-16"])
def test_ris_is_read_whatever_its_encoding_and_line_ends(folder, encoding, end, block):
    (folder / "a.ris").write_bytes(RIS.replace("\n", end).encode(encoding))
    how = {"encoding": encoding} if encoding == "latin-1" else {}
    first, second, third = read("a.ris", fields=("*",), block_bytes=block, **how)
    assert first.zones == {"title": "Screening of abstracts", "body": "Background: IL-6 was IL-6 measured."}
    assert (first.id, first.position, first.fields) == ("17", 1, FIELDS)
    assert [(one.id, one.position, one.zones) for one in (second, third)] == [
        ("a.ris:2", 2, {"title": "No end"}),
        ("a.ris:3", 3, {"title": "Third"}),
    ]


def test_a_reference_that_is_no_utf8_costs_itself_only_and_names_the_remedy(folder):
    (folder / "a.ris").write_bytes(RIS.encode("latin-1"))
    fault, *others = read("a.ris")
    assert isinstance(fault, Rejection)
    assert "--encoding" in fault.reason
    assert [type(one) for one in others] == [Record, Record]


def test_medline_is_read_by_name_and_by_content(folder):
    for name in ("a.nbib", "pubmed-set.txt"):
        (folder / name).write_text(NBIB)
        first, second = read(name, fields=("*",))
        assert first.zones == {"title": "Effects of tin in a randomised trial.", "body": "BACKGROUND: Tin."}
        assert (first.id, second.id) == ("31234567", "31234568")
        expected = {"authors": ["Doe, Jane"], "year": "2019", "journal": "Journal of tin", "doi": "10.1000/abc"}
        assert expected.items() <= first.fields.items()
        assert first.fields["keywords"] == ["Humans", "gold"]
    assert find_sources(["pubmed-set.txt"], InputSettings())[0].format == "nbib"


def test_keywords_are_the_topics_and_may_be_a_text_too(folder):
    (folder / "a.nbib").write_text(NBIB)
    for fields in ((), ("title", "keywords")):
        first, second = read_documents(["a.nbib"], InputSettings(text_fields=fields, fields=("keywords",)))
        assert first.topics == ("Humans", "gold")
        assert second.topics == ()
        assert first.fields == {"keywords": ["Humans", "gold"]}
        if "keywords" in fields:
            assert first.zones["body"] == "Humans; gold"


def test_a_reference_without_a_text_is_rejected(folder):
    (folder / "a.ris").write_text("TY  - JOUR\nAU  - Doe\nER  - \n")
    (fault,) = read("a.ris")
    assert "has neither title nor abstract" in fault.reason


def test_a_file_without_a_reference_is_rejected(folder):
    for name in ("a.ris", "a.nbib"):
        (folder / name).write_text("no reference\n")
        (fault,) = read(name)
        assert "--format" in fault.reason


def test_what_is_written_as_ris_is_read_as_it_was(folder):
    (folder / "a.ris").write_text(RIS)
    (first, *_) = read("a.ris", fields=("*",))
    whole = {**first.fields, "title": first.zones["title"], "abstract": first.zones["body"]}
    (folder / "b.ris").write_text(ris_entry(whole))
    (again,) = read("b.ris", fields=("*",))
    assert (again.id, again.zones, again.fields) == (first.id, first.zones, first.fields)


def test_a_reference_that_is_too_long_is_passed_over(folder):
    long = "TY  - JOUR\nTI  - " + "tin\n" * 100_000 + "ER  - \n"
    (folder / "a.ris").write_text(RIS + long + RIS)
    found = read("a.ris", max_bytes=10_000, block_bytes=1 << 12)
    (fault,) = [one for one in found if isinstance(one, Rejection)]
    assert fault.position == 4
    assert [one.position for one in found if isinstance(one, Record)] == [1, 2, 3, 5, 6, 7]


def test_columns_of_other_programs_get_the_common_names():
    pubmed = {"PMID": "1", "Authors": "Doe J", "Journal/Book": "Tin", "Publication Year": "2001", "DOI": "10.1/a"}
    named = {"pmid": "1", "authors": "Doe J", "journal": "Tin", "year": "2001", "doi": "10.1/a"}
    assert common_fields(pubmed) == named
    assert common_fields({"author": "Doe", "date": "12 May 1999"}) == {
        "authors": "Doe",
        "date": "12 May 1999",
        "year": "1999",
    }
    assert common_fields(FIELDS) == FIELDS
    assert common_fields({"doi": "10.1/a", "DOI": "other"}) == {"doi": "10.1/a", "DOI": "other"}


# A long record costs work per byte: patterns that begin again at each blank, or texts that are copied for each line,
# would take minutes or hours for these.
LONG = 1 << 20


@pytest.mark.parametrize(
    ("form", "data"),
    [
        ("ris", b"TY  - JOUR\nTI  - Tin\nAB  - a\n" + b"x\n" * LONG),
        ("nbib", b"PMID- 1\nTI  - Tin\nAB  - a\n" + b"      x\n" * (LONG // 4)),
        ("bibtex", b"@misc{a, title = {Tin}, author = {A" + b" " * LONG + b"B}}"),
        ("bibtex", b"@misc{" + b" " * LONG),
    ],
    ids=["ris", "nbib", "authors", "key"],
)
def test_long_records_are_read_in_one_pass(form, data):
    (record,) = formats.block_records(Block("a", form, data), InputSettings())
    assert isinstance(record, Rejection) == data.endswith(b" ")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.ris", "TY  - JOUR\nTI  - Tin\nAB  - Tin rose.\nAB  - Zinn stieg.\nER  - \n"),
        (
            "a.xml",
            "<xml><records><record><titles><title>Tin</title></titles><abstract>Tin rose.</abstract>"
            "<abstract>Zinn stieg.</abstract></record></records></xml>",
        ),
    ],
)
def test_an_abstract_of_several_parts_is_read_whole(folder, name, text):
    (folder / name).write_text(text)
    assert read(name)[0].zones["body"] == "Tin rose.\nZinn stieg."


# ---- written as RIS ----

TAGS = st.from_regex(r"[A-Z][A-Z0-9]", fullmatch=True).filter(lambda tag: tag not in ("TY", "ER"))
VALUES = st.text(st.characters(blacklist_categories=("C", "Z"), max_codepoint=0x2FFF) | st.just(" "), min_size=1)


def lines_of(entry):
    return [line for line in entry.splitlines() if line]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(TAGS, VALUES.map(lambda text: text.strip() or "x")), max_size=12))
def test_no_line_of_a_record_is_lost_from_ris_to_ris(folder, tagged):
    lines = ["TY  - JOUR", "TI  - Tin", *(f"{tag}  - {text}" for tag, text in tagged)]
    (folder / "a.ris").write_text("\n".join([*lines, "ER  - ", ""]), encoding="utf-8")
    (record,) = read("a.ris", fields=("*",))
    entry = ris_entry(record.fields, ["a  note"])
    assert lines_of(entry) == [*lines, "N1  - a note", "ER  - "]
    (folder / "b.ris").write_text(entry, encoding="utf-8")
    (again,) = read("b.ris", fields=("*",))
    assert again.zones == record.zones
    assert again.fields["notes"] == [*record.fields.get("notes", []), "a note"]


ODD = """TY  - JOUR
A1  - Doe, Jane
AU  - Doe, J.
A1  - Roe, R.
UR  - http://a
UR  - http://b
Y1  - 2019/03/12/spring
XX  - unknown
AN  - WOS:1
VL  - 3
IS  - 2
DB  - Scopus
N1  - first
 and more
TI  - Tin
"""


def test_odd_lines_are_kept_in_their_order_and_persons_are_shown_once(folder):
    (folder / "a.ris").write_text(ODD + "ER  - \nProvider: Ovid\n")
    (record,) = read("a.ris", fields=("*",))
    assert lines_of(ris_entry(record.fields)) == [*ODD.splitlines(), "ER  - "]
    assert record.fields["authors"] == ["Doe, J.", "Roe, R."]


def test_columns_of_databases_have_tags_of_ris():
    scopus = {
        "Authors": "Doe J.; Roe R.-T.",
        "Source title": "Tin",
        "Year": 2019,
        "Volume": "3",
        "Issue": "2",
        "Page start": "12",
        "Page end": "34",
        "EID": "2-s2.0-85",
        "ISSN": "1234",
        "Publisher": "Elsevier",
        "Author Keywords": "tin; lead",
        "Document Type": "Review",
        "Affiliations": "Tin Institute",
        "DOI": "10.1/a",
        "Cited by": "3",
    }
    assert lines_of(ris_entry(common_fields(scopus) | {"title": "Tin"})) == [
        *("TY  - JOUR", "M3  - Review"),
        *("AU  - Doe J.", "AU  - Roe R.-T.", "T2  - Tin", "PY  - 2019", "VL  - 3", "IS  - 2", "AN  - 2-s2.0-85"),
        *("SN  - 1234", "PB  - Elsevier", "KW  - tin", "KW  - lead", "AD  - Tin Institute", "DO  - 10.1/a"),
        *("SP  - 12", "TI  - Tin", "EP  - 34", "ER  - "),
    ]


@every(
    "text, names",
    [
        ("Doe J, Roe RT, Poe A.", ["Doe J", "Roe RT", "Poe A"]),
        ("Doe J., Roe R.-T.", ["Doe J.", "Roe R.-T."]),
        ("Doe, Jane", ["Doe, Jane"]),
        ("Doe, Jane; Roe, R.;", ["Doe, Jane", "Roe, R."]),
        ("Jane Doe and R. Roe", ["Jane Doe", "R. Roe"]),
        ("World Health Organization", ["World Health Organization"]),
    ],
)
def test_a_text_of_several_authors_is_divided(text, names):
    assert divided_names(text) == names


@every(
    "fields, date",
    [
        ({"date": "1848/03/05/"}, "1848-03-05"),
        ({"date": "1848/03//"}, "1848-03"),
        ({"date": "1848///Frühjahr"}, "1848"),
        ({"year": "1848", "month": "mar"}, "1848-03"),
        ({"year": "1848", "month": "3", "day": "5"}, "1848-03-05"),
        ({"year": "1848", "month": "März", "day": "5"}, "1848-03-05"),
        ({"year": "1848", "month": "spring"}, "1848"),
        ({"year": "1848"}, "1848"),
        ({"date": "JUN 10", "year": "2003"}, "2003-06-10"),
        ({"date": "10 June", "year": "2003"}, "2003-06-10"),
        ({"date": "JUN", "year": "2003"}, "2003-06"),
        ({"date": "2003 Jun 10"}, "2003-06-10"),
        ({"date": "2003 Jun"}, "2003-06"),
        ({"date": "2003 Jun-Jul"}, "2003"),
        ({"date": "2003 Spring"}, "2003"),
        ({"date": "ca. 1848", "year": "1848"}, "ca. 1848"),
        ({"date": "1848-03/1849", "year": "1848"}, "1848-03/1849"),
        ({"date": "in press"}, "in press"),
        ({}, ""),
    ],
)
def test_the_date_of_a_reference_may_be_divided_into_fields(fields, date):
    assert reference_content({"title": "Tin", **fields}, InputSettings()).date == date
    assert reference_content({"title": "Tin", "read": "1", **fields}, InputSettings(date_field="read")).date == "1"


def test_other_formats_keep_numbers_dates_and_several_urls(folder):
    (folder / "a.nbib").write_text(NBIB.replace("TA  -", "PMC - PMC12\nPL  - Berlin\nTA  -"))
    (folder / "a.bib").write_text(
        "@book{k, title={Tin}, editor={Doe, J.}, edition={2}, isbn={12}, date={2019-03-12}, urldate={2020-01}}"
    )
    (folder / "a.xml").write_text(
        "<xml><records><record><titles><title>Tin</title></titles><accession-num>WOS:1</accession-num><urls>"
        "<related-urls><url>http://a</url><url>http://b</url></related-urls></urls></record></records></xml>"
    )
    expected = {
        "a.nbib": ["AN  - 31234567", "C2  - PMC12", "CY  - Berlin", "J2  - J Tin", "DO  - 10.1000/abc"],
        "a.bib": ["A2  - Doe, J.", "ET  - 2", "SN  - 12", "DA  - 2019/03/12/", "Y2  - 2020/01//"],
        "a.xml": ["AN  - WOS:1", "UR  - http://a", "UR  - http://b"],
    }
    for name, lines in expected.items():
        record = read(name, fields=("*",))[0]
        assert set(lines) <= set(lines_of(ris_entry(record.fields)))
