"""Archives that grow: only what is new or has changed is read, and every document has its tags once."""

import io
import json
import os
import random
import shutil
import tarfile
from collections import Counter
from contextlib import suppress
from types import SimpleNamespace

import pytest
from archive_runs import make_archive, rows, run
from read_sources import zipped

import textcat
from textcat.base import disk
from textcat.base.errors import TextcatError
from textcat.reading import InputSettings
from textcat.runs.files import KnownFile, ListedFile
from textcat.runs.growth import Growth, find_growth
from textcat.runs.records import Reading
from textcat.tagging.output import OutputSettings
from textcat.tagging.shards import read_tags

FORMS = {
    "jsonl": OutputSettings(),
    "zst": OutputSettings(compress="zst"),
    "csv": OutputSettings(to="csv"),
    "per document": OutputSettings(to="csv", per_document=True, compress="zst"),
    "parquet": OutputSettings(to="parquet"),
    "all": OutputSettings(all_topics=True),
}


@pytest.fixture(scope="module")
def model(newswire_model):
    return newswire_model


@pytest.fixture
def folder(tmp_path):
    for number in range(6):
        make_archive(tmp_path / "in" / f"{number}.jsonl", 12, seed=number)
    return tmp_path / "in"


@pytest.fixture
def out(tmp_path):
    return tmp_path / "out"


def change(path, seed=99, n=9):
    """Write another content, at another time."""
    before = path.stat().st_mtime_ns if path.exists() else 0
    make_archive(path, n, seed)
    os.utime(path, ns=(before + 10**9, before + 10**9))


def reads(monkeypatch):
    """Return a list that gets the name of each file that is opened for its documents."""
    from textcat.reading import source_reader

    opened, format_of = [], source_reader.format_of

    def noting(stream, name, *arguments):
        opened.append(os.path.basename(name))
        return format_of(stream, name, *arguments)

    monkeypatch.setattr(source_reader, "format_of", noting)
    return opened


def same_as_anew(model, inputs, out, tmp_path, **options):
    """Compare a folder with one that is written at once: the same documents, tags, rejections and counts."""
    anew = tmp_path / "anew"
    shutil.rmtree(anew, ignore_errors=True)
    new, grown = run(model, inputs, anew, **options), run(model, inputs, out, **options)
    assert sorted(read_tags(out)) == sorted(read_tags(anew))
    assert rejected(out) == rejected(anew)
    counts, expected = grown.counts, new.counts
    assert (counts.records, counts.tagged, counts.rejected) == (expected.records, expected.tagged, expected.rejected)
    assert (+counts.reasons, counts.untagged) == (+expected.reasons, expected.untagged)
    assert +counts.inputs == expected.inputs
    return grown, new


def rejected(out):
    path = out / "_rejected.jsonl"
    return sorted(path.read_bytes().splitlines()) if path.exists() else []


def test_only_new_files_are_read_into_further_shards(model, folder, out, tmp_path, monkeypatch):
    run(model, [folder], out)
    shards = {path.name: path.read_bytes() for path in out.glob("part-*")}
    make_archive(folder / "between" / "x.jsonl", 5, seed=7)
    make_archive(folder / "25.jsonl", 5, seed=8)
    opened = reads(monkeypatch)
    summary = run(model, [folder], out)
    assert set(opened) == {"x.jsonl", "25.jsonl"}
    names = tuple(str(folder / name) for name in ("25.jsonl", "between/x.jsonl"))
    assert summary.growth == Growth(new=names)
    assert {name: (out / name).read_bytes() for name in shards} == shards
    assert summary.counts.records == 82
    opened.clear()
    assert run(model, [folder], out).before.finished
    assert not opened
    same_as_anew(model, [folder], out, tmp_path)


@pytest.mark.parametrize("form", FORMS)
def test_the_tags_and_rejections_of_changed_files_are_replaced(model, folder, out, tmp_path, form):
    run(model, [folder], out, write=FORMS[form])
    for name in ("0.jsonl", "3.jsonl", "5.jsonl"):
        change(folder / name)
    (folder / "4.jsonl").write_text("{\n")
    summary = run(model, [folder], out, write=FORMS[form])
    assert [os.path.basename(name) for name in summary.growth.changed] == ["0.jsonl", "3.jsonl", "4.jsonl", "5.jsonl"]
    grown, new = same_as_anew(model, [folder], out, tmp_path, write=FORMS[form]) if form != "all" else (summary, None)
    if new is not None:
        assert +grown.counts.topics == +new.counts.topics
    else:
        assert grown.counts.records == 12 * 2 + 9 * 3 + 1
    first = next(out.glob("part-*"))
    first.write_bytes(first.read_bytes() + b"x")
    with pytest.raises(TextcatError, match="is missing or changed"):
        run(model, [folder], out, write=FORMS[form])


def test_further_shards_have_the_columns_of_the_first(model, folder, out):
    run(model, [folder], out, write=OutputSettings(to="csv"))
    line = json.dumps({"id": "dated", "text": "wheat", "date": "2026-01-01"})
    (folder / "00.jsonl").write_text(line + "\n")
    assert run(model, [folder], out, write=OutputSettings(to="csv")).growth.new
    heads = {path.read_bytes().partition(b"\n")[0] for path in out.glob("part-*")}
    assert len(heads) == 1


def test_of_several_inputs_only_those_with_news_are_read_and_none_is_said_to_be_removed(model, tmp_path, out, caplog):
    inputs = [make_archive(tmp_path / name / "a.jsonl", 4, seed=i).parent for i, name in enumerate("pqr")]
    inputs += [make_archive(tmp_path / f"alone{i}.jsonl", 4, seed=5 + i) for i in range(2)]
    run(model, inputs, out)
    make_archive(inputs[2] / "b.jsonl", 3, seed=9)
    change(inputs[4], n=5)
    caplog.clear()
    summary = run(model, inputs, out)
    assert summary.growth == Growth((str(inputs[2] / "b.jsonl"),), (str(inputs[4]),))
    assert [record.message for record in caplog.records if "removed" in record.message] == []
    same_as_anew(model, inputs, out, tmp_path)


def test_files_named_one_by_one_that_were_added_are_known_when_others_come(model, folder, out, tmp_path):
    files = sorted(folder.iterdir())
    run(model, files[:3], out)
    run(model, files[:5], out)
    assert run(model, files, out).growth == Growth((str(files[5]),))
    same_as_anew(model, files, out, tmp_path)


def test_a_file_is_known_by_its_sum_when_its_time_or_name_has_changed(model, folder, out, monkeypatch):
    run(model, [folder], out)
    os.utime(folder / "1.jsonl", ns=(1, 1))
    (folder / "2.jsonl").rename(folder / "2b.jsonl")
    opened = reads(monkeypatch)
    summary = run(model, [folder], out)
    assert summary.growth == Growth(renamed=((str(folder / "2b.jsonl"), str(folder / "2.jsonl")),))
    assert (opened, summary.counts.records) == ([], 72)
    # Under its new name it is known, too, and its documents are found under the former one.
    (folder / "2b.jsonl").rename(folder / "2c.jsonl")
    assert run(model, [folder], out).growth.renamed == ((str(folder / "2c.jsonl"), str(folder / "2b.jsonl")),)
    assert run(model, [folder], out).growth == Growth()
    change(folder / "2c.jsonl")
    summary = run(model, [folder], out)
    assert summary.growth == Growth(changed=(str(folder / "2c.jsonl"),))
    sources = Counter(os.path.basename(json.loads(row)["source"]) for row in rows(out))
    assert sources["2.jsonl"] == 0 < sources["2c.jsonl"]
    assert summary.counts.records == 69


def test_the_tags_of_files_that_are_gone_stay_and_it_is_told(model, folder, out, caplog):
    run(model, [folder], out)
    before = rows(out)
    (folder / "1.jsonl").unlink()
    summary = run(model, [folder], out)
    assert summary.growth == Growth(gone=(str(folder / "1.jsonl"),))
    assert rows(out) == before
    assert [record.message for record in caplog.records] == [
        f"1 input files are gone since the last run; their tags stay: {folder / '1.jsonl'}."
    ]
    assert run(model, [folder], out).growth == Growth()
    assert len(caplog.records) == 1


def test_an_archive_named_file_by_file_grows_by_the_files_that_are_named(model, folder, out, tmp_path):
    files = sorted(folder.iterdir())
    run(model, files[:3], out)
    change(files[1])
    summary = run(model, files, out)
    assert summary.growth == Growth(tuple(map(str, files[3:])), (str(files[1]),))
    same_as_anew(model, files, out, tmp_path)


def test_a_new_file_that_cannot_be_read_is_rejected_once(model, folder, out):
    run(model, [folder], out)
    (folder / "nowhere.jsonl").symlink_to(folder / "absent")
    (folder / "photo.bin").write_bytes(bytes(range(256)))
    summary = run(model, [folder], out)
    n = summary.counts.rejected
    assert run(model, [folder], out).counts.rejected == n
    assert sum(b"nowhere.jsonl" in line or b"photo.bin" in line for line in rejected(out)) == 2


class Killed(BaseException):
    pass


def test_whenever_the_run_is_killed_while_the_archive_changes_each_document_is_tagged_once(
    model, folder, out, tmp_path, monkeypatch
):
    draw, left = random.Random(0), [0]
    written = {name: getattr(disk, name) for name in ("write_all", "rename", "sync_folder", "truncate_file", "remove")}

    def counted(function):
        def call(*arguments):
            left[0] -= 1
            if left[0] == 0:
                raise Killed
            return function(*arguments)

        return call

    for name, function in written.items():
        monkeypatch.setattr(disk, name, counted(function))
    kills = 0
    for step in range(30):
        left[0] = draw.randrange(2, 30)
        try:
            run(model, [folder], out)
        except Killed:
            kills += 1
        names = sorted(folder.iterdir())
        what = step % 4
        if what == 0:
            make_archive(folder / f"new{step}.jsonl", draw.randrange(1, 30), seed=2000 + step)
        elif what == 1:
            change(draw.choice(names), seed=1000 + step, n=draw.randrange(1, 30))
        elif what == 2:
            draw.choice(names).rename(folder / f"renamed{step}.jsonl")
    left[0] = -1
    assert kills > 10
    run(model, [folder], out)
    written_twice = [key for key, n in Counter((tag.source, tag.position) for tag in read_tags(out)).items() if n > 1]
    assert not written_twice
    run(model, [folder], tmp_path / "anew")
    # A file that was changed and renamed between two runs is gone, and a new one: its former documents stay.
    tags, anew = (Counter((tag.id, tag.topics) for tag in read_tags(place)) for place in (out, tmp_path / "anew"))
    assert {key: tags[key] for key in anew} == anew


@pytest.mark.filterwarnings("ignore:Duplicate name")
@pytest.mark.parametrize("form", ["jsonl", "csv", "parquet"])
def test_a_tar_that_grows_by_files_that_it_has_gives_each_document_a_row_however_often_it_is_killed(
    model, out, tmp_path, monkeypatch, form
):
    path, draw, left, n = tmp_path / "a.tar", random.Random(1), [0], 0
    add = disk.write_all

    def killed(file, data):
        left[0] -= 1
        if left[0] == 0:
            raise Killed
        add(file, data)

    monkeypatch.setattr(disk, "write_all", killed)
    for step in range(7):
        with tarfile.open(path, "a" if path.exists() else "w") as tar:
            for name in draw.choices(["a.jsonl", "./a.jsonl", "b.jsonl", "#2/a.jsonl", "in.zip"], k=3):
                lines = b"".join(b'{"id": "%d", "text": "Wheat rose by %d."}\n' % (i, i) for i in range(n, n + 30))
                n += 30
                data = zipped(("a.jsonl", lines[: len(lines) // 2 + 9]), ("a.jsonl", lines[len(lines) // 2 + 9 :]))
                data = data if name == "in.zip" else lines
                info = tarfile.TarInfo(name)
                info.size = len(data)
                tar.addfile(info, io.BytesIO(data))
        os.utime(path, ns=(step * 10**9, step * 10**9))
        left[0] = draw.randrange(2, 12)
        with suppress(Killed):
            run(model, [path], out, write=FORMS[form])
    left[0] = -1
    run(model, [path], out, write=FORMS[form])
    documents = list(read_tags(out))
    assert len({(one.source, one.position) for one in documents}) == len(documents)
    same_as_anew(model, [path], out, tmp_path, write=FORMS[form])


def test_a_run_of_an_earlier_version_is_refused_when_its_inputs_have_changed(model, folder, out):
    from textcat.base.journal import journal_line, read_journal

    run(model, [folder], out)
    header, *entries = read_journal(out / "_journal.jsonl").lines
    del header["files"]
    (out / "_files-00000.jsonl").unlink()
    (out / "_journal.jsonl").write_bytes(b"".join(map(journal_line, [header, *entries])))
    assert run(model, [folder], out).before.finished
    change(folder / "1.jsonl")
    with pytest.raises(TextcatError, match=r"has changed since the run in .* began"):
        run(model, [folder], out)


def test_a_checkpoint_tells_which_files_were_read():
    first, second = ListedFile("in", 0, 0, "in/a", 1, 1), ListedFile("in", 0, 1, "in/b", 1, 1)
    alone = ListedFile("c", 1, -1, "c", 1, 1)
    for end, before, cut in [
        ((0, 0), [], []),
        ((0, 5, 1, 0, 0), [], [first]),
        ((0, 0, 0, 1, 1), [first], []),
        ((0, 0, 0, 1, 1, 2), [first], [second]),
        ((1, 0, 0, 0), [first, second], []),
        ((1, 9, 2, 0), [first, second], [alone]),
        ((2, 0, 0, 0), [first, second, alone], []),
    ]:
        files = [first, second, alone]
        assert [file for file in files if file.is_before(end)] == before
        assert [file for file in files if file.is_cut(end)] == cut


def test_the_api_goes_on_with_an_archive_that_has_grown(model, folder, out):
    textcat.tag_archive(model, folder, out, jobs=1)
    make_archive(folder / "z.jsonl", 3, seed=50)
    summary = textcat.tag_archive(model, folder, out, jobs=1, input_settings=InputSettings())
    assert summary.growth.new == (str(folder / "z.jsonl"),)


def test_the_first_document_that_a_library_reads_and_the_last_one_change_no_fact_of_a_run(
    model, tmp_path, out, monkeypatch
):
    folder = tmp_path / "in"
    make_archive(folder / "a.jsonl", 12)
    files = [folder / "a.jsonl"]
    run(model, files, out)
    (folder / "page.html").write_text("<p>Wheat exports rose</p>")
    run(model, [*files, folder / "page.html"], out)
    run(model, files, out)
    assert sum(b"Wheat" in row or b"page.html" in row for row in rows(out)) == 1
    monkeypatch.setattr("textcat.runs.inputs.installed_version", lambda name: "99")
    change(folder / "a.jsonl")
    run(model, files, out)
    with pytest.raises(TextcatError, match=r"began with lxml .*, but now has lxml 99"):
        run(model, [*files, folder / "page.html"], out)


def test_files_of_the_same_size_and_time_without_checksums_keep_their_former_names():
    def of(names):
        return {name: ListedFile("in", 0, n, name, 5, 1) for n, name in enumerate(names)}

    known = {name: KnownFile(file, Reading(0, name), ("part-00000.jsonl",)) for name, file in of("ab").items()}
    before = SimpleNamespace(known=known, blocked={}, silent=set(), again=set(), cut=[], gone=())
    work = find_growth([], of("cd"), before, InputSettings())
    assert (work.growth.gone, {file.name: file.was for file in work.files}) == ((), {"c": "a", "d": "b"})
