"""Tags are read back from every format as they were written, whatever signs their topics and ids have."""

import json
from collections import Counter

import pytest
from archive_runs import run
from tag_folders import write_tags

import textcat
from textcat.tagging.difference import compare_tags
from textcat.tagging.output import OutputSettings
from textcat.tagging.shards import read_tags, remove_rows
from textcat.tagging.trends import estimate_trends

ODD_TOPICS = ("@work", "-1", "a; b", "'=1", '"c"', "'d")
ODD_IDS = ("=1", "'=1", "''=1", "-2", "'3", "@4; 5")
CSV = {
    "csv": OutputSettings("csv", all_topics=True, keep_fields=("=desk",)),
    "unescaped": OutputSettings("csv", all_topics=True, no_csv_escape=True, keep_fields=("=desk",)),
    "per document": OutputSettings("csv", all_topics=True, per_document=True, keep_fields=("=desk",)),
    "one topic": OutputSettings("csv", "zst", top=1, per_document=True, keep_fields=("=desk",)),
}


@pytest.fixture(scope="module")
def odd_model(newswire, tmp_path_factory):
    """A model of topics with odd signs."""
    folder = tmp_path_factory.mktemp("odd")
    frequent = [topic for topic, _ in Counter(topic for each in newswire.train for topic in each.topics).most_common(6)]
    odd = dict(zip(frequent, ODD_TOPICS, strict=True))
    lines = [
        {**each.zones, "topics": [odd[topic] for topic in each.topics if topic in odd], "split": each.split}
        for each in (*newswire.train[:200], *newswire.test[:40])
    ]
    (folder / "a.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    tagger = textcat.train(textcat.open_corpus(folder / "a.jsonl"), textcat.read_recipe("default"))
    return textcat.save(tagger, folder / "model")


@pytest.fixture
def odd_archive(newswire, tmp_path, monkeypatch):
    """Documents with odd ids and fields in a file with an odd name."""
    monkeypatch.chdir(tmp_path)
    documents = newswire.test[: len(ODD_IDS)]
    lines = [
        {"id": id_, **each.zones, "=desk": f"={i % 2}", "date": f"2024-0{1 + i % 2}-01"}
        for i, (id_, each) in enumerate(zip(ODD_IDS, documents, strict=True))
    ]
    (tmp_path / "=a.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    return ["=a.jsonl"]


@pytest.mark.parametrize("form", CSV)
def test_csv_is_read_back_as_json_lines_are(odd_model, odd_archive, tmp_path, form):
    run(odd_model, odd_archive, tmp_path / "csv", write=CSV[form])
    run(
        odd_model,
        odd_archive,
        tmp_path / "jsonl",
        write=CSV[form]._replace(to="jsonl", compress="", per_document=False),
    )
    expected = [*read_tags(tmp_path / "jsonl")]
    assert [*read_tags(tmp_path / "csv")] == expected
    assert [document.id for document in expected] == [*ODD_IDS]
    assert {topic for document in expected for topic in document.topics} <= {*ODD_TOPICS}
    assert compare_tags(tmp_path / "jsonl", tmp_path / "csv").changed == 0
    trends = [estimate_trends(tmp_path / to, by="=desk") for to in ("jsonl", "csv")]
    assert trends[0] == trends[1]
    assert {row.period for row in trends[0].rows} == {"=0", "=1"}


@pytest.mark.parametrize("form", CSV)
def test_rows_of_a_file_are_found_and_subtracted(odd_model, odd_archive, tmp_path, form):
    summary = run(odd_model, odd_archive, tmp_path / "csv", write=CSV[form])
    (shard,) = tmp_path.glob("csv/part-*")
    assert remove_rows(CSV[form], shard, ["=b.jsonl"], {}).counts.records == 0
    removed = remove_rows(CSV[form], shard, odd_archive, {}).counts
    assert (-removed.records, -removed.tagged) == (len(ODD_IDS), len(ODD_IDS))
    assert {topic: -n for topic, n in removed.topics.items() if n} == dict(+summary.counts.topics)


def test_shards_are_read_in_the_order_of_the_journal_and_only_those_in_it(tmp_path):
    names = ["part-99999.jsonl", "part-100000.jsonl"]
    rows = {name: [{"id": name, "source": "a", "position": 1, "topics": []}] for name in names}
    write_tags(tmp_path, rows)
    (tmp_path / "part-100001.jsonl").write_text("a run has stopped before it recorded this one")
    assert [document.id for document in read_tags(tmp_path)] == names
