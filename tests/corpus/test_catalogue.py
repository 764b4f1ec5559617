"""Cards, the search for corpora, and downloads from a server of the test's own."""

import gzip
import hashlib
import io
import json
import os
import re
import shutil
import tarfile
import threading
import time
from collections import Counter
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace

import pytest
from cards_of_tin import SGML, STORY, SUM
from cases import every
from rich.console import Console

from textcat.base.errors import TextcatError
from textcat.base.progress import download_bar
from textcat.corpus import fetch
from textcat.corpus.cards import cards, read_card, tree_digest
from textcat.corpus.catalogue import open_corpus, reopen_corpus
from textcat.corpus.fetch import fetch_corpus, locate_corpus
from textcat.reading import DamagedError, InputSettings


def tar_bytes(**files):
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        for name, data in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return buffer.getvalue()


ARCHIVE = tar_bytes(**{"tin.sgm": SGML, "README": b"not read"})


@pytest.fixture
def server():
    """A server on this machine: its `files` by path, its `hits` in order, `cut` bytes missing from each answer."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            here.hits.append(self.path)
            if self.path not in here.files:
                self.send_error(404)
                return
            data = here.files[self.path]
            self.send_response(200)
            if here.tells_length:
                self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data[: len(data) - here.cut])

        def log_message(self, *_):
            pass

    here = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    here.files, here.hits, here.cut, here.tells_length = {"/tin.tar.gz": ARCHIVE}, [], 0, True
    here.url = f"http://127.0.0.1:{here.server_port}"
    thread = threading.Thread(target=here.serve_forever, daemon=True)
    thread.start()
    yield here
    here.shutdown()
    here.server_close()


DEAD = "http://127.0.0.1:9/tin.tar.gz"  # the discard port: nothing listens


# ---- finding and opening ----


def test_the_search_order_is_argument_environment_card_cache(tmp_path, cache, write_card, monkeypatch):
    it = read_card(write_card())
    assert locate_corpus(it) is None
    monkeypatch.setenv("TEXTCAT_CORPORA", str(tmp_path / "environment"))
    for folder in (cache, it.folder, tmp_path / "environment", tmp_path / "argument"):
        folder.mkdir(exist_ok=True)
        (folder / "tin.tar.gz").write_bytes(ARCHIVE)
        assert locate_corpus(it, tmp_path / "argument") == folder / "tin.tar.gz"


def test_a_corpus_opens_by_card_path_and_data_path(tmp_path, write_card):
    path = write_card()
    (path.parent / "tin.tar.gz").write_bytes(ARCHIVE)
    (tmp_path / "unpacked").mkdir()
    (tmp_path / "unpacked" / "tin.sgm.gz").write_bytes(gzip.compress(SGML))
    for source in (path, str(path), read_card(path), path.parent / "tin.tar.gz", tmp_path / "unpacked"):
        corpus = open_corpus(source)
        assert ([d.id for d in corpus.train], [d.id for d in corpus.test], corpus.topics) == (["1"], ["2"], ("tin",))


def test_a_folder_per_topic_opens_without_a_card(tmp_path):
    for topic in ("gold", "tin"):
        (tmp_path / "mine" / topic).mkdir(parents=True)
        (tmp_path / "mine" / topic / "1.txt").write_text("text")
    corpus = open_corpus(tmp_path / "mine")
    assert (corpus.name, corpus.topics, len(corpus.train)) == ("mine", ("gold", "tin"), 2)


def test_documents_come_in_the_order_of_their_files_however_packed(tmp_path):
    stories = {f"{i}.sgm": STORY.format(split="TRAIN", id=i).encode() for i in (3, 1, 2)}
    (tmp_path / "a.tar.gz").write_bytes(tar_bytes(**stories))
    assert [d.id for d in open_corpus(tmp_path / "a.tar.gz").train] == ["1", "2", "3"]


def test_data_of_no_known_kind_is_told(tmp_path):
    (tmp_path / "note.txt").write_text("text")
    with pytest.raises(TextcatError, match=r"no file of a known format .* --format"):
        open_corpus(tmp_path)


@pytest.mark.parametrize("name", ["mine", "mine.tar.gz", "mine.zip", "mine.jsonl"])
def test_what_draws_progress_is_told_how_many_bytes_of_the_files_have_been_read(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    for i in range(300):
        path = tmp_path / "mine" / "ab"[i % 2] / f"{i}.txt"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("wheat and corn", encoding="utf-8")
    shutil.make_archive("mine", "gztar", base_dir="mine")
    shutil.make_archive("mine", "zip", base_dir="mine")
    lines = [json.dumps({"id": str(i), "text": "wheat " * 5000, "topics": ["a"]}) for i in range(100)]
    Path("mine.jsonl").write_text("\n".join(lines), encoding="utf-8")
    size = 300 * 14 if name == "mine" else Path(name).stat().st_size
    shown = []
    open_corpus(name, progress=SimpleNamespace(show=lambda completed, total: shown.append((completed, total))))
    assert shown == sorted(set(shown))
    assert shown[-1] == (size, size)
    assert {total for _, total in shown} == {size}
    assert len(shown) in range(1 if name == "mine.tar.gz" else 3, 102)


def test_a_corpus_found_nowhere_is_told_with_the_folders_and_the_remedy(tmp_path, write_card):
    it = write_card(urls=[DEAD])
    with pytest.raises(TextcatError, match=r"tin is in none of .*arg.*cache.* Put tin.tar.gz .* TEXTCAT_CORPORA"):
        open_corpus(it, tmp_path / "arg", download=False)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (tar_bytes(**{"tin.sgm": SGML.replace(b"UP", b"UQ")}), "tin.sgm has not the checksum the card of tin gives"),
        (tar_bytes(README=b"x"), "tin.sgm not in it"),
        (ARCHIVE[:-40], "is damaged or incomplete"),
        (b"", "is damaged or incomplete"),
    ],
)
def test_a_wrong_archive_is_told_and_its_remedy(write_card, data, message):
    path = write_card()
    (path.parent / "tin.tar.gz").write_bytes(data)
    with pytest.raises(DamagedError, match=message) as caught:
        open_corpus(path)
    assert "fetch or copy it again" in str(caught.value)
    assert "delete" not in str(caught.value)


def test_a_tree_digest_is_compared(tmp_path, write_card):
    sums = {"tin/1": hashlib.sha256(b"text").hexdigest(), "gold/1": hashlib.sha256(b"text").hexdigest()}
    text = f'reader = "folders"\nfiles = ["mine"]\ntree = "{tree_digest(sums)}"\n'
    path = write_card(text)
    for name in sums:
        (path.parent / "mine" / name).parent.mkdir(parents=True)
        (path.parent / "mine" / name).write_text("text")
    assert len(open_corpus(path).train) == 2
    (path.parent / "mine" / "tin" / "1").write_text("changed")
    with pytest.raises(DamagedError, match="its files have not the checksum"):
        open_corpus(path)


def test_an_archive_without_any_document_is_told(write_card):
    path = write_card('reader = "reuters"\nfiles = ["a.tar"]')
    with tarfile.open(path.parent / "a.tar", "w"):
        pass
    with pytest.raises(TextcatError, match="holds no file the reader 'reuters' reads"):
        open_corpus(path)


def test_reuters_opens_and_is_verified(reuters_archive, reuters):
    corpus = reuters
    assert (len(corpus.train), len(corpus.test), len(corpus.unused), len(corpus.topics)) == (9603, 3299, 8676, 90)
    assert corpus.statistics().without_topic == {"train": 1828, "test": 280, "unused": 8103}
    assert [d.id for d in corpus.train] == sorted((d.id for d in corpus.train), key=int)
    assert open_corpus("reuters21578", reuters_archive.parent, unused=False) == replace(corpus, unused=[])


@pytest.mark.where_long("18,846 files in a tar take seconds")
def test_twenty_newsgroups_opens_and_is_verified(newsgroups_archive):
    corpus = open_corpus("20newsgroups", newsgroups_archive.parent)
    counts = cards()["20newsgroups"].counts
    found = {"train": len(corpus.train), "test": len(corpus.test), "topics": len(corpus.topics)}
    assert found == {"train": 11314, "test": 7532, "topics": 20}, "as published"
    assert counts == {**found, "documents": len({document.id for document in (*corpus.train, *corpus.test)})}
    assert {len(document.topics) for document in (*corpus.train, *corpus.test)} == {1}


# ---- downloads ----


class Progress:
    total = done = closed = 0

    def update(self, n):
        self.done += n

    def reset(self):
        self.done = 0

    def close(self):
        self.closed += 1


def test_a_download_is_verified_kept_and_not_repeated(cache, server, write_card, caplog):
    caplog.set_level("INFO")
    it = replace(read_card(write_card(urls=[f"{server.url}/tin.tar.gz"])), licence="For tin men.")
    progress = Progress()
    path = fetch_corpus(it, progress)
    assert path == cache / "tin.tar.gz"
    assert path.read_bytes() == ARCHIVE
    assert (progress.total, progress.done, progress.closed) == (len(ARCHIVE), len(ARCHIVE), 1)
    assert "For tin men." in caplog.text
    assert fetch_corpus(it) == path
    assert server.hits == ["/tin.tar.gz"]
    assert os.listdir(cache) == ["tin.tar.gz"]


def test_opening_fetches_what_is_found_nowhere(server, write_card):
    assert [d.id for d in open_corpus(write_card(urls=[f"{server.url}/tin.tar.gz"])).train] == ["1"]


def test_a_single_file_can_be_downloaded(server, write_card):
    server.files["/tin.sgm"] = SGML
    text = (
        f'reader = "reuters"\nfiles = ["tin.sgm"]\nurls = ["{server.url}/tin.sgm"]\nsha256 = {{ "tin.sgm" = "{SUM}" }}'
    )
    assert fetch_corpus(read_card(write_card(text))).read_bytes() == SGML


def test_a_damaged_file_in_the_cache_is_fetched_again(cache, server, write_card):
    cache.mkdir()
    (cache / "tin.tar.gz").write_bytes(ARCHIVE[:50])
    it = read_card(write_card(urls=[f"{server.url}/tin.tar.gz"]))
    assert fetch_corpus(it).read_bytes() == ARCHIVE


def test_a_dead_mirror_and_a_missing_file_are_passed_over(server, write_card):
    it = read_card(write_card(urls=[DEAD, f"{server.url}/gone", f"{server.url}/tin.tar.gz"]))
    assert fetch_corpus(it).read_bytes() == ARCHIVE
    assert server.hits == ["/gone", "/tin.tar.gz"]


@pytest.mark.parametrize("tells_length", [True, False])
def test_a_truncated_download_does_not_stay(cache, server, write_card, tells_length):
    server.cut, server.tells_length = 40, tells_length
    it = read_card(write_card(urls=[f"{server.url}/tin.tar.gz"]))
    with pytest.raises(TextcatError, match=r"could not be downloaded .*(broke off|cut off).* TEXTCAT_CORPORA"):
        fetch_corpus(it)
    assert os.listdir(cache) == []
    server.cut = 0
    assert fetch_corpus(it).exists()


def test_a_download_with_a_wrong_checksum_does_not_stay(cache, server, write_card):
    server.files["/tin.tar.gz"] = tar_bytes(**{"tin.sgm": SGML + b"\n"})
    with pytest.raises(TextcatError, match="cut off or not the one the card describes"):
        fetch_corpus(read_card(write_card(urls=[f"{server.url}/tin.tar.gz"])))
    assert os.listdir(cache) == []


def test_a_failed_download_leaves_the_old_file_alone(cache, write_card):
    cache.mkdir()
    (cache / "tin.tar.gz").write_bytes(b"old")
    with pytest.raises(TextcatError):
        fetch_corpus(read_card(write_card(urls=[DEAD])))
    assert (cache / "tin.tar.gz").read_bytes() == b"old"


def test_being_offline_is_told_with_the_remedy(write_card):
    with pytest.raises(
        TextcatError,
        match=r"^Corpus tin could not be downloaded \(http://127.0.0.1:9/tin.tar.gz: no connection\)\. "
        r"Put tin.tar.gz into a folder and name the folder in TEXTCAT_CORPORA\.$",
    ):
        open_corpus(write_card(urls=[DEAD]))


def test_a_card_without_urls_or_with_a_strange_one_is_told(write_card):
    with pytest.raises(TextcatError, match="names no URL"):
        fetch_corpus(read_card(write_card()))
    with pytest.raises(TextcatError, match="gopher://x/tin: "):
        fetch_corpus(read_card(write_card(urls=["gopher://x/tin"])))


def test_without_a_sum_nothing_is_downloaded(server, write_card):
    text = f'reader = "reuters"\nfiles = ["tin.tar.gz"]\nurls = ["{server.url}/tin.tar.gz"]'
    with pytest.raises(TextcatError, match=r"neither 'sha256' nor 'tree', so a download cannot be verified: add one\."):
        fetch_corpus(read_card(write_card(text)))
    assert server.hits == []


def test_a_cache_that_cannot_be_written_to_is_told_in_one_sentence(cache, server, write_card, caplog):
    cache.write_text("a file where the folder should be")
    with pytest.raises(TextcatError, match=r"^Nothing can be written to the cache .*: name another .*\.$"):
        fetch_corpus(read_card(write_card(urls=[DEAD, f"{server.url}/tin.tar.gz"])))
    assert server.hits == []
    assert not caplog.records


def test_what_a_killed_download_left_is_cleared_a_day_later(cache, server, write_card):
    for name, age in (("old", 2), ("new", 0)):
        (cache / f".partial-{name}").mkdir(parents=True)
        when = time.time() - age * 24 * 3600
        os.utime(cache / f".partial-{name}", (when, when))
    fetch_corpus(read_card(write_card(urls=[f"{server.url}/tin.tar.gz"])))
    assert sorted(os.listdir(cache)) == [".partial-new", "tin.tar.gz"]


@pytest.mark.parametrize("tells_length", [True, False])
def test_the_bar_shows_the_bytes(server, write_card, tells_length):
    server.tells_length = tells_length
    console = Console(file=io.StringIO(), force_terminal=True, width=100)
    with download_bar(console, "tin", shows="bytes") as bar:
        fetch_corpus(read_card(write_card(urls=[f"{server.url}/tin.tar.gz"])), bar)
        assert bar.total == (len(ARCHIVE) if tells_length else 0)
    assert "tin" in console.file.getvalue()


def test_the_cache_is_the_users_own(monkeypatch):
    monkeypatch.undo()
    assert fetch.cache_folder().parts[-1] == "corpora"
    assert Path.home() in fetch.cache_folder().parents or "XDG_CACHE_HOME" in os.environ


@pytest.mark.where_long("18,846 files in a tar take seconds")
def test_a_corpus_in_two_kinds_of_archive_is_the_same(newsgroups_archive, tmp_path):
    with tarfile.open(newsgroups_archive) as archive:
        ending = [entry for entry in archive if entry.isfile() and entry.name.endswith("9")]
        some = {entry.name: archive.extractfile(entry).read() for entry in ending}
    (tmp_path / "some.tar.gz").write_bytes(tar_bytes(**some))
    text = 'reader = "folders"\nfiles = ["some.tar.gz"]\noptions = { encoding = "latin-1" }'
    (tmp_path / "some.toml").write_text(text)
    corpus = open_corpus(tmp_path / "some.toml")
    assert Counter(d.topics[0] for d in [*corpus.train, *corpus.test]) == Counter(n.split("/")[1] for n in some)


# ---- data of one's own ----


@pytest.fixture
def articles(tmp_path, monkeypatch):
    """A table whose columns have names of their own, in the current folder."""
    monkeypatch.chdir(tmp_path)
    rows = [f"k{i};About {topic} {i};{topic}|all" for i, topic in enumerate(["corn", "tin"] * 10)]
    Path("articles.csv").write_text("\n".join(["key,abstract,labels", *(row.replace(";", ",") for row in rows)]))
    return InputSettings(text_fields=("abstract",), id_field="key", topics_field="labels", topics_separator="|")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("article.csv", r"^There is no file or folder article\.csv\. Did you mean 'articles\.csv'\?$"),
        ("nowhere/articles.csv", r"^There is no file or folder nowhere/articles\.csv\.$"),
        ("no*.jsonl", r"^There is no file or folder no\*\.jsonl\.$"),
        (
            "article.toml",
            r"^Cannot read the card article\.toml: No such file or directory\. Did you mean 'articles\.csv'\?$",
        ),
        ("newswir", r"^No corpus 'newswir'\. Known corpora: .* Did you mean 'newswire'\?$"),
    ],
)
def test_a_file_that_is_not_there_is_told_as_such(articles, name, message):
    with pytest.raises(TextcatError, match=message):
        open_corpus(name)


def test_documents_are_set_aside_for_test_and_the_corpus_opens_again_from_anywhere(articles, tmp_path, monkeypatch):
    corpus = open_corpus("articles.csv", settings=articles, test_size=0.2, seed=3)
    assert (len(corpus.train), len(corpus.test), corpus.topics) == (16, 4, ("all", "corn", "tin"))
    assert corpus.test == open_corpus("articles.csv", settings=articles).split(4, seed=3).test
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    again = reopen_corpus(json.loads(json.dumps(corpus.origin)))
    assert again == corpus
    assert again.origin == corpus.origin


def test_a_named_corpus_opens_again_by_its_name():
    corpus = open_corpus("newswire")
    assert corpus.origin == {"name_or_path": "newswire"}
    assert reopen_corpus(corpus.origin) == corpus


@every(
    "setting, shown",
    [
        ({"text_fields": ("headline", "story")}, "--text-field headline, story"),
        ({"id_field": "nr"}, "--id-field nr"),
        ({"topics_field": "labels"}, "--topics-field labels"),
        ({"topics_separator": ";"}, "--topics-separator ;"),
        ({"split_field": "part"}, "--split-field part"),
        ({"encoding": "utf-8"}, "--encoding utf-8"),
        ({"plain_quotes": True}, "--plain-quotes"),
        ({"lines": True}, "--lines"),
        ({"format": "csv"}, "--format csv"),
    ],
)
def test_a_setting_that_would_change_nothing_beside_a_card_is_refused(setting, shown):
    message = f"Corpus newswire is read as its card says, so {shown} would change nothing: leave it out, or write a "
    for named in ("newswire", cards()["newswire"]):
        with pytest.raises(TextcatError, match=f"^{re.escape(message)}card of your own\\.$"):
            open_corpus(named, settings=InputSettings(**setting))


def test_what_a_card_leaves_open_is_read_by_the_settings(articles, tmp_path):
    own = tmp_path / "own.toml"
    own.write_text(
        'reader = "csv"\nfiles = ["articles.csv"]\noptions = { text_fields = ["abstract"], id_field = "key" }'
    )
    left_open = InputSettings(topics_field="labels", topics_separator="|", encoding="latin-1", plain_quotes=True)
    corpus = open_corpus(own, settings=left_open, test_size=0.2)
    assert (len(corpus.train), len(corpus.test), corpus.topics) == (16, 4, ("all", "corn", "tin"))
    assert reopen_corpus(json.loads(json.dumps(corpus.origin))) == corpus
    with pytest.raises(TextcatError, match=r"^Corpus own is read as its card says, so --id-field nr would"):
        open_corpus(own, settings=left_open._replace(id_field="nr"))


@every("origin", [{}, {"path": "x"}, {"name_or_path": "newswire", "settings": {"speed": 1}}, {"settings": 3}])
def test_an_origin_that_makes_no_sense_is_told(origin):
    with pytest.raises(TextcatError, match="does not say how to open the corpus"):
        reopen_corpus(origin)


def test_topics_of_training_without_a_test_document_stay_but_for_the_benchmarks(tmp_path):
    for part, topic in (("train", "a"), ("train", "b"), ("test", "a")):
        path = tmp_path / "own" / part / topic / f"{part}.txt"
        path.parent.mkdir(parents=True)
        path.write_text("text")
    assert open_corpus(tmp_path / "own").topics == ("a", "b")
    assert {each.topics for each in cards().values() if not each.name.startswith("yso-finna")} == {"both"}


def test_a_search_folder_that_is_not_there_is_told_once(tmp_path, monkeypatch, caplog):
    monkeypatch.setenv("TEXTCAT_CORPORA", str(tmp_path / "nowhere"))
    for _ in range(2):
        assert open_corpus("newswire").name == "newswire"
    told = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert told == [f"TEXTCAT_CORPORA names {tmp_path / 'nowhere'}, and there is no such folder."]


def test_documents_without_text_are_told_by_their_ids(tmp_path, caplog):
    (tmp_path / "a.csv").write_text("id,text,topics\n1,tin,tin\n2,,gold\n3, ,gold\n", encoding="utf-8")
    assert len(open_corpus(tmp_path / "a.csv").train) == 3
    assert "a.csv: 2 of 3 documents have no text: 2, 3. If that is wrong, name the field" in caplog.text
