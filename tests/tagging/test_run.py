"""Whole runs: every record is tagged or rejected, in order, and the same however the work is done."""

import csv
import dataclasses
import gzip
import io
import json
import logging
import os
import re
import sys
from functools import partial

import archive_runs
import pytest
from archive_runs import READ, make_archive, run, written
from tagged_rows import rows, to_stream
from web_records import pages

import textcat
from textcat.base.errors import TextcatError
from textcat.model.manifest import read_manifest
from textcat.runs import progress as progress_module
from textcat.runs import workers
from textcat.runs.progress import progress_shown
from textcat.runs.results import encode_rejection
from textcat.tagging.output import OutputSettings
from textcat.tagging.shards import read_tags


@pytest.fixture(scope="module")
def tagger(model):
    return textcat.load(model)


def lines_of(path):
    """The lines of a file, with their numbers."""
    data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    return list(enumerate(data.decode().splitlines(), start=1))


def readable(archive):
    """Source, position and fields of the lines that can be read, and source and position of the others."""
    good, bad = [], []
    for path in archive:
        for number, line in lines_of(path):
            if line in archive_runs.BROKEN:
                bad.append((str(path), number))
            else:
                good.append((str(path), number, json.loads(line)))
    return good, bad


# --- what is written -------------------------------------------------------------------------------------------------


def test_every_record_is_tagged_as_the_tagger_does_or_rejected_with_its_place(tagger, archive, undisturbed):
    good, bad = readable(archive)
    _, tagged, rejected = undisturbed
    found = tagger.tag([textcat.Document("", {"title": line["title"], "body": line["text"]}) for *_, line in good])
    assert [(row["source"], row["position"], row["id"]) for row in rows(tagged)] == [
        (source, position, line["id"]) for source, position, line in good
    ]
    for row, tags in zip(rows(tagged), found, strict=True):
        assert row["topics"] == [
            {"topic": tag.topic, "score": round(tag.score, 4), "probability": round(tag.probability, 4)} for tag in tags
        ]
    assert [(row["source"], row["position"]) for row in rows(rejected)] == bad
    assert bad


def test_a_rejection_tells_where_the_raw_bytes_lie(archive, undisturbed):
    content = {str(path): "\n".join(line for _, line in lines_of(path)).encode() for path in archive}
    for row in rows(undisturbed[2]):
        raw = content[row["source"]][row["offset"] : row["offset"] + row["length"]].decode()
        assert raw.strip("\n") in archive_runs.BROKEN
        assert row["reason"].endswith(".")


def test_a_stream_gets_what_the_shards_hold(model, archive, undisturbed):
    stream, told, summary = to_stream(model, archive)
    assert stream == undisturbed[1]
    assert [json.loads(encode_rejection(rejection)) for rejection in told] == rows(undisturbed[2])
    assert summary.counts.records == 450


@pytest.mark.parametrize("block_bytes", [1, 20_000, 1 << 20])
def test_the_length_of_pieces_changes_no_row(model, archive, undisturbed, block_bytes):
    stream, told, _ = to_stream(model, archive, read=READ._replace(block_bytes=block_bytes))
    assert stream == undisturbed[1]
    assert len(told) == len(rows(undisturbed[2]))


def test_processes_write_what_the_process_itself_does(model, archive, undisturbed, out, monkeypatch):
    monkeypatch.setattr(workers, "IN_PROCESS_BYTES", 0)
    summary = run(model, archive, out, jobs=2)
    assert written(out) == undisturbed
    assert summary.memory > 100e6


def test_processes_write_the_parquet_that_the_process_itself_does(model, archive, out, monkeypatch):
    pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    settings = READ._replace(block_bytes=1), OutputSettings("parquet")
    run(model, archive[1:2], out.with_name("alone"), *settings)
    monkeypatch.setattr(workers, "IN_PROCESS_BYTES", 0)
    run(model, archive[1:2], out, *settings, jobs=2)
    assert written(out) == written(out.with_name("alone"))


def test_the_tags_are_those_of_the_settings(model, tagger, archive):
    n_topics = len(tagger.topics)
    for write, fits in {
        OutputSettings(top=2): lambda topics: len(topics) == 2,
        OutputSettings(all_topics=True): lambda topics: len(topics) == n_topics,
        OutputSettings(explain=1): lambda topics: all(len(topic["terms"]) == 1 for topic in topics),
    }.items():
        stream, _, summary = to_stream(model, archive[1:2], write=write)
        assert all(fits(row["topics"]) for row in rows(stream))
        scores = [[topic["score"] for topic in row["topics"]] for row in rows(stream)]
        assert scores == [sorted(of_one, reverse=True) for of_one in scores]
    plain, _, expected = to_stream(model, archive[1:2])
    assert (summary.counts.topics, summary.counts.untagged) == (expected.counts.topics, expected.counts.untagged)
    assert sum(expected.counts.topics.values()) == sum(len(row["topics"]) for row in rows(plain))
    assert expected.counts.untagged == sum(not row["topics"] for row in rows(plain))


def test_the_formats_hold_the_same(model, archive, undisturbed, out):
    parquet = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed")
    for to in ("csv", "parquet"):
        run(model, archive, out.with_name(to), write=OutputSettings(to))
    names = sorted(out.with_name("parquet").glob("part*"))
    expected = [{"date": None, "date_text": None, "reason": None} | row for row in rows(undisturbed[1])]
    for row in expected:
        row["topics"] = [{"status": None} | tag for tag in row["topics"]]
    assert [row for name in names for row in parquet.read_table(name).to_pylist()] == expected
    flat = [
        [*map(str, place), "", "", row["model"], *map(str, tag.values()), "", row.get("reason", "")]
        for row in rows(undisturbed[1])
        for place in [(row["id"], row["source"], row["position"])]
        for tag in row["topics"] or [{"topic": "", "score": "", "probability": ""}]
    ]
    names = sorted(out.with_name("csv").glob("part*"))
    assert [row for name in names for row in list(csv.reader(name.open(newline="")))[1:]] == flat


def test_parquet_is_not_written_to_a_stream(model, archive):
    with pytest.raises(TextcatError, match=r"Parquet .* --out"):
        to_stream(model, archive, write=OutputSettings("parquet"))


def test_strict_stops_at_the_first_record_that_cannot_be_read(model, archive, out, undisturbed):
    _, bad = readable(archive)
    with pytest.raises(TextcatError) as error:
        run(model, archive, out, strict=True)
    source, position = bad[0]
    assert str(error.value).startswith(f"{source}:{position}: ")
    run(model, archive, out)
    assert written(out) == undisturbed


def test_strict_does_not_stop_at_what_is_left_out(model, tmp_path, out):
    (tmp_path / "a.warc").write_bytes(b"".join(pages(3)))
    summary = run(model, [tmp_path / "a.warc"], out, strict=True)
    assert (summary.counts.tagged, summary.counts.rejected) == (3, 3)


def test_a_run_is_resumed_only_with_the_same_texts_of_pages(model, tmp_path, out):
    (tmp_path / "a.warc").write_bytes(b"".join(pages(3)))
    run(model, [tmp_path / "a.warc"], out)
    with pytest.raises(TextcatError, match="--main-text"):
        run(model, [tmp_path / "a.warc"], out, read=READ._replace(main_text=True))


# --- from Python -----------------------------------------------------------------------------------------------------


def test_tag_archive_is_a_run_in_one_call(model, archive, undisturbed, out):
    seen = []
    summary = textcat.tag_archive(model, archive, out, jobs=1, progress=seen.append)
    assert b"".join(path.read_bytes() for path in sorted(out.glob("part*"))) == undisturbed[1]
    assert (out / "_rejected.jsonl").read_bytes() == undisturbed[2]
    assert summary.counts.records == seen[-1].counts.records == 450
    counts = summary.counts
    assert repr(summary) == (
        f"<Summary: 450 records, {counts.tagged} tagged, {counts.rejected} rejected, {counts.untagged} untagged, "
        "0 unknown, 0 left out>"
    )
    with pytest.raises(TextcatError, match="-7 jobs"):
        textcat.tag_archive(model, archive, out.with_name("other"), jobs=-7)
    assert textcat.tag_archive(model, archive, out).before.finished
    with pytest.raises(TextcatError, match="began with no --top, but now has --top 1"):
        textcat.tag_archive(model, archive, out, output_settings=textcat.OutputSettings(top=1))


def test_tag_archive_takes_one_path_and_both_kinds_of_settings(model, tmp_path):
    (tmp_path / "a.dat").write_text("nr\tbody\n7\twheat\n")
    summary = textcat.tag_archive(
        str(model),
        str(tmp_path / "a.dat"),
        str(tmp_path / "out"),
        input_settings=READ._replace(format="tsv", text_fields=("body",), id_field="nr"),
        output_settings=textcat.OutputSettings("csv", top=1),
    )
    assert (tmp_path / "out" / "part-00000.csv").read_text().splitlines()[1].startswith('"7",')
    assert summary.shards == 1
    with pytest.raises(TextcatError, match="one contains the other: write to another folder"):
        textcat.tag_archive(model, tmp_path, tmp_path / "out2")


# --- some topics, and probabilities ----------------------------------------------------------------------------------


def test_some_topics_are_tagged_as_among_all_of_them(model, tagger, archive):
    (often, _), (less_often, _) = to_stream(model, archive[1:2])[2].counts.topics.most_common(2)
    chosen = less_often, often
    for settings in ({}, {"top": 1}, {"all_topics": True}, {"explain": 2}):
        whole = OutputSettings(**{**settings, "top": None})
        expected, _, of_all = to_stream(model, archive[1:2], write=whole)
        stream, _, summary = to_stream(model, archive[1:2], write=OutputSettings(**settings, topics=chosen))
        for row, of_row in zip(rows(stream), rows(expected), strict=True):
            topics = [topic for topic in of_row["topics"] if topic["topic"] in chosen]
            if "top" not in settings:
                assert row["topics"] == topics
            else:
                assert len(row["topics"]) == 1
                assert row["topics"][0]["topic"] in chosen
        assert summary.topics == chosen
        assert list(summary.train_sizes) == sorted(chosen, key=tagger.topics.index)
        assert dict(summary.counts.topics) == {topic: of_all.counts.topics[topic] for topic in chosen}
        assert {drift.topic for drift in summary.drifts} <= set(chosen)


def test_topics_of_a_least_probability_stand_in_place_of_those_above_their_thresholds(model, archive):
    expected, _, _ = to_stream(model, archive[1:2], write=OutputSettings(all_topics=True))
    for least in (0.0, 0.1, 0.5, 0.9):
        stream, _, summary = to_stream(model, archive[1:2], write=OutputSettings(min_probability=least))
        # Four digits are written: what is no farther than that from the least one may be on either side.
        for row, of_row in zip(rows(stream), rows(expected), strict=True):
            fits = [topic for topic in of_row["topics"] if topic["probability"] >= least + 1e-4]
            assert [topic for topic in row["topics"] if topic["probability"] >= least + 1e-4] == fits
            assert all(topic["probability"] >= least - 1e-4 for topic in row["topics"])
        assert sum(summary.counts.topics.values()) == sum(len(row["topics"]) for row in rows(stream))
        of_top, _, _ = to_stream(model, archive[1:2], write=OutputSettings(top=2, min_probability=least))
        for row, of_row in zip(rows(of_top), rows(expected), strict=True):
            assert row["topics"] == [topic for topic in of_row["topics"][:2] if topic["probability"] >= least]


def test_topics_and_probabilities_that_the_model_does_not_have_are_refused(model, tagger, archive, tmp_path):
    for topics, remedy in (
        (("wheet",), "The model has no topic 'wheet'. Did you mean 'wheat'?"),
        (("x" * 30,), "no topic 'x"),
    ):
        with pytest.raises(TextcatError, match=re.escape(remedy)) as error:
            to_stream(model, archive, write=OutputSettings(topics=topics))
        assert str(error.value).endswith("`textcat topics MODEL` lists its topics.")
    with pytest.raises(TextcatError, match=r"7 is not a probability: give one from 0 to 1\."):
        to_stream(model, archive, write=OutputSettings(min_probability=7))
    with pytest.raises(TextcatError, match="minimal probability, or for all topics, not both"):
        to_stream(model, archive, write=OutputSettings(min_probability=0.5, all_topics=True))
    decisions = dataclasses.replace(tagger.decisions, calibration=None)
    uncalibrated = textcat.save(dataclasses.replace(tagger, decisions=decisions), tmp_path / "uncalibrated")
    with pytest.raises(TextcatError, match=r"has no probabilities, as it was trained on too few .*: leave out"):
        to_stream(uncalibrated, archive, write=OutputSettings(min_probability=0.5))


def test_a_run_with_other_topics_or_another_least_probability_is_another_run(model, tmp_path, out):
    path = make_archive(tmp_path / "mine.jsonl", 20)

    def tag(**settings):
        return run(model, [path], out, write=OutputSettings(**settings))

    tag()
    with pytest.raises(TextcatError, match=r"no --topic, .* --topic gold, wheat: "):
        tag(topics=("wheat", "gold"))
    with pytest.raises(TextcatError, match=r"no --min-probability, .* --min-probability 0\.0"):
        tag(min_probability=0.0)


# --- once more -------------------------------------------------------------------------------------------------------


def test_a_finished_run_is_not_done_again(model, archive, undisturbed, out):
    first = run(model, archive, out)
    second = run(model, archive, out)
    assert (first.before.finished, second.before.finished) == (False, True)
    assert (second.counts, second.shards) == (first.counts, first.shards)
    assert written(out) == undisturbed


def test_another_model_input_or_option_is_refused(model, other_model, archive, tmp_path, out):
    path = make_archive(tmp_path / "mine.jsonl", 20)
    run(model, [path], out)
    for options, told in {
        ("id_field", "id2"): "began with --id-field id, but now has --id-field id2",
        ("lines", True): "began with no --lines, but now has --lines",
    }.items():
        with pytest.raises(TextcatError, match=told):
            run(model, [path], out, read=READ._replace(**dict([options])))
    with pytest.raises(TextcatError, match="began with no --top, but now has --top 2"):
        run(model, [path], out, write=OutputSettings(top=2))
    with pytest.raises(TextcatError, match=r"began with model \w+, but now has model \w+: give --model-changes"):
        run(other_model, [path], out)
    summary = run(other_model, [path], out, restart=True)
    assert (summary.before.counts.records, summary.counts.records) == (0, 20)


class Broken(BaseException):
    pass


def break_off(reached):
    if reached.records > 100:
        raise Broken


@pytest.fixture
def give(monkeypatch):
    """Makes bytes the standard input."""
    return lambda data: monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))


@pytest.mark.parametrize("pack", [bytes, partial(gzip.compress, mtime=0)])
def test_standard_input_is_gone_on_with_if_it_is_the_same(model, archive, out, give, pack):
    content = archive[0].read_bytes()
    give(pack(content))
    run(model, ["-"], out.with_name("undisturbed"))
    give(pack(content))
    with pytest.raises(Broken):
        run(model, ["-"], out, progress=break_off)
    for other in (content.replace(b"0-0", b"9-9"), content[:100], b""):
        give(pack(other))
        with pytest.raises(TextcatError, match=r"^- does not give the same bytes"):
            run(model, ["-"], out)
    give(pack(content))
    summary = run(model, ["-"], out)
    assert 0 < summary.before.counts.records < summary.counts.records == 200
    assert written(out)[1:] == written(out.with_name("undisturbed"))[1:]
    for other in (content + b'{"text": "more"}\n', content.replace(b"0-0", b"9-9"), content[:100], b""):
        give(pack(other))
        with pytest.raises(TextcatError, match=r"^- does not give the same bytes"):
            run(model, ["-"], out)
    give(pack(content))
    assert run(model, ["-"], out).before.finished
    with pytest.raises(TextcatError, match="--model-changes all cannot replace"):
        run(model, ["-"], out, model_changes="all")


def test_a_run_that_is_broken_off_by_an_error_goes_on(model, archive, undisturbed, out):
    with pytest.raises(Broken):
        run(model, archive, out, progress=break_off)
    summary = run(model, archive, out)
    assert 0 < summary.before.counts.records < summary.counts.records
    assert written(out) == undisturbed


def test_a_clock_that_goes_back_breaks_nothing(model, archive, undisturbed, out, monkeypatch):
    times = iter(range(10**6, 0, -1000))
    for name in ("time", "monotonic", "perf_counter"):
        monkeypatch.setattr(progress_module.time, name, lambda: float(next(times)))
    seen = []
    with progress_shown() as show:
        run(model, archive, out, progress=lambda far: (show(far), seen.append(str(far))))
    assert written(out) == undisturbed
    assert seen


def test_the_log_has_a_line_now_and_then(model, archive, out, monkeypatch, caplog):
    monkeypatch.setattr(progress_module, "LOG_SECONDS", 0.0)
    caplog.set_level(logging.INFO, "textcat")
    with progress_shown() as show:
        run(model, archive, out, progress=show)
    lines = [record.message for record in caplog.records]
    assert lines[0].startswith("Tagging 3 inputs")
    assert f"{archive[2]} is read as jsonl, recognised by name" in lines
    assert sum(" MB/s, " in line for line in lines) > 5
    assert lines[-1].startswith("Finished: 450 documents")


def test_progress_ends_with_all_that_was_read(model, archive, out):
    seen = []
    run(model, archive, out, progress=seen.append)
    assert seen[-1].read == seen[-1].total == sum(path.stat().st_size for path in archive)
    assert [far.read for far in seen] == sorted(far.read for far in seen)


def test_files_that_are_new_or_change_are_tagged_by_another_model_and_the_rest_stays(model, other_model, tmp_path):
    folder, out, whole = (tmp_path / name for name in ("in", "out", "whole"))
    make_archive(folder / "a.jsonl", 30)
    make_archive(folder / "b.jsonl", 30, seed=1)
    run(model, [folder], out)
    before = archive_runs.rows(out)
    make_archive(folder / "b.jsonl", 20, seed=2)
    make_archive(folder / "c.jsonl", 20, seed=3)
    with pytest.raises(TextcatError, match="With a new model, 'perhaps' cannot be done: give ask, new or all"):
        run(other_model, [folder], out, model_changes="perhaps")
    with pytest.raises(TextcatError, match="give --model-changes new"):
        run(other_model, [folder], out)
    assert archive_runs.rows(out) == before
    run(other_model, [folder], out, model_changes="new")
    run(other_model, [folder], whole)
    kept, by_other = ([row for row in each if b"/a.jsonl" in row] for each in (before, archive_runs.rows(whole)))
    changed = [row for row in archive_runs.rows(whole) if b"/a.jsonl" not in row]
    assert kept != by_other
    assert sorted(archive_runs.rows(out)) == sorted(kept + changed)
    assert changed
    model_of = {os.path.basename(row.source): row.model for row in read_tags(out)}
    old, new = (read_manifest(folder).id for folder in (model, other_model))
    assert model_of == {"a.jsonl": old, "b.jsonl": new, "c.jsonl": new}
    summary = run(other_model, [folder], out)  # from now on it is the model of this folder
    assert summary.counts.records == summary.before.counts.records
    with pytest.raises(TextcatError, match="give --model-changes new"):
        run(model, [folder], out)


def test_what_another_run_has_added_since_is_found_by_a_process_that_tags_a_folder_again(model, other_model, tmp_path):
    folder, out = tmp_path / "in", tmp_path / "out"
    make_archive(folder / "a.jsonl", 20)
    former = run(model, [folder], out).before.log
    make_archive(folder / "b.jsonl", 20, seed=1)
    run(other_model, [folder], out, model_changes="new")
    make_archive(folder / "c.jsonl", 20, seed=2)
    with pytest.raises(TextcatError, match="give --model-changes new"):
        run(model, [folder], out, former=former)
    run(model, [folder], out, former=former, model_changes="new")
    model_of = {os.path.basename(row.source): row.model for row in read_tags(out)}
    old, new = (read_manifest(folder).id for folder in (model, other_model))
    assert model_of == {"a.jsonl": old, "b.jsonl": new, "c.jsonl": old}


def test_a_summary_that_another_run_has_not_written_is_written_by_a_process_that_tags_a_folder_again(model, tmp_path):
    folder, out = tmp_path / "in", tmp_path / "out"
    make_archive(folder / "a.jsonl", 20)
    former = run(model, [folder], out).before.log
    stale = (out / "_summary.json").read_bytes()
    make_archive(folder / "b.jsonl", 20, seed=1)
    run(model, [folder], out)
    whole = (out / "_summary.json").read_bytes()
    (out / "_summary.json").write_bytes(stale)  # as if that run had been killed before it wrote its own
    run(model, [folder], out, former=former)
    assert (out / "_summary.json").read_bytes() == whole != stale


def test_a_run_that_was_interrupted_goes_on_by_another_model(model, other_model, tmp_path):
    archive, out = make_archive(tmp_path / "in" / "a.jsonl", 60), tmp_path / "out"

    def stop(progress):
        if progress.counts.records >= 30:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(model, [archive], out, progress=stop)
    begun = archive_runs.rows(out)
    assert begun
    run(other_model, [archive], out, model_changes="new")
    run(other_model, [archive], tmp_path / "whole")
    now, whole = archive_runs.rows(out), archive_runs.rows(tmp_path / "whole")
    assert now[: len(begun)] == begun
    assert now[len(begun) :] == whole[len(begun) :]
