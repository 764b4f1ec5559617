"""Pages: what they show, without their navigation, in whatever encoding they are."""

import pytest
from cases import every
from formats_read import FROM, parsed

from textcat.reading import text_of_file

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


@every(
    "head, encoding",
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


@pytest.mark.parametrize(
    "page",
    [
        b"<div>" * 150_000 + b"x",
        b"<p " + b" ".join(b"a%d=1" % i for i in range(50_000)) + b">x",
        b"<div><object></div></object>" * 50_000 + b"x",
        b"<b><i><p>" * 50_000 + b"x",
        b"<!--" * 250_000 + b"-->x",
        b"<a<" * 250_000 + b">x",
    ],
    ids=("deep", "attributes", "ill nested", "formatted", "comments", "tags in tags"),
)
def test_hostile_pages_take_time_in_proportion_to_their_length(page):
    text_of_file("a.html", page)  # a tree would take minutes


@every(
    "html, text",
    [
        ("Tin<br/>rose", "Tin rose"),
        ("<!DOCTYPE html><?xml?><A HREF='a>b'/ title=\"'\">Tin</A >", "Tin"),
        ("<a title='>Tin <b>rose</b>", "Tin rose"),
        ('<a title="1 > 0">Tin</a>', "Tin"),
        ("Tin < 5 &amp; gold &gt; 7 &eacute;", "Tin < 5 & gold > 7 é"),
        ("<SCRIPT>if (a < b) '<p>'</SCRIPT >Tin<style>p", "Tin"),
        ("Tin<!-- <p> > -- -->rose<!-- and more", "Tin rose"),
        ("Tin <b rose", "Tin <b rose"),
        ("Tin <3 <", "Tin <3 <"),
    ],
)
def test_of_html_what_is_shown_is_read(html, text):
    record = parsed("mbox", FROM + f"Content-Type: text/html; charset=utf-8\n\n{html}".encode())[0]
    assert " ".join(record.zones["body"].split()) == text


@every("name", ['property="article:published_time"', 'name="Date"', 'itemprop="datePublished"'])
def test_a_page_has_the_date_of_its_publication(name, place):
    (record,) = place("html", f'<html><head><meta {name} content="2024-05-01T10:15:00+0200"><body>Tin'.encode())
    assert record.date == "2024-05-01T10:15:00+02:00"
    assert place("html", b"<p>Tin")[0].date == ""
