"""Word: paragraphs, tables and notes, but nothing that is hidden or deleted."""

import io

import docx
from office_files import changed, word

from textcat.reading import text_of_file


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


ENTITIES = (
    b'<?xml version="1.0"?><!DOCTYPE a [<!ENTITY a SYSTEM "file:///etc/passwd"><!ENTITY b "bb">]>'
    b'<w:document xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"><w:body><w:p><w:r><w:t>'
    b"x&a;&b;y</w:t></w:r></w:p></w:body></w:document>"
)


def test_entities_of_word_are_never_loaded():
    data = changed(word("Tin"), lambda name, data: ENTITIES if name == "word/document.xml" else data)
    assert text_of_file("a.docx", data) == {"body": "x"}  # up to the first
