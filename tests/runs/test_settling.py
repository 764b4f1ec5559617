"""The former documents of a file go when what replaces them has been read to its end, and not before."""

import errno
import json
import os
import random
import shutil
from collections import Counter
from contextlib import suppress
from datetime import timedelta

import pytest
from archive_runs import run
from attacks.histories import Fault
from interrupted_runs import EVERY, NOW, Killed
from news_versions import item, write_items

from textcat.reading import InputSettings
from textcat.runs.records import read_log
from textcat.tagging.duplicates import find_duplicates
from textcat.tagging.output import OutputSettings
from textcat.tagging.shards import read_tags

pytestmark = pytest.mark.sampled  # some of the steps at which a run may be killed

READ = InputSettings(block_bytes=400)  # some eight documents
WORDS = ("Wheat", "Gold", "Crude oil", "Corn")


def put(path, name, n=16, ns=1):
    """Write a file of documents that have the name in their ids."""
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = [{"id": f"{name}-{i}", "text": f"{WORDS[i % 4]} rose."} for i in range(n)]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines) + "{\n")
    os.utime(path, ns=(ns * 10**9, ns * 10**9))


def tag(model, folder, out, **options):
    return run(model, [folder], out, read=READ, **options)


def names(out):
    """Return how many documents of each name have a row, and how many lines that were rejected there are of each."""
    tags = [tags.id.partition("-")[0] for tags in read_tags(out)]
    path = out / "_rejected.jsonl"
    lines = [json.loads(line) for line in path.read_bytes().splitlines()] if path.exists() else []
    return dict(Counter(tags)), dict(Counter(os.path.basename(line["source"]) for line in lines))


def check_counts(out, summary, shows_counted=True):
    tagged, rejected = names(out)
    counts = summary.counts
    assert (counts.tagged, counts.rejected) == (sum(tagged.values()), sum(rejected.values()))
    assert counts.records == counts.tagged + counts.rejected
    topics = Counter(topic for tags in read_tags(out) for topic in tags.topics)
    assert not shows_counted or +counts.topics == topics
    assert min(counts.topics.values(), default=0) >= 0


@pytest.fixture
def killed_anywhere(tmp_path, kill_at):
    """Return a function that plays a story as often as its killed run has steps, each time in a folder of its own.

    `before(folder, out)` sets the scene, once, `killed(folder, out)` is the run that is killed, `after(folder, out)` is
    what then happens, and what must be.
    """

    def play(before, killed, after, every=1):
        steps, place = [10**6], 0
        scene, stage = tmp_path / "scene", tmp_path / "stage"
        folder, out = stage / "in", stage / "out"
        kill_at[:] = [-1, 0]
        before(folder, out)
        stage.rename(scene)
        while place <= steps[0]:
            shutil.rmtree(stage, ignore_errors=True)
            shutil.copytree(scene, stage, symlinks=True)
            kill_at[:] = [place or -1, 0]
            with suppress(Killed):
                killed(folder, out)
            if not place:
                steps[0] = kill_at[1]
            kill_at[:] = [-1, 0]
            after(folder, out)
            place += every * EVERY
        assert steps[0] > 20

    return play


def two_files(model, folder, out, **options):
    put(folder / "a.jsonl", "a")
    put(folder / "f.jsonl", "old")
    tag(model, folder, out, **options)
    put(folder / "f.jsonl", "new", 20, ns=2)


FORMS = {"jsonl": OutputSettings(), "csv": OutputSettings("csv", "zst"), "top": OutputSettings(top=1)}


@pytest.mark.parametrize("form", FORMS)
def test_a_file_that_is_deleted_after_a_run_was_killed_that_read_it_again_keeps_one_of_its_versions(
    model, killed_anywhere, form
):
    seen = set()

    def after(folder, out):
        (folder / "f.jsonl").unlink()
        summary = tag(model, folder, out, write=FORMS[form])
        tagged, rejected = names(out)
        assert tagged in ({"a": 16, "old": 16}, {"a": 16, "new": 20})
        assert rejected == {"a.jsonl": 1, "f.jsonl": 1}
        seen.update(tagged)
        check_counts(out, summary, FORMS[form].shows_counted)
        assert not tag(model, folder, out, write=FORMS[form]).growth

    killed_anywhere(
        lambda folder, out: two_files(model, folder, out, write=FORMS[form]),
        lambda folder, out: tag(model, folder, out, write=FORMS[form]),
        after,
        1 if form == "jsonl" else 2,
    )
    assert seen == {"a", "old", "new"}


def test_a_file_that_changes_once_more_has_its_last_version_only(model, killed_anywhere):
    def after(folder, out):
        put(folder / "f.jsonl", "newest", 5, ns=3)
        summary = tag(model, folder, out)
        assert names(out) == ({"a": 16, "newest": 5}, {"a.jsonl": 1, "f.jsonl": 1})
        check_counts(out, summary)

    killed_anywhere(lambda folder, out: two_files(model, folder, out), lambda f, out: tag(model, f, out), after, 2)


def test_a_file_that_changed_and_was_renamed_is_read_under_its_new_name_and_has_no_part_of_it_twice(
    model, killed_anywhere
):
    def after(folder, out):
        (folder / "f.jsonl").rename(folder / "g.jsonl")
        summary = tag(model, folder, out)
        tagged, rejected = names(out)
        # A file that was changed and renamed between two runs is gone, and a new one.
        assert tagged in ({"a": 16, "old": 16, "new": 20}, {"a": 16, "new": 20})
        assert sum(rejected.values()) == len(tagged)
        check_counts(out, summary)

    killed_anywhere(lambda folder, out: two_files(model, folder, out), lambda f, out: tag(model, f, out), after, 2)


def test_a_file_that_is_replaced_by_a_renamed_one_has_the_rows_of_that_one_only(model, killed_anywhere):
    def before(folder, out):
        two_files(model, folder, out)
        put(folder / "g.jsonl", "g", 9)

    def after(folder, out):
        (folder / "g.jsonl").rename(folder / "f.jsonl")
        summary = tag(model, folder, out)
        assert names(out)[0] == {"a": 16, "g": 9}
        check_counts(out, summary)
        (folder / "f.jsonl").unlink()
        tag(model, folder, out)
        assert names(out)[0] == {"a": 16, "g": 9}

    killed_anywhere(before, lambda folder, out: tag(model, folder, out), after, 3)


def test_two_files_that_change_places_have_their_rows_once(model, killed_anywhere):
    def before(folder, out):
        put(folder / "a.jsonl", "a")
        put(folder / "b.jsonl", "b", 9, ns=2)
        tag(model, folder, out)
        (folder / "a.jsonl").rename(folder / "c.jsonl")
        (folder / "b.jsonl").rename(folder / "a.jsonl")
        (folder / "c.jsonl").rename(folder / "b.jsonl")

    def after(folder, out):
        check_counts(out, tag(model, folder, out))
        assert names(out) == ({"a": 16, "b": 9}, {"a.jsonl": 1, "b.jsonl": 1})

    killed_anywhere(before, lambda folder, out: tag(model, folder, out), after, 3)


def test_a_run_that_is_killed_twice_between_changes_loses_nothing(model, tmp_path, kill_at):
    draw, folder, out = random.Random(3), tmp_path / "in", tmp_path / "out"
    for number in range(6):
        shutil.rmtree(folder, ignore_errors=True)
        shutil.rmtree(out, ignore_errors=True)
        kill_at[:] = [-1, 0]
        two_files(model, folder, out)
        put(folder / "g.jsonl", "g", 30)
        for ns in range(3, 6):
            kill_at[:] = [draw.randrange(2, 60), 0]
            with suppress(Killed):
                tag(model, folder, out)
            kill_at[:] = [-1, 0]
            put(folder / "f.jsonl", f"new{ns}", draw.randrange(1, 30), ns)
        (folder / "f.jsonl").unlink()
        check_counts(out, tag(model, folder, out))
        tagged, _ = names(out)
        assert (tagged.pop("a"), tagged.pop("g"), len(tagged)) == (16, 30, 1), number


# --- what cannot be read, and embargoes ------------------------------------------------------------------------------


@pytest.mark.parametrize("is_gone", [False, True])
def test_a_folder_that_can_be_listed_again_is_rejected_no_more_however_the_run_is_killed(
    model, killed_anywhere, faults, is_gone
):
    def before(folder, out):
        put(folder / "a.jsonl", "a")
        put(folder / "d" / "b.jsonl", "b")
        faults[str(folder / "d")] = Fault(errno.EACCES)
        tag(model, folder, out)
        assert names(out) == ({"a": 16}, {"a.jsonl": 1, "d": 1})
        faults.clear()

    def after(folder, out):
        if not is_gone:
            faults[str(folder / "d")] = Fault(errno.EACCES)  # it fails once more
            check_counts(out, tag(model, folder, out))
            assert names(out)[1]["d"] == 1
            faults.clear()
        else:
            shutil.rmtree(folder / "d")
        check_counts(out, tag(model, folder, out))
        tagged, rejected = names(out)
        assert "d" not in rejected
        assert tagged == {"a": 16, "b": 16} or (is_gone and tagged == {"a": 16})

    killed_anywhere(before, lambda folder, out: tag(model, folder, out), after, 3)


def test_the_rejection_of_what_cannot_be_read_outlasts_rows_of_its_name(model, killed_anywhere):
    def before(folder, out):
        put(folder / "a.jsonl", "a")
        tag(model, folder, out)
        (folder / "a.jsonl").rename(folder / "y.jsonl")
        (folder / "a.jsonl").symlink_to("nowhere")
        tag(model, folder, out)
        put(folder / "y.jsonl", "new", ns=2)  # whose rows had the name a.jsonl
        put(folder / "z.jsonl", "z", 20)

    def after(folder, out):
        (folder / "z.jsonl").unlink()
        check_counts(out, tag(model, folder, out))
        tagged, rejected = names(out)
        tagged.pop("z", None)
        rejected.pop("z.jsonl", None)
        assert (tagged, rejected) == ({"new": 16}, {"a.jsonl": 1, "y.jsonl": 1})

    killed_anywhere(before, lambda folder, out: tag(model, folder, out), after, 3)


def test_a_file_that_failed_and_is_read_again_and_deleted_keeps_what_was_read(model, killed_anywhere, faults):
    def before(folder, out):
        put(folder / "a.jsonl", "a")
        put(folder / "f.jsonl", "f", 30)
        faults[str(folder / "f.jsonl")] = Fault(errno.EIO, 900)
        tag(model, folder, out)
        faults.clear()

    def after(folder, out):
        (folder / "f.jsonl").unlink()
        check_counts(out, tag(model, folder, out))
        tagged, _ = names(out)
        assert 0 < tagged["f"] <= 30
        assert len({tags.id for tags in read_tags(out)}) == sum(tagged.values())

    killed_anywhere(before, lambda folder, out: tag(model, folder, out), after, 3)


def test_news_whose_embargo_ends_is_there_once_or_not_yet_if_its_file_is_deleted(model, killed_anywhere, clock):
    def before(folder, out):
        clock[0] = NOW.timestamp()
        later = (NOW + timedelta(hours=1)).isoformat()
        items = [item(f"urn:{i}", 1) for i in range(9)]
        write_items(folder / "a.jsonl", [*items, item("urn:late", 1) | {"embargoed": later}])
        write_items(folder / "b.jsonl", [item("urn:8", 2), item("urn:other", 1)])
        tag(model, folder, out)
        clock[0] += 3600

    def after(folder, out):
        (folder / "a.jsonl").unlink()
        summary = tag(model, folder, out)
        ids = sorted(tags.id for tags in read_tags(out))
        expected = sorted([*(f"urn:{i}" for i in range(9)), "urn:other"])
        assert ids in (expected, sorted([*expected, "urn:late"]))
        check_counts(out, summary)

    killed_anywhere(before, lambda folder, out: tag(model, folder, out), after, 3)


def test_older_news_counts_again_when_the_newer_one_goes_however_the_run_is_killed(model, killed_anywhere):
    def before(folder, out):
        write_items(folder / "a.jsonl", [item(f"urn:{i}", 1) for i in range(9)])
        write_items(folder / "b.jsonl", [item(f"urn:{i}", 2) for i in range(3, 12)])
        tag(model, folder, out)
        write_items(folder / "b.jsonl", [item("urn:5", 2), item("urn:7", 3)], ns=10**18)

    def after(folder, out):
        for _ in range(2):
            summary = tag(model, folder, out)
            assert sorted(tags.id for tags in read_tags(out)) == [f"urn:{i}" for i in range(9)]
            check_counts(out, summary)
            assert summary.counts.left_out == 2

    killed_anywhere(before, lambda folder, out: tag(model, folder, out), after, 3)


@pytest.mark.parametrize("goes", ["before", "after the kill", "with the newest one"])
def test_if_the_file_of_the_next_older_version_is_gone_the_one_before_counts_however_the_run_is_killed(
    model, killed_anywhere, goes
):
    def before(folder, out):
        for version, name in enumerate("abc", 1):
            write_items(folder / f"{name}.jsonl", [item(f"urn:{i}", version) for i in range(version, 9)])
            tag(model, folder, out)
        if goes == "before":
            (folder / "b.jsonl").unlink()
            tag(model, folder, out)
        write_items(folder / "c.jsonl", [item("urn:c", 1)], ns=10**18)
        if goes == "with the newest one":
            (folder / "b.jsonl").unlink()

    def after(folder, out):
        (folder / "b.jsonl").unlink(missing_ok=True)
        for _ in range(2):
            summary = tag(model, folder, out)
            found = {tags.id: os.path.basename(tags.source)[0] for tags in read_tags(out)}
            assert sorted(found) == [*(f"urn:{i}" for i in range(1, 9)), "urn:c"]
            assert (found["urn:1"], found["urn:2"], found["urn:c"]) == ("a", "b", "c")
            # If it was read again before it was deleted, its rows stay.
            assert {found[f"urn:{i}"] for i in range(3, 9)} in ({"a"}, {"b"} if goes == "after the kill" else {"a"})
            check_counts(out, summary)
        assert not summary.growth

    killed_anywhere(before, lambda folder, out: tag(model, folder, out), after, 2)


# --- duplicates ------------------------------------------------------------------------------------------------------


def test_a_version_that_was_replaced_is_in_no_group_of_duplicates(tmp_path, kill_at):
    folder, out = tmp_path / "in", tmp_path / "groups.jsonl"
    text = "Wheat exports from the southern ports rose to twelve million tonnes this season, the traders said today."

    def write(name, texts, ns):
        (folder / name).write_text("".join(json.dumps({"id": id_, "text": text}) + "\n" for id_, text in texts))
        os.utime(folder / name, ns=(ns * 10**9, ns * 10**9))

    def find():
        find_duplicates(folder, out, input_settings=READ, jobs=1, max_records=2)
        lines = map(json.loads, out.read_bytes().splitlines())
        return {line["id"]: line["group"] for line in lines}

    for place in range(0, 60, 7):
        shutil.rmtree(folder, ignore_errors=True)
        shutil.rmtree(tmp_path / "groups.jsonl.sketches", ignore_errors=True)
        folder.mkdir()
        write("a.jsonl", [("a1", text), ("a2", f"{text} It is told by others, too, in the same words as there.")], 1)
        write("b.jsonl", [("b1", text), ("b2", "Gold fell.")], 1)
        assert find().keys() >= {"b1"}
        write("a.jsonl", [("a3", "Silver fell."), ("a4", "Nothing is known of this.")], 2)
        write("c.jsonl", [("c1", text)], 1)
        kill_at[:] = [place or -1, 0]
        with suppress(Killed):
            find()
        kill_at[:] = [-1, 0]
        assert find() == {"c1": f"{folder / 'b.jsonl'}:1"}


# --- the journal -----------------------------------------------------------------------------------------------------


def test_the_journal_is_replayed_to_what_the_run_has_done(model, tmp_path):
    folder, out = tmp_path / "in", tmp_path / "out"
    two_files(model, folder, out)
    tag(model, folder, out)
    log = read_log(out, "")
    first, second = log.generations
    assert (first.is_finished, second.is_finished) == (True, True)
    stale = [(reading.generation, os.path.basename(reading.name)) for reading, _ in second.settled.stale]
    assert stale == [(0, "f.jsonl")]
    assert log.rejections[0] == (out / "_rejected.jsonl").stat().st_size
    assert [span.generation for span in log.rejected_spans] == [0, 1]
    assert {log.generation_of[path.name] for path in out.glob("part-*")} == {0, 1}


def test_a_line_that_is_no_record_is_damage(model, tmp_path):
    from textcat.base.errors import TextcatError
    from textcat.base.journal import journal_line

    folder, out = tmp_path / "in", tmp_path / "out"
    put(folder / "a.jsonl", "a")
    tag(model, folder, out)
    journal = (out / "_journal.jsonl").read_bytes()
    for line in ({"record": "unknown"}, {"shard": "part-00009.jsonl"}, {"record": "sums", "sums": 5}, {}):
        (out / "_journal.jsonl").write_bytes(journal + journal_line(line))
        with pytest.raises(TextcatError, match="is damaged"):
            tag(model, folder, out)


def test_files_whose_names_are_not_utf_8_are_known_when_an_archive_has_grown(model, tmp_path):
    folder, out = tmp_path / "in", tmp_path / "out"
    put(folder / "a.jsonl", "a")
    try:
        os.rename(folder / "a.jsonl", os.fsencode(folder) + b"/\xff.jsonl")
    except OSError:
        pytest.skip("system: names of files are UTF-8")
    tag(model, folder, out)
    put(folder / "b.jsonl", "b")
    for _ in range(2):
        tag(model, folder, out)
        assert names(out)[0] == {"a": 16, "b": 16}
    put(folder / "c.jsonl", "new", ns=2)
    os.rename(folder / "c.jsonl", os.fsencode(folder) + b"/\xff.jsonl")
    tag(model, folder, out)
    assert names(out)[0] == {"new": 16, "b": 16}
    put(folder / "d.jsonl", "d")
    os.rename(folder / "d.jsonl", os.fsencode(folder) + b"/\xfe.jsonl")  # differs only in the byte that is not UTF-8
    tag(model, folder, out)
    assert names(out)[0] == {"new": 16, "b": 16, "d": 16}
    put(folder / "e.jsonl", "e", ns=3)
    os.rename(folder / "e.jsonl", os.fsencode(folder) + b"/\xfe.jsonl")
    tag(model, folder, out)
    assert names(out)[0] == {"new": 16, "b": 16, "e": 16}
