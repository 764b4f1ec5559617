"""Mail: subjects, texts, dates and topics; what an mbox holds."""

import mailbox
from email.message import EmailMessage

import pytest
from cases import every
from formats_read import FROM, outcome, parsed

from textcat.corpus.catalogue import open_corpus
from textcat.reading import (
    InputSettings,
    text_of_file,
)


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


def test_mail_has_its_date_and_the_topics_of_a_header(tmp_path):
    (tmp_path / "a.eml").write_text("Subject: Tin\nDate: Thu, 1 Jan 1970 00:00:00 +0000\nX-Labels: tin, ore\n\nRose.\n")
    settings = InputSettings(format="eml", topics_field="X-Labels", topics_separator=",")
    (document,) = open_corpus(tmp_path / "a.eml", settings=settings).train
    assert (document.topics, document.date) == (("tin", "ore"), "1970-01-01T00:00:00+00:00")


# Mail


@pytest.mark.parametrize("block", [1, 200, 1 << 20])
def test_messages_are_those_that_a_library_has_put_into_an_mbox(tmp_path, place, block):
    box = mailbox.mbox(tmp_path / "box")
    for i in range(30):
        message = EmailMessage()
        message["Subject"], message["Message-ID"] = f"Tün {i}", f"<{i}@b.org>"
        message.set_content(f"Ürose by {i}.\n\nFrom here on, at 10:30, it fell.\n" + "more\n" * i, cte="8bit")
        if i % 3 == 0:
            message.add_alternative("<p>HTML</p>", subtype="html")
        if i % 5 == 0:
            message.add_attachment("attached", filename="a.txt")
        box.add(message)
    box.close()
    found = place("mbox", (tmp_path / "box").read_bytes(), block_bytes=block)
    assert [(record.id, record.position) for record in found] == [(f"<{i}@b.org>", i + 1) for i in range(30)]
    assert [record.zones["title"] for record in found] == [f"Tün {i}" for i in range(30)]
    for i, record in enumerate(found):
        assert record.zones["body"].splitlines() == [
            f"Ürose by {i}.",
            "",
            "From here on, at 10:30, it fell.",
            *["more"] * i,
        ]


@every(
    "mail, zones",
    [
        (b"\n", {"body": ""}),
        (b"Subject: =?latin-1?q?Caf=E9?=\n\nx", {"title": "Café", "body": "x"}),
        (b"Subject: =?none?q?Caf=E9?=\n\nx", {"title": "Caf\xe9", "body": "x"}),
        (b"Content-Type: text/html\n\n<style>p</style><p>Tin</p><!-- x -->rose", {"body": "Tin rose"}),
        (b"Content-Type: text/plain; charset=none\n\nx", {"body": "x"}),
        (b"Content-Type: text/plain; charset=latin-1\n\nCaf\xe9", {"body": "Café"}),
        (b"Content-Type: application/pdf\n\nx", {"body": ""}),
        (b"\n>From x\n>>From y", {"body": "From x\n>From y"}),
    ],
)
def test_a_message_gives_what_a_reader_sees(mail, zones):
    assert parsed("mbox", FROM + mail)[0].zones == zones


@every(
    "mail, reason",
    [
        (
            FROM + b"Subject: " + b"Tin " * 20_000 + b"\n\nx",
            "Message 1 has a Subject of more than 65,536 bytes: shorten it.",
        ),
        (FROM + b"\nTin\0", f"Message 1 has a NUL byte (byte {len(FROM) + 4}): leave it out."),
        (b"Subject: x\n\nx", "Message 1 does not start with a line such as"),
    ],
)
def test_a_message_that_cannot_be_read_is_rejected(mail, reason):
    fault, record = parsed("mbox", mail + b"\n\n" + FROM + b"\nTin")
    assert fault.reason.startswith(reason)
    assert record.zones == {"body": "Tin"}


def test_a_message_that_is_too_long_is_passed_over(place):
    data = FROM + b"\nTin\n\n" + FROM + b"\n" + b"x\n\nFrom here\n" * 1000 + b"\n" + FROM + b"\nTin\n"
    found = place("mbox", data, max_bytes=5000, block_bytes=100)
    assert outcome(found) == [1, -2, 3]
    assert found[1].length == len(data) - 2 * len(FROM) - 6 - 5


@pytest.mark.parametrize(("n", "is_read"), [(30, True), (33, False)])
def test_parts_in_too_many_others_are_refused(n, is_read):
    # The parser compares each line with the boundaries of all parts around it.
    opened = "".join(f"Content-Type: multipart/mixed; boundary=b{k}\n\n--b{k}\n" for k in range(n))
    (found,) = parsed("mbox", FROM + f"Subject: Tin\n{opened}\nOre".encode())
    if is_read:
        assert found.zones == {"title": "Tin", "body": "Ore"}
    else:
        assert "in more than 32 others: leave it out" in found.reason
