"""TEI: header, topics, divided words, what is given twice, corpora, and what is no TEI."""

import random
import re
import xml.sax

import pytest
from cases import every
from formats_read import parsed
from read_sources import faults, ids, read
from tei_texts import ABSTRACT, BODY, NAMESPACE, TEXT, TITLE, TOPICS, body, corpus, tei

from textcat import open_corpus
from textcat.reading import InputSettings, find_sources, text_of_file
from textcat.reading.faults import FaultKind
from textcat.reading.input_settings import LabelSettings


def text_of(inside):
    (record,) = parsed("tei", body(inside))
    return record.zones["body"]


def test_a_document_gives_its_id_texts_date_and_language(folder):
    (folder / "a.xml").write_bytes(tei())
    assert find_sources(["a.xml"], InputSettings())[0].format == "tei"
    (record,) = read("a.xml", fields=("*",))
    assert (record.id, record.date, record.language) == ("urn:tin:1", "1860-05-01", "de")
    assert record.zones == {"title": TITLE, "abstract": ABSTRACT, "body": BODY}
    assert record.fields["subjects"][3] == {"scheme": "house", "code": "c1", "name": "metals"}
    assert read("a.xml")[0].fields is None


def test_keywords_categories_and_codes_are_topics_of_all_schemes_or_of_one(folder):
    (folder / "a.xml").write_bytes(tei())
    assert open_corpus("a.xml").train[0].topics == TOPICS
    for scheme, expected in (("lcsh", TOPICS[:1]), ("ddc", TOPICS[2:3]), ("house", TOPICS[3:])):
        (record,) = parsed("tei", tei(), topics_scheme=scheme, labels=LabelSettings())
        assert record.topics == expected


@every(
    "inside, expected",
    [
        ("<p>Berg<lb break='no'/>werk</p>", "Bergwerk"),
        ("<p>Berg-\n <pb break='no'/>\n <lb break='no'/> werk</p>", "Bergwerk"),
        ("<p>Berg\u00ac<lb/>werk Berg\u00ad<lb/>werk</p>", "Bergwerk Bergwerk"),
        ("<p>Berg-<lb/>werk, Nord-<lb/>Amerika, 1-<lb/>2, - <lb/>so</p>", "Bergwerk, Nord-Amerika, 1- 2, - so"),
        ("<p>Berg-<fw>12</fw><pb/><lb/>werk</p>", "Bergwerk"),
        ("<p>tin<lb/>ore well-known</p>", "tin ore well-known"),
        ("<p>Nord-<lb break='no'/>Amerika</p>", "Nord-Amerika"),
        ("<p>Berg-</p><lb/><p>werk</p>", "Berg-\nwerk"),
        ("<p><choice><orig>vnd</orig><reg>und</reg></choice> <choice><abbr>Dr</abbr><expan>Do<ex>k</ex>tor</expan>"
         "</choice></p>", "und Doktor"),
        ("<p><choice><seg>a</seg><seg>b</seg></choice><choice/><sic>c</sic></p>", "ac"),
        ("<p><app><rdg>a</rdg><lem>b</lem></app><subst><del>c</del><add>d</add></subst><gap/></p>", "bd"),
        ("<p>a<note>N <note>M</note></note> b</p><p>c<note place='inline'> d</note></p>", "a b\nc d\nM\nN"),
        ("<table><row><cell>a</cell><cell>b</cell></row><row><cell>c</cell></row></table>", "a b\nc"),
        ("<p><w>Tin</w><w>rose</w><pc>.</pc> <w>It</w> <w join='right'>don</w><w>t</w></p>", "Tin rose. It dont"),
        ("<sp><speaker>A</speaker><l>x</l></sp><list><item>i</item><item>j</item></list>", "A\nx\ni\nj"),
    ],
)  # fmt: skip
def test_a_text_is_read_as_it_is_meant(inside, expected):
    assert text_of(inside) == expected


@every(
    "change, field, expected",
    [
        ((b' level="a"', b""), "title", "The Tin Daily"),
        ((b' xmlns="', b' xml:id="x1" xmlns="'), "id", "x1"),
        ((b'<date when="1860-05-01">1 May 1860</date>', b""), "date", "2012-03-04"),
        ((b'<date when="1860-05-01">1 May', b"<date>Spring"), "date", "Spring 1860"),
        ((b"<langUsage>", b'<creation><date notBefore="1859"/></creation><langUsage>'), "date", "1859"),
        ((b"<text>", b'<text xml:lang="la">'), "language", "la"),
        ((b"usage=", b"n="), "language", "fr"),
        ((b'<div type="abstract"><p>', b"<div><p>"), "abstract", ABSTRACT),  # the front, without its title page
        ((b'<div type="abstract"><p>About tin.</p></div></front>', b"</front>"), "abstract", None),
        ((b"<langUsage>", b"<abstract><p>Short.</p></abstract><langUsage>"), "abstract", f"Short.\n{ABSTRACT}"),
    ],
)
def test_what_the_header_says_is_looked_for_where_it_may_be(change, field, expected):
    assert change[0] in tei()
    (record,) = parsed("tei", tei().replace(*change))
    assert (record.zones.get(field) if field in ("title", "abstract") else getattr(record, field)) == expected


def test_old_tei_and_prefixes_are_read(folder):
    header = """<teiHeader><fileDesc><titleStmt><title>Tin</title></titleStmt><sourceDesc><bibl><date value="1860"/>
    </bibl></sourceDesc></fileDesc><profileDesc><langUsage><language id="la"/></langUsage><textClass><keywords
    scheme="s"><list><item>ore</item></list></keywords></textClass></profileDesc></teiHeader>"""
    old = tei(header=header, name="TEI.2", attributes=' id="o1"', text="<text><body><p>Ore.</p></body></text>")
    (folder / "a.xml").write_bytes(b'<!DOCTYPE TEI.2 SYSTEM "tei2.dtd">\n' + old)
    (document,) = open_corpus("a.xml").train
    assert (document.id, document.date, document.language, document.topics) == ("o1", "1860", "la", ("ore",))
    assert document.zones["title"] == "Tin"
    prefixed = re.sub(rb"<(/?)(?=[a-zA-Z])", rb"<\1t:", tei()).replace(b"xmlns=", b"xmlns:t=")
    (folder / "a.xml").write_bytes(prefixed)
    assert read("a.xml")[0].zones == {"title": TITLE, "abstract": ABSTRACT, "body": BODY}


@pytest.mark.parametrize("block_bytes", [1, 1 << 20])
def test_a_corpus_is_many_documents_of_which_a_broken_one_takes_no_other_with_it(folder, block_bytes):
    documents = [tei(n) for n in range(1, 6)]
    documents[2] = documents[2].replace(b"</p>", b"", 1)
    (folder / "a.xml").write_bytes(corpus(*documents))
    found = read("a.xml", block_bytes=block_bytes)
    assert ids(found) == [f"urn:tin:{n}" for n in (1, 2, 4, 5)]
    (fault,) = faults(found)
    assert (fault.position, "not well-formed" in fault.reason) == (3, True)
    (folder / "a.xml").write_bytes(corpus(tei(text="<text><body><p>a</p></body></text>", header="")))
    assert read("a.xml")[0].language == "en"  # of the corpus


def test_documents_of_one_id_are_no_versions_of_each_other(folder):
    (folder / "a.xml").write_bytes(corpus(tei(), tei()))
    assert ids(read("a.xml")) == ["urn:tin:1", "urn:tin:1"]


def test_xml_of_another_namespace_is_no_tei_and_a_text_without_words_is_left_out(folder):
    (folder / "a.xml").write_bytes(tei().replace(b"www.tei-c.org", b"example.org"))
    assert "root <TEI>" in faults(read("a.xml"))[0].reason
    (folder / "a.xml").write_bytes(tei(attributes="", text=TEXT.replace("<text>", "<text >")))
    assert ids(read("a.xml")) == ["urn:tin:1"]
    (fault,) = parsed("tei", tei(header="", text="<facsimile/>"))
    assert fault.kind is FaultKind.LEFT_OUT


def test_entities_and_networks_are_off(folder):
    declared = b'<!DOCTYPE TEI [<!ENTITY a "b"><!ENTITY c SYSTEM "file:///etc/passwd">]>'
    for entity in (b"&a;", b"&c;"):
        (folder / "a.xml").write_bytes(declared + tei().replace(b"Tin,", entity))
        assert "not well-formed" in faults(read("a.xml"))[0].reason
    (folder / "a.xml").write_bytes(tei().replace(b"Tin,", b"&eacute;<xi:include xmlns:xi='x' href='/etc/passwd'/>"))
    assert "\n\u00e9\n" in read("a.xml")[0].zones["body"]


def test_a_file_of_one_document_is_read_for_a_server():
    assert text_of_file("a.xml", tei())["body"] == BODY


# --- a second reading -------------------------------------------------------------------------------------------------


class _Second(xml.sax.ContentHandler):
    """Read a body event by event; lines and notes are lists of words and of marks between them."""

    def __init__(self):
        self.lines, self.notes, self.stack, self.unread = [""], [], [], 0

    def startElement(self, name, attributes):
        self.stack.append(name)
        if self.unread or name in ("del", "fw", "sic", "orig"):
            self.unread += 1
        elif name == "note":
            self.notes.append((self.lines, len(self.stack)))
            self.lines = [""]
        elif name == "lb":
            self.lines[-1] += "|" if attributes.get("break") == "no" else "/"
        elif name in ("p", "head", "l"):
            self.lines.append("")

    def endElement(self, name):
        self.stack.pop()
        if self.unread:
            self.unread -= 1
        elif name == "note":
            outer, _ = self.notes.pop()
            self.said = [*getattr(self, "said", []), *self.lines]
            self.lines = outer
        elif name in ("p", "head", "l"):
            self.lines.append("")

    def characters(self, content):
        if not self.unread:
            self.lines[-1] += content

    def text(self):
        lines = []
        for line in [*self.lines, *getattr(self, "said", [])]:
            joined = re.sub(r"(?<=[a-z])-\s*[/|][\s/|]*(?=[a-z])", "", line)
            joined = re.sub(r"(?<=[a-z])-\s*[/|][\s/|]*(?=[A-Z])", "-", joined)
            joined = re.sub(r"[\s/]*\|[\s/|]*", "", joined).replace("/", " ")
            lines.append(" ".join(joined.split()))
        return "\n".join(filter(None, lines))


def _made(chance, depth=0):
    """Parts of a paragraph, at random."""
    pieces = []
    for _ in range(chance.randrange(1, 7)):
        word = "".join(chance.choice("abcxyz") for _ in range(chance.randrange(1, 4)))
        inner = _made(chance, depth + 1) if depth < 3 else "q"
        pieces.append(
            chance.choice(
                (
                    f"{word} ", f"{word} ", f"{word}-<lb/>\n{word}", f"{word}-<lb/>{word.upper()} ", f"{word}<lb/>\n",
                    f"{word}<lb break='no'/>\n {word}", f"<hi>{inner}</hi>", f"<del>{inner}</del>", f"<fw>{word}</fw>",
                    f"<choice><sic>{inner}</sic><corr>{word}</corr></choice>", f"{word}<note>{inner}</note>",
                )
            )
        )  # fmt: skip
    return "".join(pieces)


def test_random_texts_are_read_as_by_a_second_reader():
    chance = random.Random(1860)
    for _ in range(150):
        inside = "".join(f"<p>{_made(chance)}</p>\n" for _ in range(chance.randrange(1, 4)))
        second = _Second()
        xml.sax.parseString(f"<body>{inside}</body>".encode(), second)
        (record,) = parsed("tei", body(inside + "<p>end</p>").replace(NAMESPACE.encode(), b""))
        lines = record.zones["body"].split("\n")
        lines.remove("end")
        assert "\n".join(lines) == second.text(), inside
