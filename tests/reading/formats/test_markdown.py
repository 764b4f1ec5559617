"""Markdown is read without its marks."""

import random

from markdown_it import MarkdownIt

from textcat.reading import text_of_file
from textcat.reading.formats import markdown


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


def test_brackets_in_each_other_are_the_links_that_the_library_finds():
    pieces = ["[", "]", "](", "![", "a", ")", "][", "`", "*", "<b>", "\\", "\n", "[a]", "[a](b)", "![a](b)", '"', " "]
    chance = random.Random(1)
    texts = ["".join(chance.choices(pieces, k=chance.randint(1, 30))) for _ in range(200)]
    texts += [f"[a]: b\n\n{text}" for text in texts[::2]]
    texts += [f"{text}[[" for text in texts[::2]]
    parser = MarkdownIt("commonmark", {"maxNesting": 100}).enable(["table", "strikethrough"])
    read = markdown.commonmark_parser()
    assert [read.render(text) for text in texts] == [parser.render(text) for text in texts]
