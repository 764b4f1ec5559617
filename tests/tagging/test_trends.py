"""Prevalences of topics by period, from a folder of tags."""

import json
import shutil
from functools import partial
from pathlib import Path

import numpy as np
import pytest

import textcat
from textcat.base.errors import TextcatError
from textcat.corpus.corrections import all_topics
from textcat.model.manifest import Manifest, read_manifest
from textcat.review.review import Review
from textcat.runs.shard_writer import score_bins_path
from textcat.tagging.counted_folders import counted_folders
from textcat.tagging.merge import merge_parts
from textcat.tagging.monitor import monitor_tags
from textcat.tagging.periods import NO_VALUE, UNDATED, read_periods
from textcat.tagging.planning import make_plan
from textcat.tagging.run import tag_archive, tag_to_folder
from textcat.tagging.score_bins import read_frames, write_model_counts
from textcat.tagging.trends import estimate_trends
from textcat.trends.bins import N_BINS, bins_of


@pytest.fixture(scope="module")
def texts(newswire):
    return newswire.train[:120]


def write(path, documents, dates, first=0):
    lines = [
        {"id": str(first + number), **each.zones, **({"date": date} if date else {})}
        for number, (each, date) in enumerate(zip(documents, dates, strict=True))
    ]
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    return path


@pytest.fixture
def archive(texts, tmp_path):
    """Two files: 80 documents of two months, of which ten have no date, and 40 documents of one month."""
    folder = tmp_path / "archive"
    folder.mkdir()
    write(folder / "a.jsonl", texts[:80], (["2024-01-05"] * 40 + ["2024-02-06T10:00:00"] * 30 + [""] * 10))
    write(folder / "b.jsonl", texts[80:], ["2024-02-28"] * 40, 80)
    return folder


def expected(model, documents):
    """The documents by topic and bin, by the model's scores."""
    tagger = textcat.load(model)
    scores = tagger.scores([{**each.zones} for each in documents])
    in_bins = bins_of(scores * tagger.decisions.calibration.a + tagger.decisions.calibration.b)
    return np.stack([np.bincount(column, minlength=N_BINS) for column in in_bins.T])


@pytest.mark.parametrize("settings", [{}, {"to": "csv"}, {"to": "parquet"}, {"compress": "zst", "top": 2}])
def test_documents_are_counted_by_period_topic_and_bin(texts, archive, promising_model, tmp_path, settings):
    out = textcat.OutputSettings(**settings)
    tag_archive(promising_model, archive, tmp_path / "tags", jobs=1, output_settings=out)
    periods = read_periods(counted_folders([tmp_path / "tags"]), "month")
    assert periods.names == ["2024-01", "2024-02", UNDATED]
    parts = texts[:40], [*texts[40:70], *texts[80:]], texts[70:80]
    for counts, documents in zip(periods.counts, parts, strict=True):
        assert np.array_equal(counts, expected(promising_model, documents))
    tagger = textcat.load(promising_model)
    assert np.array_equal(periods.tagged[0], tagger.predict([{**each.zones} for each in parts[0]]).sum(axis=0))
    assert read_periods(counted_folders([tmp_path / "tags"]), "day").names == [
        "2024-01-05",
        "2024-02-06",
        "2024-02-28",
        UNDATED,
    ]


@pytest.mark.parametrize("to", ["jsonl", "csv", "parquet"])
def test_documents_that_were_removed_are_not_counted(texts, archive, promising_model, tmp_path, to):
    out = textcat.OutputSettings(to=to)
    tag_archive(promising_model, archive, tmp_path / "tags", jobs=1, output_settings=out)
    write(archive / "a.jsonl", texts[5:40], ["2024-03-01"] * 35)
    tag_archive(promising_model, archive, tmp_path / "tags", jobs=1, output_settings=out)
    periods = read_periods(counted_folders([tmp_path / "tags"]), "month")
    assert periods.names == ["2024-02", "2024-03"]
    assert np.array_equal(periods.counts[0], expected(promising_model, texts[80:]))
    assert np.array_equal(periods.counts[1], expected(promising_model, texts[5:40]))


def test_parts_that_are_merged_give_the_files_of_one_run(archive, promising_model, tmp_path):
    tag_archive(promising_model, archive, tmp_path / "whole", jobs=1)
    for number in (1, 2):
        tag_archive(promising_model, archive, tmp_path / f"part-{number}", jobs=1, part=f"{number}/2")
    merge_parts([tmp_path / "part-2", tmp_path / "part-1"], tmp_path / "merged")
    for path in [*(tmp_path / "whole").glob("_bins-*"), *(tmp_path / "whole").glob("_held-out-*")]:
        assert (tmp_path / "merged" / path.name).read_bytes() == path.read_bytes()
    assert estimate_trends(tmp_path / "merged") == estimate_trends(tmp_path / "whole")


def test_a_run_that_was_stopped_goes_on_to_the_same_files(archive, promising_model, tmp_path):
    plan = make_plan(promising_model, archive, textcat.InputSettings(block_bytes=3000), jobs=1)
    tag_to_folder(plan, tmp_path / "whole", max_records=20)

    def stop(progress):
        if progress.counts.records > 60:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        tag_to_folder(plan, tmp_path / "stopped", progress=stop, max_records=20)
    files = sorted(path.name for path in (tmp_path / "whole").glob("_bins-*"))
    assert 1 < len([*(tmp_path / "stopped").glob("_bins-*.bin")]) < len(files)
    tag_to_folder(plan, tmp_path / "stopped", max_records=20)
    assert sorted(path.name for path in (tmp_path / "stopped").glob("_bins-*")) == files
    for name in files:
        assert (tmp_path / "stopped" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


def test_an_interval_surrounds_each_estimate_and_folders_add_up(archive, promising_model, tmp_path):
    for name in ("a", "b"):
        tag_archive(promising_model, archive / f"{name}.jsonl", tmp_path / name, jobs=1)
    tag_archive(promising_model, archive, tmp_path / "both", jobs=2)
    trends = estimate_trends([tmp_path / "a", tmp_path / "b"])
    assert trends.rows == estimate_trends(tmp_path / "both").rows
    assert trends.documents == 120
    assert {row.period for row in trends.rows} == {"2024-01", "2024-02", UNDATED}
    for row in trends.rows:
        assert 0 <= row.low <= row.prevalence <= row.high <= 1
        assert row.tagged <= row.documents
    some = estimate_trends(tmp_path / "both", topics=[trends.rows[0].topic])
    assert some.rows == [row for row in trends.rows if row.topic == trends.rows[0].topic]


def test_the_model_and_the_texts_are_not_needed(archive, promising_model, tmp_path):
    model = Path(shutil.copytree(promising_model, tmp_path / "model"))
    tag_archive(model, archive, tmp_path / "tags", jobs=1)
    before = estimate_trends(tmp_path / "tags")
    shutil.rmtree(model)
    shutil.rmtree(archive)
    assert estimate_trends(tmp_path / "tags") == before


def test_the_names_of_a_models_topics_are_gathered_once(promising_model, tmp_path, monkeypatch):
    gathered, names = [], Manifest.names.fget
    manifest = read_manifest(promising_model)
    monkeypatch.setattr(Manifest, "names", property(lambda manifest: gathered.append(1) or names(manifest)))
    monkeypatch.setattr("textcat.tagging.score_bins.read_manifest", lambda model: manifest)
    write_model_counts(tmp_path, str(promising_model), ())
    assert len(gathered) == 1


def test_a_run_of_some_topics_counts_these(texts, archive, promising_model, tmp_path):
    topics = textcat.load(promising_model).topics[4:6]
    out = textcat.OutputSettings(topics=topics)
    tag_archive(promising_model, archive, tmp_path / "tags", jobs=1, output_settings=out)
    periods = read_periods(counted_folders([tmp_path / "tags"]), "year")
    assert periods.model_counts.topics == [*topics]
    of_year = [*texts[:70], *texts[80:]]
    assert np.array_equal(periods.counts[0], expected(promising_model, of_year)[4:6])


def test_reprints_count_once_if_asked(texts, promising_model, tmp_path):
    path = write(tmp_path / "a.jsonl", [*texts[:30], *texts[:10]], ["2023-05-06"] * 20 + ["2024"] * 20)
    textcat.find_duplicates([path], tmp_path / "groups.jsonl", jobs=1)
    out = textcat.OutputSettings(duplicates=str(tmp_path / "groups.jsonl"))
    tag_archive(promising_model, path, tmp_path / "tags", jobs=1, output_settings=out)
    assert estimate_trends(tmp_path / "tags", by="year").documents == 40
    n_different = len({json.dumps(each.zones) for each in texts[:30]})
    assert estimate_trends(tmp_path / "tags", by="year", reprints="once").documents <= n_different


def test_a_reprint_with_the_id_of_its_original_counts_once(texts, promising_model, tmp_path):
    """Ids that begin anew in each file are those of several documents."""
    write(tmp_path / "a.jsonl", texts[:10], ["2023-05-06"] * 5 + ["2023-06-06"] * 5)
    (tmp_path / "b.jsonl").write_bytes((tmp_path / "a.jsonl").read_bytes().replace(b"2023", b"2024"))
    textcat.find_duplicates([tmp_path / "a.jsonl", tmp_path / "b.jsonl"], tmp_path / "groups.json", jobs=1)
    out = textcat.OutputSettings(duplicates=str(tmp_path / "groups.json"))
    tag_archive(
        promising_model, [tmp_path / "a.jsonl", tmp_path / "b.jsonl"], tmp_path / "tags", jobs=1, output_settings=out
    )
    assert estimate_trends(tmp_path / "tags", by="month").documents == 20
    once = estimate_trends(tmp_path / "tags", by="month", reprints="once")
    assert once.documents <= 10
    assert {row.period for row in once.rows} == {"2023-05", "2023-06"}


# --- bad input -------------------------------------------------------------------------------------------------------


@pytest.fixture
def tags(archive, promising_model, tmp_path):
    tag_archive(promising_model, archive, tmp_path / "tags", jobs=1)
    return tmp_path / "tags"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"by": "week"}, "no field 'week': give year, month, day or source"),
        ({"by": "year"}, "All dated documents are of 2024: count by month or by day"),
        ({"reprints": "once"}, "do not say which documents are reprints: give --reprints all, or tag again"),
        ({"topics": ["erth"]}, "'erth'"),
        ({"estimator": "guess"}, "'guess'"),
        ({"reprints": "twice"}, "'twice'"),
    ],
)
def test_a_wrong_option_is_refused(tags, options, words):
    with pytest.raises(TextcatError, match=words):
        estimate_trends(tags, **options)


def test_documents_without_dates_are_refused(texts, promising_model, tmp_path):
    path = write(tmp_path / "a.jsonl", texts[:5], [""] * 5)
    tag_archive(promising_model, path, tmp_path / "tags", jobs=1)
    with pytest.raises(TextcatError, match="No document has a date"):
        estimate_trends(tmp_path / "tags")


def test_documents_that_a_former_model_tagged_are_left_out(tags, texts, archive, newswire_model):
    write(archive / "c.jsonl", texts[:30], ["2024-03-01"] * 15 + ["2024-04-01"] * 15)
    tag_archive(newswire_model, archive, tags, jobs=1, model_changes="new")
    trends = estimate_trends(tags)
    assert (trends.model, trends.documents, trends.left_out) == (read_manifest(newswire_model).id, 30, 120)
    assert {row.period for row in trends.rows} == {"2024-03", "2024-04"}
    (archive / "b.jsonl").unlink()  # its tags stay
    tag_archive(newswire_model, archive, tags, jobs=1, model_changes="all")
    trends = estimate_trends(tags)
    assert (trends.documents, trends.left_out) == (110, 40)


def test_an_archive_of_a_former_model_alone_is_refused(tags, archive, newswire_model):
    tag_archive(newswire_model, archive, tags, jobs=1, model_changes="new")
    with pytest.raises(TextcatError, match="120 documents by former models or rules, and none by the present ones"):
        estimate_trends(tags)


def test_a_folder_that_is_named_twice_is_refused(tags, tmp_path):
    (tmp_path / "link").symlink_to(tags)
    for other in (tags, tmp_path / "link"):
        for count in (estimate_trends, monitor_tags):
            with pytest.raises(TextcatError, match=r"is named twice.*: name it once"):
                count([tags, other])


def test_folders_of_two_models_are_refused(tags, archive, newswire_model, tmp_path):
    tag_archive(newswire_model, archive, tmp_path / "other", jobs=1)
    with pytest.raises(TextcatError, match=r"models \w+ and \w+"):
        estimate_trends([tags, tmp_path / "other"])


def test_an_archive_that_was_tagged_again_by_another_model_is_of_that_model(tags, archive, newswire_model):
    (archive / "c.jsonl").write_text((archive / "b.jsonl").read_text())
    tag_archive(newswire_model, archive, tags, jobs=1, model_changes="new")
    tag_archive(newswire_model, archive, tags, jobs=1, model_changes="all")
    trends = estimate_trends(tags)
    assert trends.model == read_manifest(newswire_model).id
    assert trends.documents == 160


def test_tags_without_scores_and_no_tags_are_refused(tags, tmp_path):
    (shard,) = tags.glob("part-*")
    damaged = score_bins_path(shard)
    data = damaged.read_bytes()
    damaged.write_bytes(data[:-5])
    with pytest.raises(TextcatError, match="is damaged"):
        [*read_frames(shard)]
    damaged.unlink()
    with pytest.raises(TextcatError, match="train one with probabilities"):
        estimate_trends(tags)
    with pytest.raises(TextcatError, match="has no tags"):
        estimate_trends(tmp_path)


# --- a judged sample, and fields -------------------------------------------------------------------------------------


def judge(tags, documents, n):
    """Judge n documents of each month by their labels."""
    review, topics_of = Review(tags, sample=n), {str(number): each.topics for number, each in enumerate(documents)}
    for document in review.documents:
        has = {*topics_of[document.document.id]}
        answers = {topic: topic in has for topic in {*document.document.topics, *has}}
        review.answer(document.number, answers, is_complete=True)
    return review


@pytest.mark.parametrize("settings", [{}, {"to": "csv"}])
def test_judged_documents_are_counted_by_period_topic_and_bin(texts, archive, promising_model, tmp_path, settings):
    out = textcat.OutputSettings(**settings)
    tag_archive(promising_model, archive, tmp_path / "tags", jobs=1, output_settings=out)
    review = judge(tmp_path / "tags", texts, 15)
    places = {key[:2]: all_topics(made) for key, made in review.corrections.by_place().items()}
    periods = read_periods(counted_folders([tmp_path / "tags"]), "month", judged={tmp_path / "tags": places})
    topics = periods.model_counts.topics
    judged = periods.judged_of(np.arange(len(topics)))
    assert judged.documents.tolist() == [15, 15, 10]
    for i, period in enumerate(periods.names):
        month = "" if period == UNDATED else period
        chosen = [texts[int(each.document.id)] for each in review.documents if each.document.date[:7] == month]
        assert np.array_equal((judged.having + judged.lacking)[i], expected(promising_model, chosen))
        assert judged.having[i].sum(axis=1).tolist() == [sum(t in each.topics for each in chosen) for t in topics]


def test_estimates_use_a_judged_sample_and_say_so(texts, tags, tmp_path):
    plain = estimate_trends(tags)
    judge(tags, texts, 3)
    few = estimate_trends(tags)
    assert few.rows == plain.rows  # nine documents say too little
    assert few.judged == 0
    with pytest.raises(TextcatError, match=r"tags-corrections has 9 documents .* too few"):
        estimate_trends(tags, corrections=tmp_path / "tags-corrections")
    judge(tags, texts, 200)
    trends = estimate_trends(tags)
    assert trends.judged == 120
    months = [texts[:40], [*texts[40:70], *texts[80:]], texts[70:80]]
    for row in trends.rows:
        documents = months[["2024-01", "2024-02", UNDATED].index(row.period)]
        share = sum(row.topic in each.topics for each in documents) / len(documents)
        assert row.judged == row.documents == len(documents)
        assert (row.prevalence, row.low, row.high) == pytest.approx((share, share, share), abs=1e-8)
    one = estimate_trends(tags, topics=[trends.rows[0].topic])
    assert one.rows == [row for row in trends.rows if row.topic == trends.rows[0].topic]
    shutil.move(tmp_path / "tags-corrections", tmp_path / "elsewhere")
    assert estimate_trends(tags).rows == plain.rows
    assert estimate_trends(tags, corrections=tmp_path / "elsewhere").rows == trends.rows
    with pytest.raises(TextcatError, match="of one folder of tags, and 2 were given"):
        estimate_trends([tags, tmp_path], corrections=tmp_path / "elsewhere")
    with pytest.raises(TextcatError, match="has no corrections"):
        estimate_trends(tags, corrections=tmp_path / "nowhere")


def test_answers_are_about_documents_not_about_places(texts, promising_model, tmp_path):
    lines = [
        json.dumps({"id": str(i), "text": " ".join(each.zones.values()), "date": f"2024-0{1 + i % 2}-01"}) + "\n"
        for i, each in enumerate(texts)
    ]
    file, tags = tmp_path / "a.jsonl", tmp_path / "tags"
    tag = partial(tag_archive, promising_model, file, tags, jobs=1)
    file.write_text("".join(lines))
    tag()
    judge(tags, texts, 200)
    plain = estimate_trends(tags)
    assert (plain.judged, plain.judged_gone) == (len(texts), 0)
    file.write_text("".join(reversed(lines)))
    tag()
    assert estimate_trends(tags).rows == plain.rows
    file.write_text('{"id": "new", "text": "Wheat rose.", "date": "2024-01-01"}\n' + "".join(lines[2:]))
    tag()
    found = estimate_trends(tags)
    # In January, only documents that are drawn before the new one are a random sample.
    assert (found.judged + found.judged_outside, found.judged_gone) == (len(texts) - 2, 2)
    assert {row.judged for row in found.rows if row.period == "2024-02"} == {59}
    assert {row.judged for row in found.rows if row.period == "2024-01"} == {59 - found.judged_outside}
    assert found.judged_outside


@pytest.mark.parametrize("to", ["jsonl", "csv", "parquet"])
def test_documents_are_counted_by_a_field(texts, promising_model, tmp_path, to):
    desks = [("home", "world", "=odd", None)[number % 4] for number in range(60)]
    lines = [{"id": str(n), **each.zones, "desk, city": desks[n]} for n, each in enumerate(texts[:60])]
    for name, part in (("a", lines[:30]), ("b", lines[30:])):
        (tmp_path / f"{name}.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in part))
    inputs = [tmp_path / "a.jsonl", tmp_path / "b.jsonl"]
    out = textcat.OutputSettings(to=to, keep_fields=("desk, city",))
    tag_archive(promising_model, inputs, tmp_path / "tags", jobs=1, output_settings=out)
    periods = read_periods(counted_folders([tmp_path / "tags"]), "desk, city")
    assert periods.names == ["=odd", "home", "world", NO_VALUE]
    for name, counts in zip(periods.names, periods.counts, strict=True):
        wanted = None if name == NO_VALUE else name
        chosen = [each for each, desk in zip(texts[:60], desks, strict=True) if desk == wanted]
        assert np.array_equal(counts, expected(promising_model, chosen))
    by_source = estimate_trends(tmp_path / "tags", by="source")
    assert len({row.period for row in by_source.rows}) == 2
    assert by_source.documents == 60


def test_counts_that_would_not_fit_into_memory_are_refused(tags, monkeypatch):
    monkeypatch.setattr("textcat.tagging.periods.MOST_CELLS", 50)
    with pytest.raises(TextcatError, match="count by month or by year"):
        estimate_trends(tags, by="day")


def test_a_field_with_many_values_is_refused(tags, monkeypatch):
    monkeypatch.setattr("textcat.tagging.periods.MOST_VALUES", 1)
    with pytest.raises(TextcatError, match="'source' has more than 1 values"):
        estimate_trends(tags, by="source")
