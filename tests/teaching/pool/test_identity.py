"""Records of the same work are one group, and those that contradict each other are not, whatever their texts."""

import pytest
from cases import every

from textcat import Document
from textcat.reading import ris_entry
from textcat.teaching.pool import Pool, build_pool
from textcat.teaching.pool.identity import identity_of

TEXT = (
    "A randomised trial of tin against lead in forty adults with asthma, over seven weeks, found no difference at all."
)
OTHER = "Wheat exports of the north fell by a third in the last year, as harvests of spring were lost to late frost."
TITLE = "Tin against lead in adults"
WORK = {"title": TITLE, "body": TEXT, "year": "2001", "authors": ["Müller, J.", "Roe, R."], "pages": "12-34"}


def record(**changes):
    fields = {**WORK, **changes}
    zones = {name: fields.pop(name) for name in ("title", "body")}
    return Document("", zones, fields={name: value for name, value in fields.items() if value})


def groups(*records):
    return Pool.from_documents([*records, record(title="Wheat", body=OTHER, year="1990")]).groups.tolist()[:-1]


@every(
    "doi",
    ["10.1000/ABC.x", "https://doi.org/10.1000/abc.x", "doi: 10.1000/abc.X.", "http://dx.doi.org/10.1000%2Fabc.x"],
)
def test_records_of_one_doi_are_one_group_however_it_is_written_and_whatever_else_differs(doi):
    others = record(doi=doi, title="Another title", body="", year="2002"), record(doi="10.1000/abc.x", body=OTHER)
    assert groups(record(doi="10.1000/abc.x"), *others) == [0, 0, 0]
    assert identity_of({}, {"url": f"https://doi.org/{doi}"}).doi == "10.1000/abc.x"


def test_records_of_one_number_of_pubmed_are_one_group_unless_their_doi_differs():
    same = (
        record(pmid="PMID: 0123", title="Another", body=""),
        record(url="https://pubmed.ncbi.nlm.nih.gov/123/", body=""),
    )
    assert groups(record(pmid="123"), *same) == [0, 0, 0]
    assert groups(record(pmid="123", doi="10.1000/a"), record(pmid="123", doi="10.1000/b", body="")) == [0, 1]
    accession = {"AN": "123", "DB": "PubMed"}
    assert identity_of({}, accession).pmid == identity_of({}, {"notes": ["PMID: 123"]}).pmid == "123"
    assert identity_of({}, {"AN": "123", "DB": "Embase"}).pmid == ""


@every(
    "changes, n",
    [
        ({"doi": "10.1000/b"}, 2),
        ({"year": "2010"}, 2),
        ({"doi": ""}, 1),
        ({"doi": "", "year": ""}, 1),
        ({"doi": "", "year": "2010"}, 2),
        ({"pmid": "77", "doi": ""}, 1),
        ({"doi": "", "authors": ["Mueller, J."]}, 1),
    ],
)
def test_another_doi_or_year_keeps_the_same_texts_apart_and_a_missing_one_does_not(changes, n):
    first = record(doi="10.1000/a" if "doi" in changes else "")
    assert len(set(groups(first, record(**{"doi": first.fields.get("doi"), **changes})))) == n


def test_letters_of_one_title_are_apart_if_year_author_or_page_differ():
    def letter(**changes):
        return record(title="Letter to the editor", body="", **changes)

    assert groups(letter(year="1999"), letter(year="2010")) == [0, 1]
    assert groups(letter(), letter(authors=["Garcia, P."])) == [0, 1]
    assert groups(letter(), letter(pages="99")) == [0, 1]
    assert groups(letter(), letter(year="1999"), letter(), letter(year="1999")) == [0, 1, 0, 1]


@every(
    "changes",
    [
        {"title": TITLE.upper(), "body": ""},
        {"title": f"{TITLE}: a randomised trial", "body": ""},
        {"title": f"{TITLE}. Results", "journal": "J. Tin"},
        {"body": "", "year": ""},
        {"body": "", "authors": ["Muller J"]},
        {"body": f"{TEXT} Copyright 2001 of the authors and their publisher. All rights of reproduction are reserved."},
    ],
)
def test_overlaps_of_databases_are_found_though_abstract_case_or_subtitle_differ(changes):
    assert groups(record(doi="10.1000/a"), record(**changes)) == [0, 0]


@every(
    "changes",
    [
        {"title": f"{TITLE}: a second trial", "body": OTHER},
        {"body": OTHER},
        {"title": "Tin against lead in children", "body": ""},
        {"title": f"{TITLE}: a review", "body": "", "authors": ["Garcia, P."]},
        {"body": "", "year": "", "authors": [], "pages": ""},
    ],
)
def test_works_of_nearly_one_title_are_not_taken_for_one(changes):
    assert groups(record(), record(**changes)) == [0, 1]


def test_records_that_only_a_third_one_connects_are_one_group():
    assert groups(record(), record(doi="10.1000/a", title="Tin", body=""), record(doi="10.1000/a")) == [0, 0, 0]


def test_the_order_of_records_changes_only_the_first_of_a_group():
    works = [
        record(doi="10.1000/a"),
        record(doi="10.1000/A", body=""),
        record(year="2010"),
        record(year="2010", body=""),
    ]
    for order in ([0, 1, 2, 3], [3, 2, 1, 0], [2, 0, 3, 1]):
        found = groups(*(works[i] for i in order))
        assert {frozenset(i for i, group in zip(order, found, strict=True) if group == one) for one in found} == {
            frozenset({0, 1}),
            frozenset({2, 3}),
        }


def test_documents_without_further_fields_are_grouped_by_their_texts_alone():
    texts = [{"title": TITLE, "body": text} for text in (TEXT, "", OTHER, TEXT)]
    assert Pool.from_documents([Document("", zones) for zones in texts]).groups.tolist() == [0, 1, 2, 0]


@pytest.mark.parametrize("pieces_from", [0, 1 << 30])
def test_a_pool_on_disk_has_the_groups_of_one_in_memory(tmp_path, monkeypatch, pieces_from):
    monkeypatch.setattr("textcat.teaching.pool.texts.PIECES_FROM", pieces_from)
    monkeypatch.setattr("textcat.teaching.pool.index.ALL_UP_TO", 0 if not pieces_from else 30_000)
    works = [record(doi="10.1000/a"), record(doi="10.1000/A", body=""), record(year="2010"), record(doi="10.1000/b")]
    entries = ({**one.fields, "title": one.zones["title"], "abstract": one.zones["body"]} for one in works)
    (tmp_path / "found.ris").write_text("".join(map(ris_entry, entries)))
    pool = build_pool([str(tmp_path / "found.ris")], tmp_path / "pool", jobs=1)
    assert pool.groups.tolist() == [0, 0, 2, 3]


@every("run", [" ", "\n", " \n", ".", "-"])
def test_a_long_run_within_a_title_is_passed_once(run):
    # Were the rest looked through at each character, this would take minutes.
    title = f"Tin{run * (300_000 // len(run))}ore: a review"
    identity = identity_of({"title": title}, {"year": "1999"})
    assert identity.title == ("tin", "ore", "a", "review")
    assert identity.main_title == ("tin", "ore")


@every("between", [": ", "? ", " : ", " - ", "  – ", " —", ". ", ".\n", "?"])
def test_a_main_title_ends_before_its_subtitle(between):
    identity = identity_of({"title": f"Tin ore{between}A review"}, {"year": "1999"})
    assert identity.main_title == ("tin", "ore")
