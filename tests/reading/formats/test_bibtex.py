"""BibTeX: entries with nested braces and LaTeX's accents; a broken entry costs itself only."""

from read_sources import read

from textcat.reading import Rejection
from textcat.reading.formats.bibtex import latex_text

BIB = r"""% comment
@string{jt = "Journal of Tin"}
@article{doe2019,
  author = {Jane Doe and M{\"u}ller, J{\"o}rg and {\'E}mile Zol\'a},
  title = "{Tin} and {Gold}: caf\'{e}",
  journal = "Journal of " # {Tin}, year = 2019, pages = {12--34}, doi = {https://doi.org/10.1000/ABC},
  abstract = {Some {nested {braces}} and \& escapes, 5\% of it.}, keywords = {tin; silver}
}
@book(roe, title={A book}, year="1999")
@misc{broken, title = {never closed
@misc{ok, title = {After}}
"""


def test_entries_are_read(folder):
    (folder / "a.bib").write_text(BIB)
    doe, roe, fault, last = read("a.bib", fields=("*",))
    assert doe.zones == {"title": "Tin and Gold: café", "body": "Some nested braces and & escapes, 5% of it."}
    assert doe.fields == {
        "type": "article",
        "id": "doe2019",
        "authors": ["Jane Doe", "Müller, Jörg", "Émile Zolá"],
        "year": "2019",
        "journal": "Journal of Tin",
        "pages": "12-34",
        "doi": "10.1000/ABC",
        "keywords": ["tin", "silver"],
    }
    assert (roe.id, roe.zones, last.id) == ("roe", {"title": "A book"}, "ok")
    assert isinstance(fault, Rejection)
    assert "not closed" in fault.reason


def test_latex_becomes_text():
    assert latex_text(r"{\ss} \o{} \c{c} \v{s} \{a\} x~y 1--2") == "ß ø ç š {a} x y 1–2"


def test_a_name_between_two_authors_may_be_surrounded_by_any_spaces(folder):
    entry = "@misc{a, title = {T}, author = {A B  \n and \t C D and and E}}\n"
    (folder / "a.bib").write_text(f"{entry}@misc{{, title = {{U}}}}\n")
    first, second = read("a.bib", fields=("*",))
    assert first.fields["authors"] == ["A B", "C D", "and E"]
    assert second.zones == {"title": "U"}
