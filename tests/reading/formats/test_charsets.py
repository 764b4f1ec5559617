"""Charsets that mail and pages declare: each means what browsers take it for."""

import pytest
from cases import every
from formats_read import FROM, parsed

from textcat.corpus.catalogue import open_corpus
from textcat.reading import InputSettings, text_of_file
from textcat.reading.formats.charsets import decoded_as, encoding_meant

# What the label is declared for, the encoding of the bytes, and a text that only this encoding has.
DECLARED = [
    ("gb2312", "gb18030", "朱镕基 €"),
    ("GBK", "gb18030", "镕"),
    ("x-gbk", "gbk", "镕"),
    ("big5", "big5hkscs", "嘅"),
    ("iso-8859-8-i", "iso8859-8", "שלום"),
    ("iso-8859-8-e", "iso8859-8", "שלום"),
    ("windows-31j", "cp932", "①髙"),
    ("x-sjis", "cp932", "①"),
    ("shift_jis", "cp932", "①"),
    ("ks_c_5601-1987", "cp949", "똠방"),
    ("windows-949", "cp949", "똠"),
    ("euc-kr", "cp949", "똠"),
    ("windows-874", "cp874", "ไทย…"),
    ("tis-620", "cp874", "ไทย…"),
    ("iso-8859-1", "cp1252", "“€”"),
    ("iso-8859-9", "cp1254", "ğ€"),
    ("x-cp1251", "cp1251", "Привет"),
    ("x-mac-cyrillic", "mac-cyrillic", "Привет"),
    ("koi8-ru", "koi8-u", "Привіт"),
    ("unicode-1-1-utf-8", "utf-8", "Käse"),
    ("iso-2022-jp", "iso2022_jp", "日本"),
    ("unknown-8bit", "cp1252", "Käse €"),
    ("x-unknown", "utf-8", "Käse"),
    ("undefined", "cp1252", "Käse"),
    ("idna", "cp1252", "Käse"),
    ("charset" * 99, "cp1252", "Käse"),
    ("us-ascii", "cp1252", "Käse"),
    ("us-ascii", "utf-8", "Käse"),
]


@every("declared, actual, text", DECLARED)
def test_mail_is_read_in_the_encoding_that_its_charset_means(declared, actual, text):
    body = f"Content-Type: text/plain; charset={declared}\n\n".encode() + text.encode(actual)
    mail = b"Subject: Tin\n" + body
    assert text_of_file("a.eml", mail) == {"title": "Tin", "body": text}
    assert parsed("mbox", FROM + mail)[0].zones["body"] == text
    parts = b"--b\n%s\n--b\nContent-Type: text/plain\n\n%s\n--b--\n" % (body, "Käse".encode())
    mixed = b"Content-Type: multipart/mixed; boundary=b\n\n" + parts
    assert text_of_file("a.eml", mixed)["body"] == f"{text}\nKäse", "each part by itself"


@every("declared, actual, text", [one for one in DECLARED if len(one[0]) < 40])
def test_a_subject_is_read_in_the_encoding_that_its_charset_means(declared, actual, text):
    word = "".join(f"={byte:02X}" for byte in text.encode(actual))
    assert text_of_file("a.eml", f"Subject: Re: =?{declared}?Q?{word}?= x\n\n".encode())["title"] == f"Re: {text} x"


@every(
    "subject, title",
    [
        ("=?gb2312?B?1uzp?= =?gb2312?B?Rrv5?=", "朱镕基"),  # half a character in each
        ("=?utf-8*en?q?Caf=C3=A9?=", "Café"),
        ("=?utf-8?q?Are_you_there??=", "Are you there?"),
        (r"=?utf-8?q?a?= C:\users\n", r"a C:\users\n"),
        ("Käse =?utf-8?q?Caf=C3=A9?=", "Käse Café"),
        ("=?utf-8?b?a?=", "=?utf-8?b?a?="),
        ("=?utf-8?q?Caf=E9?=", "Caf\ufffd"),
        ("=?none?q?Caf=E9?=", "Café"),
    ],
)
def test_encoded_words_are_decoded_whatever_stands_around_them(subject, title):
    assert text_of_file("a.eml", f"Subject: {subject}\n\nx".encode())["title"] == title


def test_a_subject_that_is_not_encoded_is_in_utf8_or_else_in_the_charset_of_a_part():
    head = "Subject: Привет\nContent-Type: multipart/mixed; boundary=b\n\n"
    part = "--b\nContent-Type: text/plain; charset=koi8-r\n\nДа"
    assert text_of_file("a.eml", (head + part).encode("koi8-r")) == {"title": "Привет", "body": "Да"}
    assert text_of_file("a.eml", "Subject: Käse\n\nTin".encode("cp1252"))["title"] == "Käse"


def test_html_in_mail_without_a_charset_is_read_as_it_declares_itself():
    page = '<meta charset="iso-8859-8-i"><p>שלום'.encode("iso8859-8")
    assert text_of_file("a.eml", b"Subject: Tin\nContent-Type: text/html\n\n" + page)["body"] == "שלום"


def test_bytes_that_are_not_in_the_declared_charset_cost_themselves_only():
    mail = b"Subject: Tin\nContent-Type: text/plain; charset=utf-8\n\nCaf\xe9 au lait"
    assert text_of_file("a.eml", mail)["body"] == "Caf\ufffd au lait"


def test_no_letter_of_a_corpus_stops_the_training_for_its_charset(tmp_path):
    for number, (declared, actual, text) in enumerate(DECLARED):
        folder = tmp_path / "mail" / ("odd" if number % 2 else "even")
        folder.mkdir(parents=True, exist_ok=True)
        head = f"Subject: {number}\nContent-Type: text/plain; charset={declared}\n\n".encode()
        (folder / f"{number}.eml").write_bytes(head + text.encode(actual))
    corpus = open_corpus(tmp_path / "mail")
    assert {document.zones["body"] for document in corpus.train} == {text for *_, text in DECLARED}


def test_an_encoding_that_was_asked_for_is_not_guessed_otherwise(tmp_path):
    (one,) = parsed("mbox", FROM + b"\nCaf\xe9", encoding="utf-8")
    assert "is not utf-8 (byte 3): name its encoding with --encoding" in one.reason
    assert parsed("mbox", FROM + b"\n\xcf", encoding="koi8-r")[0].zones == {"body": "о"}


@every("declared, actual, text", [one for one in DECLARED[:20] if one[1] != "iso2022_jp"])
def test_a_page_means_the_same_by_a_charset(declared, actual, text):
    page = f'<meta charset="{declared}"><p>{text}'.encode(actual)
    assert text_of_file("a.html", page)["body"] == text


@every("declared, actual, text", [one for one in DECLARED[:14] if one[1] != "iso2022_jp"])
def test_a_feed_means_the_same_by_an_encoding(declared, actual, text):
    feed = f'<?xml version="1.0" encoding="{declared}"?><rss version="2.0"><channel><item><title>Tin</title>'
    feed += f"<description>{text}</description></item></channel></rss>"
    assert text_of_file("a.rss", feed.encode(actual))["body"] == text


def test_every_label_of_the_standard_is_known():
    labels = pytest.importorskip("webencodings.labels", reason="step: webencodings is not installed").LABELS
    without = {"x-user-defined", "replacement", "iso-2022-cn", "iso-2022-cn-ext"}
    assert {label for label in labels if not encoding_meant(label)} == without
    assert encoding_meant(InputSettings().encoding) == ""
    assert decoded_as(b"\xe9", "") == "é"
