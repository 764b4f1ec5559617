"""A run that rejects more documents than `--max-rejected` allows ends early, and can be resumed."""

import gzip
import io
import json

import pytest
from archive_runs import READ, SHARD_RECORDS, run, written
from cases import every
from news_items import BODY_OF_DATA, g2_item, g2_message

from textcat.base.errors import TextcatError
from textcat.runs.results import Counts
from textcat.tagging.planning import OUTPUT, make_plan
from textcat.tagging.rejection_limit import RejectionLimit
from textcat.tagging.run import tag_to_folder
from textcat.tagging.stream import tag_to_stream
from textcat.tagging.write_back import write_back


@every("text", ["5", "0", "0%", "2.5%", "100%"])
def test_a_limit_is_printed_as_it_was_given(text):
    assert str(RejectionLimit.parse(text)) == text


@every("text", ["-1", "%", "5 %", "101%", "1.5", "many", "1e3", "٣"])
def test_a_limit_that_is_none_is_refused_with_its_text(text):
    with pytest.raises(TextcatError, match="is no limit of rejected documents: give a number"):
        RejectionLimit.parse(text)


@every(
    "text, records, rejected, left_out, is_too_many",
    [
        ("5", 5, 5, 0, False),
        ("5", 6, 6, 0, True),
        ("5", 100, 50, 45, False),
        ("0", 1, 1, 0, True),
        ("50%", 999, 999, 0, False),
        ("50%", 1000, 500, 0, False),
        ("50%", 1000, 501, 0, True),
        ("0.1%", 10_000, 11, 0, True),
        ("100%", 10_000, 10_000, 0, False),
    ],
)
def test_a_share_is_judged_after_a_thousand_documents_and_what_is_left_out_does_not_count(
    text, records, rejected, left_out, is_too_many
):
    limit, counts = RejectionLimit.parse(text), Counts(records, 0, rejected, left_out=left_out)
    if is_too_many:
        with pytest.raises(TextcatError, match=f"{rejected - left_out:,} of {records:,} documents .*--max-rejected"):
            limit.check(counts)
    else:
        limit.check(counts)


def tag(model, inputs, out, limit, jobs=1):
    plan = make_plan(model, inputs, READ, OUTPUT, jobs=jobs, max_rejected=limit)
    return tag_to_folder(plan, out, max_records=SHARD_RECORDS)


def test_a_run_with_a_limit_stops_keeps_its_shards_and_ends_as_one_without(model, archive, out, undisturbed):
    with pytest.raises(TextcatError, match=r"a.jsonl:\d+: .* By now, 6 of \d+ documents are rejected"):
        tag(model, archive, out, 5)
    n_written = [len(path.read_bytes().splitlines()) for path in sorted(out.glob("part-*.jsonl"))]
    assert 1 <= len(n_written) < 20
    assert 5 < len((out / "_rejected.jsonl").read_bytes().splitlines()) < 12
    tag(model, archive, out, 400)
    assert written(out) == undisturbed


def test_rejections_of_earlier_runs_do_not_count(model, tmp_path):
    (tmp_path / "in").mkdir()
    out = tmp_path / "out"
    for number in range(3):
        lines = ["{", "{", json.dumps({"id": f"{number}", "text": "wheat"})]
        (tmp_path / "in" / f"{number}.jsonl").write_text("\n".join(lines))
        assert tag(model, [tmp_path / "in"], out, 2).counts.rejected == 2 * (number + 1)


def test_many_jobs_stop_where_one_does(model, archive, tmp_path):
    stopped = []
    for jobs in (1, 2):
        with pytest.raises(TextcatError) as error:
            tag(model, archive, tmp_path / str(jobs), 7, jobs)
        stopped.append(str(error.value))
    assert stopped[0] == stopped[1]


def test_without_a_limit_nothing_stops_a_run(model, archive, out, undisturbed):
    run(model, archive, out)
    assert written(out) == undisturbed


def test_a_stream_and_files_that_are_written_back_have_the_limit_too(model, archive, tmp_path):
    stream, plan = io.BytesIO(), make_plan(model, archive, READ, OUTPUT, jobs=1, max_rejected=3)
    with pytest.raises(TextcatError, match="--max-rejected 3 allows"):
        tag_to_stream(plan, stream, on_rejection=lambda one: None)
    assert stream.getvalue()
    (tmp_path / "in").mkdir()
    for number in range(4):
        news = g2_message(g2_item(1, BODY_OF_DATA)).encode()
        (tmp_path / "in" / f"{number}.xml").write_bytes(news)
        (tmp_path / "in" / f"{number}.xml.gz").write_bytes(gzip.compress(news * 50)[:-20])
    plan = make_plan(model, [tmp_path / "in"], READ, OUTPUT, jobs=1, max_rejected=1)
    with pytest.raises(TextcatError, match=r"[234] of .* documents are rejected, more than --max-rejected 1"):
        write_back(plan, tmp_path / "out", str(tmp_path / "in"))


def test_further_items_that_cannot_be_told_apart_count_as_rejected(model, tmp_path):
    items = [json.dumps({"uri": f"u{i}", "body_text": "Tin rose."}) for i in range(1, 101)]
    items[9] = '{"uri": "u10", "body_text": "Tin'
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.json").write_text(f"[{', '.join(items)}]")
    plan = make_plan(model, [tmp_path / "in"], READ._replace(format="ninjs"), OUTPUT, jobs=1, max_rejected="50")
    with pytest.raises(TextcatError, match="90 of 99 documents are rejected"):
        tag_to_folder(plan, tmp_path / "out")
    with pytest.raises(TextcatError, match="90 of 99 documents are rejected"):
        write_back(plan, tmp_path / "back", str(tmp_path / "in"))
