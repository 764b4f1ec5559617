"""Files of offices and of the web: what they say, what is left out, and what is refused in a sentence."""

import sys
from email.message import EmailMessage

import pypdf
import pytest
from cases import every
from office_files import changed, drawn, locked, pdf, word

from textcat.base.disk import is_installed
from textcat.base.errors import TextcatError
from textcat.corpus.catalogue import open_corpus
from textcat.reading import InputSettings, Record, Rejection, find_sources, formats, read_batches, text_of_file
from textcat.reading.formats.documents import missing_module


def bomb():
    return changed(word("Tin"), lambda name, data: b"<!--" + b" " * (20 << 20) + b"-->" if "document" in name else data)


# What takes long to make is made when it is read.
@every(
    "name, data, sentence",
    [
        ("a.pdf", lambda: locked(pdf("Tin"), "secret", None, "AES-256"), "is encrypted: save it without its pass"),
        ("a.pdf", pdf, "has no text, like scanned pages"),
        ("a.pdf", lambda: pdf("Tin")[:3000], r"is not a readable PDF \(.*\): repair it"),
        ("a.pdf", b"", r"is not a readable PDF \(.*\): repair it"),
        ("a.pdf", lambda: drawn(b" " * (40 << 20)), r"is not a readable PDF \(.*Limit.*\): repair it"),
        ("a.docx", lambda: word("Tin")[:5000], r"is not a readable \.docx \(File is not a zip file\): repair it"),
        ("a.docx", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "is encrypted, or in Word's format before 2007"),
        ("a.docx", bomb, "unpacks to"),
        ("a.docx", lambda: changed(word("Tin"), lambda name, data: b"<a>" * 9999), r"is not a readable \.docx"),
        ("a.html", b"<p>Tin\0", r"has a NUL byte \(byte 6\), so it is not HTML"),
        ("a.eml", b"Tin rose.", "does not begin with a header, so it is not a mail"),
        ("a.eml", b"Subject: a\0", r"has a NUL byte \(byte 10\)"),
        ("a.txt", b"caf\xe9", r"is not utf-8 \(byte 3\): save it as UTF-8"),
        ("a.txt", b"a" * ((16 << 20) + 1), "has more than 16777216 bytes, the most that a record may have"),
        ("a.jsonl", b"{}", "is not a document: give HTML"),
        ("a.zip", b"PK", "is not a document: give HTML"),
        ("a.pdf.gz", b"", "is not a document: give HTML"),
    ],
)
def test_what_cannot_be_read_is_refused_in_one_sentence(name, data, sentence):
    with pytest.raises(TextcatError, match=rf"^{name} {sentence}[^\n]*\.$"):
        text_of_file(name, data() if callable(data) else data)


def test_the_content_tells_what_a_file_without_an_ending_is():
    assert text_of_file("page", b" <!doctype HTML><p>Tin") == {"body": "Tin"}
    assert text_of_file("", word("Tin")) == {"body": "Tin"}
    assert text_of_file("scan", pdf("Tin")) == {"body": "Tin"}
    assert text_of_file("README", b"<p>Tin") == {"body": "<p>Tin"}
    assert text_of_file("README", b"{}") == {"body": "{}"}


def rejections(folder):
    settings = InputSettings()
    batches = read_batches(find_sources([folder], settings), settings)
    return [item for batch in batches for item in formats.batch_records(batch, settings)]


@pytest.mark.parametrize(
    ("name", "library", "make"),
    [("a.docx", "docx", word), ("a.pdf", "pypdf", pdf)],
)
def test_without_the_extra_such_files_are_rejected_with_how_to_install_it(tmp_path, monkeypatch, name, library, make):
    data = make("x")
    monkeypatch.setitem(sys.modules, library, None)
    (tmp_path / name).write_bytes(data)
    (tmp_path / "b.txt").write_text("Tin")
    sentence = "needs a package that is not installed: run `pip install 'textcat-margin[documents]'`, then start again"
    missing, text = rejections(tmp_path)
    assert isinstance(missing, Rejection)
    assert missing.reason == f"The file {sentence}."
    assert isinstance(text, Record)
    with pytest.raises(TextcatError) as error:
        text_of_file(name, data)
    assert str(error.value) == f"{name} {sentence}."


@pytest.mark.parametrize(
    ("name", "data"),
    [("a.html", b"x"), ("a.xml", b"<rss version='2.0'><channel><item><title>Tin</title></item></channel></rss>")],
)
def test_where_lxml_was_left_out_such_files_are_rejected_by_its_name(tmp_path, monkeypatch, name, data):
    monkeypatch.setitem(sys.modules, "lxml", None)
    (tmp_path / name).write_bytes(data)
    (missing,) = rejections(tmp_path)
    assert "needs lxml, which is not installed: run `pip install lxml`" in missing.reason


@pytest.mark.parametrize("is_there", [False, True])
def test_a_pdf_needs_cryptography_only_where_it_is_not_installed(tmp_path, monkeypatch, is_there):
    """The library raises the same error if another package, such as brotli, is not installed."""

    def fail(*_):
        raise pypdf.errors.DependencyError("brotli is required")

    (tmp_path / "a.pdf").write_bytes(pdf("Tin"))
    monkeypatch.setattr("pypdf.PdfReader", fail)
    monkeypatch.setattr("textcat.reading.formats.pdf.is_installed", lambda name: is_there)
    (missing,) = rejections(tmp_path)
    assert missing.needs == ("" if is_there else "cryptography")


@pytest.mark.parametrize(
    ("error", "needs"),
    [
        (ModuleNotFoundError("No module named 'lxml'", name="lxml"), "lxml"),  # which python-docx imports
        (ImportError("cannot import name 'Document' from 'docx'", name="docx"), ""),
    ],
)
def test_a_file_needs_the_module_that_is_not_installed(error, needs):
    assert missing_module(error).needs == needs
    assert not is_installed("sys.nothing")  # sys is no package


def test_in_a_folder_per_topic_files_are_texts_unless_they_can_be_none(tmp_path):
    for name, data in {
        "tin/1.txt": b"Tin",
        "tin/2": b"<p>Tin",
        "gold/3.log": b"Gold",
        "gold/4.HTM": b"<p>Gold",
    }.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(data)
    (tmp_path / "README.md").write_text("# Metals")  # beside the topics
    read = {one.id: (one.zones["body"], one.topics) for one in open_corpus(tmp_path).train}
    assert read == {
        "gold/3.log": ("Gold", ("gold",)),
        "gold/4.HTM": ("Gold", ("gold",)),
        "tin/1.txt": ("Tin", ("tin",)),
        "tin/2": ("<p>Tin", ("tin",)),
    }
    as_text = open_corpus(tmp_path, settings=InputSettings(format="text"))
    assert [one.zones["body"] for one in as_text.train] == ["Gold", "<p>Gold", "Tin", "<p>Tin"]
    (tmp_path / "tin" / "5.pdf").write_bytes(pdf())
    with pytest.raises(TextcatError, match=r"tin/5\.pdf in .* has no text, like scanned pages"):
        open_corpus(tmp_path)


def test_files_with_pictures_may_be_larger_than_other_records(tmp_path):
    mail = EmailMessage()
    mail["Subject"] = "Tin"
    mail.set_content("Rose.")
    mail.add_attachment(bytes(3000), maintype="image", subtype="png")
    (tmp_path / "a.eml").write_bytes(bytes(mail))
    settings = InputSettings(max_bytes=2000)
    (batch,) = read_batches(find_sources([tmp_path], settings), settings)
    assert [item.zones for item in formats.batch_records(batch, settings)] == [{"title": "Tin", "body": "Rose.\n"[:5]}]
    settings = InputSettings(max_bytes=200)
    (batch,) = read_batches(find_sources([tmp_path], settings), settings)
    assert [type(item) for item in formats.batch_records(batch, settings)] == [Rejection]
