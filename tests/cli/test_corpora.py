"""`textcat corpora`: where they are, what they count, and how they are fetched."""

import re
from pathlib import Path

import pytest
from printed_tables import printed

from textcat.cli import corpora


def test_corpora_says_where_each_is_or_how_to_get_it(run, monkeypatch, tmp_path):
    monkeypatch.delenv("TEXTCAT_CORPORA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    run("corpora")
    assert (run.code, run.err) == (0, "")
    lines = {line.split()[0]: line for line in run.out.splitlines()}
    assert lines["newswire"].endswith("newswire.sgm")
    assert "textcat corpora fetch reuters21578" in lines["reuters21578"]


def test_corpora_show_counts_documents_topics_and_tokens(run):
    run("corpora", "show", "newswire")
    assert run.code == 0
    assert re.search(r"^train +721 +\d+$", run.out, re.MULTILINE)
    assert re.search(r"^topics +50$", run.out, re.MULTILINE)
    assert re.search(r"^tokens +[\d,]+ in train and test$", run.out, re.MULTILINE)


def test_corpora_fetch_finds_what_is_there_and_checks_it(run):
    run("corpora", "fetch", "newswire")
    assert (run.code, run.err) == (0, "")
    assert re.search(r"^licence +MIT", run.out, re.MULTILINE)
    Path("news.toml").write_text(
        f'reader = "reuters"\nfiles = ["wire.sgm"]\n[sha256]\n"wire.sgm" = "{"0" * 64}"\n', encoding="utf-8"
    )
    Path("wire.sgm").write_text("<REUTERS></REUTERS>")
    assert "checksum" in run.refuses("corpora", "fetch", "news.toml")


@pytest.mark.parametrize("n_topics", [3, 30])
def test_a_corpus_page_shows_the_ends_of_a_long_list_of_topics(n_topics):
    from textcat.corpus.documents import Corpus, Document

    documents = [
        Document(f"{topic}-{k}", {"body": "x"}, (f"t{topic:02}",))
        for topic in range(n_topics)
        for k in range(n_topics - topic)
    ]
    lines = printed(corpora.show_corpus, Corpus.from_documents("long", documents), 100)
    shown = [line.split()[0] for line in lines if line.startswith("t") and line[1].isdigit()]
    order = [f"t{topic:02}" for topic in range(n_topics)]
    assert shown == (order if n_topics == 3 else order[:5] + order[-5:])
