"""What topics are about, in words: files of descriptions, and a corpus that has them."""

import io
import tarfile

import pytest
from cases import every

from textcat.base.errors import TextcatError
from textcat.corpus.catalogue import open_corpus
from textcat.corpus.descriptions import has_names, read_descriptions
from textcat.corpus.documents import Corpus, Document

REUTERS = """Some notes (SIC)

****Subject Codes (135)

Money/Foreign Exchange (MONEY-FX)

**Commodity Codes (78)

COTTON \r
L-CATTLE

________________________________________________________________
@heading[Organization Codes (56)]
African Development Bank (ADB-AFRICA)@*
"""


def read(text, name):
    return read_descriptions(name, text.encode())


@every(
    "name, text",
    [
        ("topics.json", '{"wheat": "Wheat, and \\"flour\\"", "nat-gas": ""}'),
        ("topics.toml", 'wheat = "Wheat, and \\"flour\\""\nnat-gas = ""\n'),
        ("topics.tsv", 'name\ttext\nwheat\tWheat, and "flour"\n\nnat-gas\t\n'),
        ("topics.csv", '\ufeffTopic,Description\r\nwheat,"Wheat, and ""flour"""\r\nnat-gas,\r\n'),
        ("topics.csv", 'wheat,"Wheat, and ""flour"""\nnat-gas,\n'),
    ],
)
def test_every_format_says_the_same(name, text):
    assert read(text, name) == {"wheat": 'Wheat, and "flour"', "nat-gas": ""}


def test_any_other_list_has_a_topic_per_line():
    assert read("wheat\n\n nat-gas \n", "topics.txt") == {"wheat": "", "nat-gas": ""}


@pytest.mark.parametrize(
    ("name", "text", "is_one"),
    [
        ("names.txt", "wheat\n", True),
        ("names.toml", 'wheat = "flour"', True),
        ("names.toml", "wheat = 1", True),  # a file of names with a mistake, which an error then tells
        ("names.toml", "", True),
        ("card.toml", 'reader = "jsonl"', False),
        ("card.toml", 'reader = "jsonl"\n[files]\na = 1', False),
        ("names.json", '{"wheat": ""}', True),
        ("corpus.json", '[{"text": "flour", "topics": ["wheat"]}]', False),
        ("names.csv", "Topic,Description\nwheat,flour", True),
        ("corpus.csv", "text,topics\nflour,wheat", False),
        ("corpus.tsv", "flour\twheat", False),
        ("corpus.jsonl", "{}", False),
        ("latin.txt", b"caf\xe9", True),
    ],
)
def test_files_of_names_are_told_from_corpora(tmp_path, name, text, is_one):
    (tmp_path / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    assert has_names(tmp_path / name) == is_one


@every(
    "name, text, sentence",
    [
        ("names.toml", 'corn = "maize"\nwheat = 1', "must have a text for each topic, and 'wheat' has 1: write such"),
        ("names.json", '{"wheat": ["flour"]}', r"must have a text for each topic, and 'wheat' has \['flour'\]"),
        ("names.json", "[]", "must have a text for each topic: write such"),
        ("names.toml", "", "describes no topic"),
    ],
)
def test_a_file_of_names_without_texts_is_told_as_such(name, text, sentence):
    with pytest.raises(TextcatError, match=f"^{name} {sentence}"):
        read_descriptions(name, text.encode())


def test_reuters_list_is_read_up_to_its_topics_end():
    assert read(REUTERS, "cat.txt") == {"money-fx": "Money/Foreign Exchange", "cotton": "", "l-cattle": ""}


@every(
    "name, text, message",
    [
        ("topics.yaml", "a: b", r"must be \.toml, \.json, \.tsv, \.csv or \.txt"),
        ("topics.json", "{", "is not valid JSON"),
        ("topics.json", "[" * 100_000, "is not valid JSON"),
        ("topics.json", '["wheat"]', "must have a text for each topic"),
        ("topics.json", '{"wheat": 1}', "must have a text for each topic"),
        ("topics.toml", "wheat = 1", "must have a text for each topic, .*such as wheat ="),
        ("topics.toml", "wheat =", "topics.toml is not valid TOML"),
        ("topics.json", '{"wheat": "a", "wheat": "b"}', "describes 'wheat' twice"),
        ("topics.tsv", "wheat\ta\nwheat\tb", "describes 'wheat' twice"),
        ("topics.tsv", "name\ttext\nwheat", "row 2 is .*; it must be a name and a text"),
        ("topics.csv", "wheat,a,b", "row 1 is .*; it must be a name and a text"),
        ("topics.tsv", "", "describes no topic"),
        ("notes.txt", " \n", "describes no topic"),
    ],
)
def test_a_file_that_is_none_is_told(name, text, message):
    with pytest.raises(TextcatError, match=message):
        read(text, name)


# ---- corpora ----


def document(topics, split="train"):
    return Document("1", {"title": "", "body": "text"}, tuple(topics), split=split)


def test_a_corpus_keeps_the_descriptions_of_its_topics():
    documents = [document("ab"), document("b", "test")]
    described = {"b": "Bees", "z": "Zebras"}
    assert Corpus.from_documents("c", documents, "both", described).descriptions == {"b": "Bees"}
    assert Corpus.from_documents("c", documents, "train", described).topics == ("a", "b")


def test_topics_of_the_rule_described_need_no_document():
    corpus = Corpus.from_documents("c", [document("a")], "described", {"z": "Zebras"})
    assert corpus.topics == ("a", "z")
    assert corpus.statistics().train_positives.tolist() == [1, 0]


def test_a_topic_is_described_by_its_name_as_words_and_its_description():
    corpus = Corpus.from_documents("c", [document(["nat-gas", "rec.sport_x"])], "train", {"nat-gas": "Natural Gas"})
    gas, sport = corpus.described()
    assert gas.zones == {"title": "nat gas Natural Gas", "body": "nat gas Natural Gas"}
    assert sport.zones["title"] == "rec sport x"
    assert corpus.labels([gas, sport]).toarray().tolist() == [[1, 0], [0, 1]]


@pytest.fixture
def mail(tmp_path):
    for topic in ("invoices", "complaints"):
        folder = tmp_path / "mail" / topic
        folder.mkdir(parents=True)
        (folder / "1.txt").write_text("text")
    return tmp_path / "mail"


def test_a_file_of_descriptions_is_found_beside_the_topics_folders(mail):
    assert open_corpus(mail).descriptions == {}
    (mail / "topics.tsv").write_text("invoices\tBills to be paid\n")
    assert open_corpus(mail).descriptions == {"invoices": "Bills to be paid"}
    assert len(open_corpus(mail).train) == 2


def test_it_is_found_in_an_archive_with_a_folder_around_everything(mail, tmp_path):
    (mail / "topics.tsv").write_text("invoices\tBills to be paid\n")
    with tarfile.open(tmp_path / "mail.tar", "w") as archive:
        archive.add(mail, "mail")
    corpus = open_corpus(tmp_path / "mail.tar")
    assert corpus.topics == ("complaints", "invoices")
    assert corpus.descriptions == {"invoices": "Bills to be paid"}


def test_a_document_of_that_name_in_a_topics_folder_stays_one(mail):
    (mail / "invoices" / "topics.json").write_text("[]")
    assert len(open_corpus(mail).train) == 3


def test_it_is_found_beside_json_lines(tmp_path):
    (tmp_path / "train.jsonl").write_text('{"text": "Pay", "topics": "invoices"}')
    (tmp_path / "topics.json").write_text('{"invoices": "Bills"}')
    assert open_corpus(tmp_path).descriptions == {"invoices": "Bills"}


def test_a_card_names_it_in_the_source_or_beside_the_card(mail, tmp_path):
    card = tmp_path / "mail.toml"
    card.write_text('reader = "folders"\nfiles = ["mail"]\ntopics = "described"\ndescriptions = "about.csv"\n')
    with pytest.raises(TextcatError, match=r"Corpus mail has no file about\.csv, "):
        open_corpus(card)
    (tmp_path / "about.csv").write_text("praise,Letters that praise\n")
    assert open_corpus(card).topics == ("complaints", "invoices", "praise")
    (mail / "about.csv").write_text("invoices,Bills\n")
    assert open_corpus(card).descriptions == {"invoices": "Bills"}


def test_a_sum_of_the_card_holds_for_it_too(tmp_path):
    with tarfile.open(tmp_path / "r.tar", "w") as archive:
        info = tarfile.TarInfo("about.csv")
        info.size = 3
        archive.addfile(info, io.BytesIO(b"a,b"))
    card = tmp_path / "r.toml"
    lines = ('reader = "jsonl"', 'files = ["r.tar"]', 'descriptions = "about.csv"', "[sha256]", '"about.csv" = "00"')
    card.write_text("\n".join(lines))
    with pytest.raises(TextcatError, match=r"about\.csv has not the checksum the card of r gives"):
        open_corpus(card)


def test_reuters_describes_all_of_its_topics(reuters):
    assert len(reuters.descriptions) == len(reuters.topics) == 90
    assert reuters.descriptions["nzdlr"] == "New Zealand Dollar"
    assert reuters.descriptions["wheat"] == ""
