"""Archives of all kinds become the same texts, and go on where reading them was broken off."""

import gzip
import os
import random
import signal
import time
import zipfile

import pytest
from pools import SMALL, TEXTS, content, read, same

from textcat.base import disk
from textcat.corpus.documents import Corpus, Document
from textcat.reading import InputSettings
from textcat.teaching.pool import build_pool


def test_archives_of_all_kinds_become_the_same_pool(tmp_path, archive):
    pool = build_pool(archive, tmp_path / "plain")
    with gzip.open(tmp_path / "news.jsonl.gz", "wb") as file:
        file.write(archive.read_bytes())
    with zipfile.ZipFile(tmp_path / "news.zip", "w") as file:
        file.write(archive, "a/news.jsonl")
    rows = [{"number": f"n{i}", "heading": title, "text": text} for i, (title, text) in enumerate(TEXTS)]
    (tmp_path / "news.tsv").write_text(
        "number\ttitle\tstory\n" + "".join(f"{row['number']}\t{row['heading']}\t{row['text']}\n" for row in rows)
    )
    columns = InputSettings(text_fields=("title", "story"), id_field="number")
    for number, (name, settings) in enumerate(
        [("news.jsonl.gz", InputSettings()), ("news.zip", InputSettings()), ("news.tsv", columns)]
    ):
        same(build_pool(tmp_path / name, tmp_path / str(number), settings=settings), pool)


class Broken(BaseException):
    """The process is no more: no handler of an error is to catch it."""


def test_a_pool_goes_on_wherever_making_it_was_broken_off(tmp_path, long_archive, in_pieces, monkeypatch):
    expected = content(build_pool(long_archive, tmp_path / "pool", settings=SMALL).folder)
    broken_at, done = [0], [0]

    def counted(function):
        def step(*arguments):
            done[0] += 1
            if done[0] == broken_at[0]:
                raise Broken
            return function(*arguments)

        return step

    for step in ("create", "reopen", "write_all", "sync", "rename", "remove", "truncate_file", "sync_folder"):
        monkeypatch.setattr(disk, step, counted(getattr(disk, step)))
    read(long_archive, tmp_path / "counted", max_records=16)
    n_steps = done[0]
    assert n_steps > 50
    for place in range(1, n_steps, n_steps // 6):
        folder, broken_at[0], done[0] = tmp_path / str(place), place, 0
        with pytest.raises(Broken):
            read(long_archive, folder, max_records=16)
        read(long_archive, folder, max_records=16)
        assert same_texts(content(build_pool(long_archive, folder, settings=SMALL).folder)) == same_texts(expected)


def same_texts(made):
    """What is in a folder, however texts are divided into shards."""
    shards = [name for name in sorted(made) if name.startswith("part-")]
    rest = {name: data for name, data in made.items() if name not in {*shards, "index/manifest.json"}}
    return b"".join(made[name] for name in shards), rest


@pytest.mark.skipif(not hasattr(os, "fork"), reason="system: there is no fork")
@pytest.mark.long
def test_a_pool_whose_making_is_killed_at_random_moments_is_the_same(tmp_path, long_archive, in_pieces):
    expected = content(build_pool(long_archive, tmp_path / "first", settings=SMALL).folder)
    began = time.perf_counter()  # now that all is loaded
    assert content(build_pool(long_archive, tmp_path / "second", settings=SMALL).folder) == expected
    longest, draw, killed, number = time.perf_counter() - began, random.Random(0), 0, 0
    while killed < 4:
        number += 1
        folder, ended = tmp_path / str(number), False
        while not ended:
            child = os.fork()
            if not child:  # all that is needed is loaded here already
                try:
                    build_pool(long_archive, folder, settings=SMALL, jobs=1)
                finally:
                    os._exit(0)
            time.sleep(draw.uniform(0, longest))
            os.kill(child, signal.SIGKILL)
            ended = os.waitpid(child, 0)[1] == 0
            killed += not ended
            longest *= 0.8 if ended else 1.05
        assert content(folder) == expected
    (folder / "_pieces").mkdir()  # as a run leaves them that is killed when all but this is done
    assert content(build_pool(long_archive, folder, settings=SMALL).folder) == expected
    assert not (folder / "_pieces").exists()


def test_documents_made_by_programs_may_hold_halves_of_surrogate_pairs(tmp_path):
    documents = [Document("\udcff", {"body": "a \ud800 word"}), Document("b", {"body": "another word"})]
    corpus = Corpus.from_documents("odd", documents)
    pool = build_pool(corpus, tmp_path / "pool")
    assert pool.document(0) == {"body": "a \\ud800 word"}
    assert list(pool.ids) == ["\\udcff", "b"]


def test_a_pool_keeps_dates(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text('{"text": "Tin rose.", "date": "1 May 2024"}\n{"text": "Gold fell."}\n')
    pool = build_pool(path, tmp_path / "pool")
    assert [pool.date(0), pool.date(1)] == ["2024-05-01", ""]
    corpus = Corpus.from_documents("a", [Document("1", {"body": "Tin rose."}, ("tin",), "2024-05-01")])
    assert build_pool(corpus, tmp_path / "other").date(0) == "2024-05-01"
