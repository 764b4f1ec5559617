"""Layouts of folders: parts by their names, Maildirs, and NLTK's corpora with a file of categories."""

import pytest
from cases import every
from read_sources import faults, ids, read, tarred, zipped

from textcat.base.errors import TextcatError
from textcat.corpus.catalogue import open_corpus
from textcat.reading import InputSettings, find_sources
from textcat.reading.layouts import part_of
from textcat.reading.maildir import placed

MAIL = "From: a@example.org\nSubject: {0}\n\nThe {0} of {1}.\n"


def write(folder, files):
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)


def topics_of(corpus):
    return {document.id: document.topics for document in corpus.train}


@pytest.mark.parametrize(
    "name", ["{n}.M{n}P1.host:2,S", "{n}.27c448.mail.example.org", "{n}.V80I1.host;2,", "m{n}!2,RS"]
)
def test_a_maildir_is_mail_whose_topic_is_the_folder_above(folder, name):
    files = {}
    for n, (topic, state) in enumerate([("ham", "cur"), ("ham", "new"), ("spam", "cur"), ("spam", "new")], 1700):
        files[f"mail/{topic}/{state}/{name.format(n=n)}"] = MAIL.format(topic, n)
        files[f"mail/{topic}/dovecot-uidlist"] = "3 V1 N1\n"
    write(folder, files)
    (folder / "mail" / "ham" / "tmp").mkdir()
    (folder / "mail" / "ham" / "tmp" / "1701.M1P1.host").write_text("Subject: half")
    corpus = open_corpus("mail")
    assert corpus.topics == ("ham", "spam")
    assert {document.zones["title"] for document in corpus.train if document.topics == ("ham",)} == {"ham"}
    assert all("Subject" not in document.zones["body"] for document in corpus.train)
    found = read("mail")
    assert not faults(found)
    assert len(found) == len(corpus.train) == 4
    (source,) = find_sources([next(iter(files))], InputSettings())
    assert source.format == "eml"
    messages = [(path, text.encode()) for path, text in files.items() if "dovecot" not in path]
    for archive, packed in (("a.zip", zipped(*messages)), ("a.tar", tarred(*messages))):
        (folder / archive).write_bytes(packed)
        assert sorted(topics_of(open_corpus(archive)).values()) == sorted(topics_of(corpus).values())


def test_the_folders_of_a_maildir_in_a_maildir_are_read(folder):
    files = {
        "box/cur/1.M1P1.host:2,S": MAIL.format("inbox", 1),
        "box/new/2.M1P1.host": MAIL.format("inbox", 2),
        "box/.Spam/cur/3.M1P1.host:2,S": MAIL.format("spam", 3),
        "box/.Work.Old/new/4.M1P1.host": MAIL.format("work", 4),
        "box/.git/config": "no mail",
        "box/maildirfolder": "",
    }
    write(folder, files)
    for name in (".Spam/new", ".Work.Old/cur"):
        (folder / "box" / name).mkdir()
    expected = ["INBOX", "INBOX", "Spam", "Work.Old"]
    assert sorted(topic for (topic,) in topics_of(open_corpus("box")).values()) == expected
    assert len(ids(read("box"))) == 4
    packed = zipped(*((name, text.encode()) for name, text in files.items()))
    (folder / "a.zip").write_bytes(packed)
    assert [placed(name) for name in files][2:4] == ["box/Spam/3.M1P1.host:2,S", "box/Work.Old/4.M1P1.host"]
    assert len(ids(read("a.zip"))) == 4


def test_an_mbox_beside_a_maildir_is_read_with_it(folder):
    write(
        folder,
        {
            "mail/ham.mbox": "From a@b Thu Jan  1 00:00:00 1970\n" + MAIL.format("ham", 1),
            "mail/spam/cur/1.M1P1.host:2,S": MAIL.format("spam", 1),
            "mail/spam/new/2.M1P1.host": MAIL.format("spam", 2),
        },
    )
    assert sorted(topics_of(open_corpus("mail")).values()) == [("ham",), ("spam",), ("spam",)]
    assert len(ids(read("mail"))) == 3


def test_topics_may_be_called_new_and_cur(folder):
    write(folder, {f"corpus/{topic}/{n}.txt": topic for topic in ("old", "new", "cur") for n in (1, 2)})
    assert open_corpus("corpus").topics == ("cur", "new", "old")


@pytest.mark.parametrize(
    ("train", "test"),
    [
        *[("training", "test"), ("train", "testing"), ("Training", "Test"), ("news-training", "news-testing")],
        *[("train_set", "test_set"), ("TrainData", "TestData"), ("my train", "my test")],
    ],
)
def test_parts_have_many_names(folder, train, test):
    write(folder, {f"c/{part}/{topic}/{n}": topic for part in (train, test) for topic in ("a", "b") for n in (1, 2)})
    row = '{"text": "x", "topics": ["a"]}\n'
    write(folder, {f"d/{train}.jsonl": row, f"d/{test}.jsonl": row})
    assert [len(part) for part in (open_corpus("c").train, open_corpus("c").test)] == [4, 4]
    assert open_corpus("c").topics == ("a", "b")
    assert [len(part) for part in (open_corpus("d").train, open_corpus("d").test)] == [1, 1]


@pytest.mark.parametrize(
    "name", ["validation", "valid", "val", "dev", "Validation", "news-dev", "validation-00000-of-00001"]
)
def test_a_validation_part_is_never_trained_on_without_a_word(folder, caplog, name):
    row = '{"text": "x", "topics": ["a"]}\n'
    shard = "-00000-of-00001" if name.endswith("00001") else ""
    before = "news-" if name.startswith("news-") else ""
    write(
        folder, {f"d/{before}train{shard}.jsonl": row * 2, f"d/{name}.jsonl": row, f"d/{before}test{shard}.jsonl": row}
    )
    corpus = open_corpus("d")
    assert [len(part) for part in (corpus.train, corpus.test, corpus.unused)] == [2, 1, 1]
    assert "1 documents of the validation part are for neither training nor testing" in caplog.text
    write(folder, {f"c/{part}/{topic}/1": topic for part in ("train", name) for topic in ("a", "b")})
    assert [len(part) for part in (open_corpus("c").train, open_corpus("c").unused)] == [2, 2]


def test_a_validation_part_without_a_training_part_is_told(folder, caplog):
    row = '{"text": "x", "topics": ["a"]}\n'
    write(folder, {"d/dev.jsonl": row, "d/more.jsonl": row})
    assert len(open_corpus("d").train) == 2
    assert "only next to a training part" in caplog.text


@every(
    "name, part",
    [("train", "train"), ("latest", ""), ("device", ""), ("strain", ""), ("eval", ""), ("tests", ""), ("contest", "")],
)
def test_other_names_are_no_parts(name, part):
    assert part_of(name) == part


def test_texts_in_parts_without_topics_are_refused_or_told(folder, caplog):
    write(folder, {"a/train/1.txt": "x", "a/test/2.txt": "y"})
    with pytest.raises(TextcatError, match="in no topic's folder"):
        open_corpus("a")
    write(folder, {"a/train/pos/3.txt": "x", "a/train/neg/4.txt": "y"})
    assert open_corpus("a").topics == ("neg", "pos")
    assert "2 files in no topic's folder are left out" in caplog.text


NLTK = {
    "reuters/cats.txt": "test/1 tin\ntest/2 ore tin\ntraining/1 tin\ntraining/2 ore\ntraining/3.b tin ore\n",
    "reuters/test/1": "TIN ROSE",
    "reuters/test/2": "ORE ROSE",
    "reuters/training/1": "TIN FELL",
    "reuters/training/2": "ORE FELL",
    "reuters/training/3.b": "TIN AND ORE",
    "reuters/README": "about",
    "reuters/stopwords": "a\nthe\n",
}


def test_a_corpus_of_nltk_has_the_topics_that_its_categories_list(folder):
    write(folder, NLTK)
    (folder / "reuters.zip").write_bytes(zipped(*((name, text.encode()) for name, text in NLTK.items())))
    for name in ("reuters", "reuters.zip"):
        corpus = open_corpus(name)
        assert [document.topics for document in corpus.train] == [("tin",), ("ore",), ("tin", "ore")]
        assert [document.topics for document in corpus.test] == [("tin",), ("ore", "tin")]
    write(folder, {"reuters/training/4": "LEAD"})
    with pytest.raises(TextcatError, match=r"training/4 has no .* line in cats\.txt"):
        open_corpus("reuters")
