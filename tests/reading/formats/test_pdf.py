"""PDF: the text of its pages, and what is refused."""

import pytest
from office_files import drawn, locked, pdf

from textcat.base.errors import TextcatError
from textcat.reading import text_of_file


def test_pdf_is_the_text_of_its_pages():
    assert text_of_file("a.pdf", pdf("Tin rose.", Title="Tin up")) == {"title": "Tin up", "body": "Tin rose."}
    assert text_of_file("a.pdf", pdf("Tin rose.", Title="Untitled")) == {"body": "Tin rose."}
    for algorithm in ("RC4-128", "AES-128", "AES-256"):  # no password is needed for reading
        assert text_of_file("a.pdf", locked(pdf("Tin"), "", "owner", algorithm)) == {"body": "Tin"}


def test_a_pdf_that_draws_more_than_can_be_meant_is_refused(monkeypatch):
    monkeypatch.setattr("textcat.reading.formats.pdf.MOST_OPERATIONS", 1000)
    with pytest.raises(TextcatError, match=r"^a\.pdf .* 1,000 drawing operations"):
        text_of_file("a.pdf", drawn(b"0 0 m\n" * 100, 11))
    monkeypatch.setattr("textcat.reading.formats.pdf.MOST_PAGES", 5)
    with pytest.raises(TextcatError, match=r"^a\.pdf .* 5 pages"):
        text_of_file("a.pdf", drawn(b"0 0 m\n", 6))
