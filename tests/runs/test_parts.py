"""Parts of an archive that several processes tag: merged, they are the folder that one run writes, to the byte."""

import json
import os
import shutil
from contextlib import suppress
from pathlib import Path

import pytest
from archive_runs import SHARD_RECORDS, make_archive, run
from interrupted_runs import EVERY, Killed
from mixed_archive import WAYS_TO_WRITE, make_mixed_archive
from news_versions import make_news

from textcat.base.errors import TextcatError
from textcat.base.journal import journal_line, read_journal
from textcat.reading import InputSettings, Share, changes, find_sources, read_batches
from textcat.reading.shares import Stretches
from textcat.tagging.merge import merge_parts
from textcat.tagging.planning import OUTPUT, make_plan
from textcat.tagging.run import tag_to_folder

READ = InputSettings(block_bytes=3000)


@pytest.fixture(scope="module")
def inputs(tmp_path_factory):
    return make_mixed_archive(tmp_path_factory.mktemp("mixed"))


@pytest.fixture(scope="module")
def three_parts(model, inputs, tmp_path_factory):
    folder = tmp_path_factory.mktemp("parts")
    return tag_parts(model, inputs, folder, 3), folder


def tag_part(model, inputs, out, part, read=READ, write=OUTPUT, **options):
    plan = make_plan(model, inputs, read, write, jobs=1, part=part)
    return tag_to_folder(plan, out, max_records=SHARD_RECORDS, **options)


def tag_parts(model, inputs, folder, n, read=READ, write=OUTPUT):
    parts = [folder / f"part-{number}" for number in range(1, n + 1)]
    for number, part in enumerate(parts, 1):
        tag_part(model, inputs, part, f"{number}/{n}", read, write)
    return parts


def merge(parts, out):
    return merge_parts(parts, out, max_records=SHARD_RECORDS)


def content(out):
    """All files of a folder, but its lock, with their bytes."""
    return {path.name: path.read_bytes() for path in out.iterdir() if path.name != ".lock"}


# --- the same bytes --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("way", WAYS_TO_WRITE)
def test_merged_parts_are_the_bytes_of_one_run(model, inputs, tmp_path, way):
    write = WAYS_TO_WRITE[way]
    whole = run(model, inputs, tmp_path / "whole", READ, write)
    parts = tag_parts(model, inputs, tmp_path, 3, write=write)
    summary = merge(reversed(parts), tmp_path / "merged")
    assert content(tmp_path / "merged") == content(tmp_path / "whole")
    assert b'"replaced"' in (tmp_path / "merged" / "_journal.jsonl").read_bytes()  # rows of older news
    assert summary.counts == whole.counts
    assert (summary.topics, summary.drifts, summary.shards) == (whole.topics, whole.drifts, whole.shards)
    n_documents = [json.loads((part / "_journal.jsonl").read_bytes().splitlines()[1])["read"] for part in parts]
    assert len({*n_documents}) == 3


@pytest.mark.parametrize(("n", "block_bytes"), [(1, 3000), (2, 1), (7, 3000), (40, 1 << 20)])
def test_any_number_of_parts_has_each_document_once(inputs, n, block_bytes):
    settings = InputSettings(block_bytes=block_bytes)
    sources = find_sources(inputs, settings)
    whole = list(read_batches(sources, settings, share=Share()))
    of_parts = [list(read_batches(sources, settings, share=Share(k, n))) for k in range(1, n + 1)]
    merged = sorted((batch for part in of_parts for batch in part), key=lambda batch: batch.number)
    assert [(batch.number, batch.blocks, batch.end) for batch in merged] == [
        (batch.number, batch.blocks, batch.end) for batch in whole
    ]
    plain = [block for batch in read_batches(sources, settings) for block in batch.blocks]
    assert [block for batch in whole for block in batch.blocks] == plain


def test_parts_of_one_file_and_of_many_have_equal_shares(tmp_path):
    one = make_archive(tmp_path / "one" / "a.jsonl", 600)
    for number in range(300):
        make_archive(tmp_path / "many" / f"{number}.jsonl", 2, seed=number)
    settings = InputSettings(block_bytes=2000)
    for inputs in ([one], [tmp_path / "many"], [tmp_path / "many", one]):
        sources = find_sources(inputs, settings)
        sizes = [sum(batch.size for batch in read_batches(sources, settings, share=Share(k, 3))) for k in (1, 2, 3)]
        assert max(sizes) < 1.3 * min(sizes)


def test_a_file_that_lies_in_one_share_is_opened_for_this_share_only(tmp_path):
    for number in range(60):
        make_archive(tmp_path / "in" / f"{number:02}.jsonl", 3, seed=number)
    sources, settings, opened = find_sources([tmp_path / "in"], READ), READ, []

    def counted(entries):
        for entry in entries():
            yield entry._replace(open=lambda entry=entry: opened.append(entry.name) or entry.open())

    counting = [source._replace(entries=lambda source=source: counted(source.entries)) for source in sources]
    for number in range(1, 4):
        list(read_batches(counting, settings, share=Share(number, 3)))
    assert len({*opened}) == 60
    assert len(opened) <= 60 + 2 * 3  # those at the border of two shares, and those at which a share ends


def test_a_batch_belongs_to_one_of_the_shares_in_which_its_files_lie(inputs):
    stretches = Stretches(find_sources(inputs, READ), READ.block_bytes)
    shares = [Share(number, 5) for number in range(1, 6)]
    for batch in read_batches(find_sources(inputs, READ), READ, share=Share()):
        owner = shares[stretches.owner(batch.number, 5) - 1]
        assert batch.number.stretch in stretches.range_of(owner)


# --- later runs ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("is_there", [False, True])
def test_parts_are_merged_into_the_folder_that_a_link_leads_to(three_parts, tmp_path, is_there):
    if is_there:
        (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    merge(three_parts[0], tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    merge(three_parts[0], tmp_path / "plain")
    assert content(tmp_path / "real") == content(tmp_path / "plain")


def test_a_part_of_an_input_that_grows_must_be_tagged_again(model, tmp_path, caplog):
    path = make_archive(tmp_path / "a.jsonl", 60)
    more = [b'{"text": "wheat"}\n']

    def append(reached):
        with path.open("ab") as file:
            file.write(more.pop() if more else b"")

    tag_part(model, [path], tmp_path / "out", "1/2", progress=append)
    assert "a.jsonl grew" in caplog.text
    assert "--restart" in caplog.text


def test_a_merged_folder_grows_as_one_run_does(model, tmp_path):
    folder = make_news(tmp_path / "in", n_items=20, n_files=6)
    run(model, [folder], tmp_path / "whole", READ)
    merge(tag_parts(model, [folder], tmp_path, 3), tmp_path / "merged")
    assert run(model, [folder], tmp_path / "merged", READ).before.finished
    assert content(tmp_path / "merged") == content(tmp_path / "whole")
    make_archive(folder / "new.jsonl", 20)
    make_archive(folder / "001.jsonl", 5)
    for out in ("whole", "merged"):
        run(model, [folder], tmp_path / out, READ)
    assert content(tmp_path / "merged") == content(tmp_path / "whole")


def test_a_merged_archive_of_many_formats_is_finished_as_one_run_is(model, inputs, three_parts, tmp_path):
    run(model, inputs, tmp_path / "whole", READ)
    merge(three_parts[0], tmp_path / "merged")
    for out in ("whole", "merged"):
        assert run(model, inputs, tmp_path / out, READ).before.finished
    assert content(tmp_path / "merged") == content(tmp_path / "whole")


def test_a_merged_run_knows_files_that_were_rejected_as_one_run_does(model, tmp_path):
    folder = tmp_path / "in"
    make_archive(folder / "a.jsonl", 30)
    read = READ._replace(max_bytes=100_000, for_files=(("*skipped*", (("skip", True),)),))
    (folder / "b").write_bytes(b"\0" * 5000)
    (folder / "c.parquet").write_bytes(b"PAR1")
    (folder / "d.txt").write_bytes(b"Wheat " * 50_000)
    (folder / "e.tar").write_bytes(b"ustar")
    (folder / "f.jsonl.gz").write_bytes(b"\x1f\x8b no gzip")
    (folder / "skipped.txt").write_bytes(b"Wheat")
    run(model, [folder], tmp_path / "whole", read)
    merge(tag_parts(model, [folder], tmp_path, 2, read), tmp_path / "merged")
    assert content(tmp_path / "merged") == content(tmp_path / "whole")
    rejected = (tmp_path / "whole" / "_rejected.jsonl").read_text()
    assert all(f"/{name}" in rejected for name in ("b", "c.parquet", "d.txt", "e.tar", "f.jsonl.gz"))


def test_parts_of_a_folder_with_more_files_than_are_listed_are_merged(model, inputs, tmp_path, monkeypatch):
    monkeypatch.setattr(changes, "MOST_FILES", 5)
    run(model, inputs, tmp_path / "whole", READ)
    merge(tag_parts(model, inputs, tmp_path, 3), tmp_path / "merged")
    assert content(tmp_path / "merged") == content(tmp_path / "whole")


@pytest.mark.parametrize("n_documents", [0, 3])
def test_parts_without_a_document_are_merged_too(model, tmp_path, n_documents):
    (tmp_path / "in").mkdir()
    if n_documents:
        make_archive(tmp_path / "in" / "a.jsonl", n_documents)
    run(model, [tmp_path / "in"], tmp_path / "whole", READ)
    merge(tag_parts(model, [tmp_path / "in"], tmp_path, 7), tmp_path / "merged")
    assert content(tmp_path / "merged") == content(tmp_path / "whole")


def test_a_finished_part_has_nothing_left_to_do(model, inputs, three_parts):
    before = content(three_parts[0][1])
    assert tag_part(model, inputs, three_parts[0][1], "2/3").before.finished
    assert content(three_parts[0][1]) == before


# --- kills -----------------------------------------------------------------------------------------------------------


@pytest.mark.sampled
def test_a_part_that_was_killed_at_any_step_ends_with_the_same(model, inputs, three_parts, tmp_path, kill_at):
    out, expected = tmp_path / "out", content(three_parts[0][0])
    tag_part(model, inputs, out, "1/3")
    n_steps = kill_at[1]
    for step in range(1, n_steps + 1, 2 * EVERY):
        shutil.rmtree(out)
        kill_at[:] = [step, 0]
        with pytest.raises(Killed):
            tag_part(model, inputs, out, "1/3")
        kill_at[:] = [-1, 0]
        tag_part(model, inputs, out, "1/3")
        assert shards(content(out)) == shards(expected), step


def shards(files):
    """Those of a folder's files that do not depend on whether the run was interrupted."""
    return {name: data for name, data in files.items() if name not in ("_journal.jsonl", "_part.json")}


@pytest.mark.sampled
def test_a_merge_that_was_killed_at_any_step_leaves_nothing_half(model, inputs, three_parts, tmp_path, kill_at):
    parts = three_parts[0]
    merge(parts, tmp_path / "whole")
    n_steps, out = kill_at[1], tmp_path / "merged"
    before = [content(part) for part in parts]
    for step in range(1, n_steps + 1, 6 * EVERY):
        kill_at[:] = [step, 0]
        with suppress(Killed):
            merge(parts, out)
        kill_at[:] = [-1, 0]
        if not out.exists():
            merge(parts, out)
        assert content(out) == content(tmp_path / "whole"), step
        shutil.rmtree(out)
    assert [content(part) for part in parts] == before
    assert {path.name for path in tmp_path.iterdir()} == {"whole"}


# --- what does not fit together --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("chosen", "sentence"),
    [
        ((0, 2), r"Part 2 of 3 is missing: tag by --part 2/3"),
        ((1,), r"Parts 1, 3 of 3 are missing: tag by --part 1/3"),
        ((0, 1, 1, 2), r"Part 2/3 is there twice, in .*part-2 and in .*part-2: name each part once"),
    ],
)
def test_parts_that_are_missing_or_there_twice_are_named(three_parts, tmp_path, chosen, sentence):
    with pytest.raises(TextcatError, match=sentence):
        merge([three_parts[0][i] for i in chosen], tmp_path / "merged")
    assert not [*tmp_path.iterdir()]


def test_parts_of_other_settings_inputs_or_numbers_do_not_fit_together(model, inputs, three_parts, tmp_path):
    first, _, third = three_parts[0]
    others = {
        "--top 3": {"write": OUTPUT._replace(top=3)},
        "length of pieces 3001": {"read": READ._replace(block_bytes=3001)},
        "K/4": {"part": "2/4"},
        "b.jsonl": {"inputs": [*inputs[:2], make_archive(tmp_path / "b.jsonl", 5)]},
    }
    for number, (named, options) in enumerate(others.items()):
        out = tmp_path / str(number)
        tag_part(**{"model": model, "inputs": inputs, "part": "2/3"} | options, out=out)
        with pytest.raises(TextcatError, match=f"do not fit together.*{named}"):
            merge([first, out, third], tmp_path / "merged")


def test_a_part_that_is_unfinished_damaged_or_none_is_named(model, three_parts, tmp_path):
    first, second, third = three_parts[0]
    copy = tmp_path / "copy"
    for name, content_, sentence in (
        ("_journal.jsonl", lambda data: b"".join(data.splitlines(keepends=True)[:-1]), "unfinished: give its command"),
        ("part-00000.jsonl", lambda data: data[:-1], "missing or changed"),
        ("_part.json", lambda data: b"{}", "_part.json is missing or damaged"),
    ):
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(first, copy)
        (copy / name).write_bytes(content_((copy / name).read_bytes()))
        with pytest.raises(TextcatError, match=sentence):
            merge([copy, second, third], tmp_path / "merged")
    for folder in (tmp_path / "none", tmp_path):
        with pytest.raises(TextcatError, match="has no part of a run"):
            merge([folder, second, third], tmp_path / "merged")
    run(model, [make_archive(tmp_path / "a.jsonl", 5)], tmp_path / "whole")
    with pytest.raises(TextcatError, match="has a whole run, not a part"):
        merge([tmp_path / "whole", second, third], tmp_path / "merged")
    with pytest.raises(TextcatError, match="exists: name a new folder"):
        merge(three_parts[0], tmp_path / "whole")
    with pytest.raises(TextcatError, match=r"is inside the part .*part-1: name a folder beside"):
        merge(three_parts[0], first / "merged")


def test_tags_are_not_merged_into_an_input_that_would_be_read_with_them(model, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("in").mkdir()
    make_archive(Path("in", "a.jsonl"), 5)
    parts = [path.resolve() for path in tag_parts(model, ["in"], Path(), 2)]
    Path("link").symlink_to("in")
    monkeypatch.chdir(parts[0])
    for out in (tmp_path / "in" / "tags", tmp_path / "link" / "new" / "tags"):
        with pytest.raises(TextcatError, match=r"and the input .*/in overlap"):
            merge(parts, out)
    assert [*map(str, (tmp_path / "in").iterdir())] == [str(tmp_path / "in" / "a.jsonl")]


def test_parts_between_which_an_input_changed_unseen_are_refused_and_nothing_is_left(three_parts, tmp_path):
    first, second, third = three_parts[0]
    shutil.copytree(first, tmp_path / "first")
    _, *lines = read_journal(first / "_journal.jsonl").lines
    lines[0]["batches"][0]["number"][1] += 1  # as if a batch before it were missing
    header = (first / "_journal.jsonl").read_bytes().splitlines(keepends=True)[0]
    (tmp_path / "first" / "_journal.jsonl").write_bytes(header + b"".join(map(journal_line, lines)))
    with pytest.raises(TextcatError, match="an input changed while they were tagged: start all parts again"):
        merge([tmp_path / "first", second, third], tmp_path / "merged")
    assert [path.name for path in tmp_path.iterdir()] == ["first"]


def test_a_part_goes_on_only_as_the_same_part_of_the_same_inputs(model, tmp_path):
    archive = make_archive(tmp_path / "a.jsonl", 20)
    tag_part(model, [archive], tmp_path / "out", "1/2")
    for part in ("2/2", "1/3", ""):
        with pytest.raises(TextcatError, match="began with --part 1/2"):
            tag_part(model, [archive], tmp_path / "out", part)
    os.utime(archive, ns=(1, 1))
    with pytest.raises(TextcatError, match="has changed since the run"):
        tag_part(model, [archive], tmp_path / "out", "1/2")


@pytest.mark.parametrize("part", ["3/2", "0/2", "1", "a/b", "1/-2", "1/2/3", "/", "1/" + "9" * 5000])
def test_a_part_that_there_is_not_is_refused(model, tmp_path, part):
    with pytest.raises(TextcatError, match="There is no part"):
        tag_part(model, [make_archive(tmp_path / "a.jsonl", 5)], tmp_path / "out", part)


@pytest.mark.parametrize("n", [10_001, 99_999_999_999])
def test_more_parts_than_there_may_be_are_refused(n):
    with pytest.raises(TextcatError, match=f"at most 10,000 parts, not {n}"):
        Share.parse(f"1/{n}")
    assert Share.parse("1/10000") == (1, 10_000)


def test_a_pipe_is_not_tagged_in_parts(model, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(TextcatError, match="A pipe cannot be tagged in parts"):
        tag_part(model, [tmp_path / "pipe"], tmp_path / "out", "1/2")
