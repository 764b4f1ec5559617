"""Files of offices and of the web: what they say, what is left out, and what is refused in a sentence."""

import io
import sys
import zipfile
from email.message import EmailMessage

import docx
import matplotlib.figure
import pypdf
import pytest

from textcat.corpus.catalogue import open_corpus
from textcat.errors import TextcatError
from textcat.reading import InputSettings, Record, Rejection, find_sources, formats, read_batches, text_of_file


def word(*paragraphs, title=""):
    file, document = io.BytesIO(), docx.Document()
    document.core_properties.title = title
    for text in paragraphs:
        document.add_paragraph(text)
    document.save(file)
    return file.getvalue()


def changed(data, change):
    """A zip with each of its files changed, by their names."""
    file = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as new:
        for name in old.namelist():
            new.writestr(name, change(name, old.read(name)))
    return file.getvalue()


def pdf(text="", **metadata):
    figure, file = matplotlib.figure.Figure(), io.BytesIO()
    figure.text(0.1, 0.5, text)
    figure.savefig(file, format="pdf", metadata=metadata)
    return file.getvalue()


def locked(data, password, owner, algorithm):
    writer, file = pypdf.PdfWriter(clone_from=io.BytesIO(data)), io.BytesIO()
    writer.encrypt(password, owner, algorithm=algorithm)
    writer.write(file)
    return file.getvalue()


def drawn(content, pages=1):
    """A PDF whose pages share what they draw."""
    writer, file = pypdf.PdfWriter(), io.BytesIO()
    stream = pypdf.generic.StreamObject()
    stream.set_data(content)
    name = pypdf.generic.NameObject
    shared = writer._add_object(stream.flate_encode())
    font = {"/Type": "/Font", "/Subtype": "/Type1", "/BaseFont": "/Helvetica"}
    font = pypdf.generic.DictionaryObject({name(key): name(value) for key, value in font.items()})
    fonts = pypdf.generic.DictionaryObject({name("/F1"): font})
    for _ in range(pages):
        page = writer.add_blank_page(100, 100)
        page[name("/Contents")] = shared
        page[name("/Resources")] = pypdf.generic.DictionaryObject({name("/Font"): fonts})
    writer.write(file)
    return file.getvalue()


PAGE = """<!DOCTYPE html><html style="visibility:hidden"><head><title> Tin &amp;
 gold </title><style>b {}</style><script>var no = "<p>no"</script></head><body><nav>Home</nav><h1>Tin</h1>
<p>Tin <b>ro</b>se &mdash; 3&nbsp;% co&shy;pper<table><tr><td>a<td>b<tr><td>c</table><p hidden>no</p>
<div style="color: red; DISPLAY : none">no<div>no</div></div>after<br>all<noscript>no</noscript><svg><title>no</title>
<text>no</text></svg><template>no</template><!-- no --><textarea>&lt;x></textarea><pre>x
  y</pre><img src="http://127.0.0.1:9/x" alt="no"><select><option>no</select><i title="a > b">z</body></html>"""


def test_a_page_is_what_it_shows_without_its_navigation():
    shown = "Tin\nTin rose — 3 % copper\na b\nc\nafter\nall\n<x>\nx\ny\nz"
    assert text_of_file("a.html", PAGE.encode()) == {"title": "Tin & gold", "body": shown}


@pytest.mark.parametrize("main", ["<main>{}</main>", "<div role=main>{}</div>"])
def test_of_a_page_with_a_main_part_that_is_read(main):
    page = f"<header>Shop</header>{main.format('<p>Tin<div>rose</div><nav>no</nav>.')}<footer>Imprint</footer>"
    assert text_of_file("a.html", page.encode()) == {"body": "Tin\nrose\n."}
    assert text_of_file("a.html", b"<main></main><p>Tin") == {"body": "Tin"}


@pytest.mark.parametrize(
    ("head", "encoding"),
    [
        ("", "utf-8"),
        ("", "utf-8-sig"),
        ("", "utf-16"),
        ('<meta charset="iso-8859-1">', "utf-16"),
        ('<meta charset="windows-1251">', "cp1251"),
        ('<meta http-equiv="Content-Type" content="text/html; charset=koi8-r">', "koi8-r"),
        ('<?xml version="1.0" encoding="windows-1251"?>', "cp1251"),
        ('<meta charset="rot13">', "utf-8"),
        ('<meta charset="utf-16">', "utf-8"),
        ('<meta charset="windows-1251">', "utf-8-sig"),
    ],
)
def test_a_page_is_decoded_as_browsers_do(head, encoding):
    assert text_of_file("a.html", f"{head}<p>Олово".encode(encoding)) == {"body": "Олово"}


def test_a_page_that_declares_nothing_and_is_not_utf_8_is_western_europes():
    assert text_of_file("a.html", b"<p>caf\xe9 \x93q\x94") == {"body": "café “q”"}
    assert text_of_file("a.html", b"<meta charset=latin1><p>\x80 3") == {"body": "€ 3"}
    assert text_of_file("a.html", b"<meta charset=utf-8><p>caf\xe9") == {"body": "caf\ufffd"}


def test_mail_is_its_subject_and_its_plain_text_or_else_its_html():
    mail = EmailMessage()
    mail["Subject"] = "Grüße"
    mail.set_content("<style>no</style><p>Tin<p>Käse", subtype="html", charset="latin-1")
    assert text_of_file("a.eml", bytes(mail)) == {"title": "Grüße", "body": "Tin\nKäse"}
    mail.add_attachment("no", filename="a.txt")
    assert text_of_file("a.eml", bytes(mail)) == {"title": "Grüße", "body": "Tin\nKäse"}
    mail = EmailMessage()
    mail["Subject"] = "Tin"
    mail.set_content("Rose.")
    mail.add_alternative("<p>No", subtype="html")
    assert text_of_file("a.eml", bytes(mail)) == {"title": "Tin", "body": "Rose."}
    assert text_of_file("a.eml", "Subject: Grüße\nContent-Type: no;;=\n\nö".encode())["title"] == "Grüße"


def test_markdown_is_read_without_its_marks():
    text = (
        "---\ntitle: 'Tin up'\ntags: [no]\n---\n# Tin\n\nTin [rose](http://no) **much**, `x = 1` ![a mine](no.png)\n"
        "said <b>they</b>.\n\n| a | b |\n|---|---|\n| c | ~~d~~ |\n\n```py\nprint(1)\n```\n<div no>\nshown\n</div>\n\n"
        "- one\n  - two\n\n> three &amp; [four][no]\n\n[no]: http://no\n"
    )
    body = "Tin\nTin rose much, x = 1 a mine\nsaid they.\na\nb\nc\nd\nprint(1)\nshown\none\ntwo\nthree & four"
    assert text_of_file("a.md", text.encode()) == {"title": "Tin up", "body": body}
    assert text_of_file("a.md", b"Tin\n===\n\nRose.\n\n# Gold\n") == {"title": "Tin", "body": "Rose.\nGold"}
    assert text_of_file("a.md", b"---\nTin\n") == {"body": "Tin"}


def test_of_long_markdown_nothing_is_lost_between_its_parts():
    paragraphs = [f"paragraph *{i}* " + "x" * 500 for i in range(2000)]
    expected = "\n".join(paragraphs).replace("*", "")
    assert text_of_file("a.md", "\n\n".join(paragraphs).encode()) == {"body": expected}
    words = "tin " * 200_000
    assert text_of_file("a.md", words.encode())["body"].split() == words.split()


def test_word_is_paragraphs_tables_and_notes_but_nothing_hidden_or_deleted():
    document, file = docx.Document(), io.BytesIO()
    document.add_paragraph("Tin up", style="Title")
    document.add_paragraph("Tin\trose.\nMuch.")
    table = document.add_table(1, 2)
    table.cell(0, 0).text, table.cell(0, 1).text = "Käse", "Zinn"
    document.add_paragraph("seen ").add_run("hidden").font.hidden = True
    document.save(file)

    def with_changes(name, data):
        tracked = (
            b"<w:ins><w:r><w:t>put in</w:t></w:r></w:ins><w:del><w:r><w:delText>no</w:delText></w:r></w:del></w:p>"
        )
        return data.replace(b"seen </w:t></w:r>", b"seen </w:t></w:r>" + tracked[:-6]) if "document" in name else data

    body = "Tin up\nTin rose.\nMuch.\nKäse\nZinn\nseen put in"
    assert text_of_file("a.docx", changed(file.getvalue(), with_changes)) == {"title": "Tin up", "body": body}
    assert text_of_file("a.docx", word("Rose.", title="Tin")) == {"title": "Tin", "body": "Rose."}


def test_pdf_is_the_text_of_its_pages():
    assert text_of_file("a.pdf", pdf("Tin rose.", Title="Tin up")) == {"title": "Tin up", "body": "Tin rose."}
    assert text_of_file("a.pdf", pdf("Tin rose.", Title="Untitled")) == {"body": "Tin rose."}
    for algorithm in ("RC4-128", "AES-128", "AES-256"):  # no password is needed for reading
        assert text_of_file("a.pdf", locked(pdf("Tin"), "", "owner", algorithm)) == {"body": "Tin"}


BOMB = changed(word("Tin"), lambda name, data: b"<!--" + b" " * (40 << 20) + b"-->" if "document" in name else data)
ENTITIES = (
    b'<?xml version="1.0"?><!DOCTYPE a [<!ENTITY a SYSTEM "file:///etc/passwd"><!ENTITY b "bb">]>'
    b'<w:document xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"><w:body><w:p><w:r><w:t>'
    b"x&a;&b;y</w:t></w:r></w:p></w:body></w:document>"
)


@pytest.mark.parametrize(
    ("name", "data", "sentence"),
    [
        ("a.pdf", locked(pdf("Tin"), "secret", None, "AES-256"), "is encrypted: save it without its pass"),
        ("a.pdf", pdf(), "has no text, like scanned pages"),
        ("a.pdf", pdf("Tin")[:3000], r"is not a readable PDF \(.*\): repair it"),
        ("a.pdf", b"", r"is not a readable PDF \(.*\): repair it"),
        ("a.pdf", drawn(b" " * (40 << 20)), r"is not a readable PDF \(.*Limit.*\): repair it"),
        ("a.docx", word("Tin")[:5000], r"is not a readable \.docx \(File is not a zip file\): repair it"),
        ("a.docx", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "is encrypted, or in Word's format before 2007"),
        ("a.docx", BOMB, "unpacks to"),
        ("a.docx", changed(word("Tin"), lambda name, data: b"<a>" * 9999), r"is not a readable \.docx"),
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
        text_of_file(name, data)


def test_a_pdf_that_draws_more_than_can_be_meant_is_refused(monkeypatch):
    monkeypatch.setattr("textcat.reading.formats.pdf.MOST_OPERATIONS", 1000)
    with pytest.raises(TextcatError, match=r"^a\.pdf .* 1,000 drawing operations"):
        text_of_file("a.pdf", drawn(b"0 0 m\n" * 100, 11))
    monkeypatch.setattr("textcat.reading.formats.pdf.MOST_PAGES", 5)
    with pytest.raises(TextcatError, match=r"^a\.pdf .* 5 pages"):
        text_of_file("a.pdf", drawn(b"0 0 m\n", 6))


def test_the_content_tells_what_a_file_without_an_ending_is():
    assert text_of_file("page", b" <!doctype HTML><p>Tin") == {"body": "Tin"}
    assert text_of_file("", word("Tin")) == {"body": "Tin"}
    assert text_of_file("scan", pdf("Tin")) == {"body": "Tin"}
    assert text_of_file("README", b"<p>Tin") == {"body": "<p>Tin"}
    assert text_of_file("README", b"{}") == {"body": "{}"}


def test_entities_of_word_are_never_loaded():
    data = changed(word("Tin"), lambda name, data: ENTITIES if name == "word/document.xml" else data)
    assert text_of_file("a.docx", data) == {"body": "x"}  # up to the first


@pytest.mark.parametrize(
    "page",
    [
        b"<div>" * 1_000_000 + b"x",
        b"<p " + b" ".join(b"a%d=1" % i for i in range(100_000)) + b">x",
        b"<div><object></div></object>" * 100_000 + b"x",
        b"<b><i><p>" * 100_000 + b"x",
        b"<!--" * 500_000 + b"-->x",
        b"<a<" * 500_000 + b">x",
    ],
    ids=("deep", "attributes", "ill nested", "formatted", "comments", "tags in tags"),
)
def test_hostile_pages_take_time_in_proportion_to_their_length(page):
    text_of_file("a.html", page)  # a tree would take minutes


def rejections(folder):
    settings = InputSettings()
    batches = read_batches(find_sources([folder], settings), settings)
    return [item for batch in batches for item in formats.batch_records(batch, settings)]


@pytest.mark.parametrize(
    ("name", "library", "data"),
    [("a.html", "lxml", b"x"), ("a.docx", "docx", word("x")), ("a.pdf", "pypdf", pdf("x"))],
)
def test_without_the_extra_such_files_are_rejected_with_how_to_install_it(tmp_path, monkeypatch, name, library, data):
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


def test_mail_has_its_date_and_the_topics_of_a_header(tmp_path):
    (tmp_path / "a.eml").write_text("Subject: Tin\nDate: Thu, 1 Jan 1970 00:00:00 +0000\nX-Labels: tin, ore\n\nRose.\n")
    settings = InputSettings(format="eml", topics_field="X-Labels", topics_separator=",")
    (document,) = open_corpus(tmp_path / "a.eml", settings=settings).train
    assert (document.topics, document.date) == (("tin", "ore"), "Thu, 1 Jan 1970 00:00:00 +0000")


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
