"""The run that finds the duplicates of an archive: its file, its resumption, and archives that grow."""

import json
import multiprocessing
import os
import random
import signal
from functools import partial
from io import BytesIO

import pytest
from news_versions import item, write_items

import textcat
from textcat.base.errors import TextcatError
from textcat.reading import InputSettings, Record
from textcat.tagging.duplicates import find_duplicates
from textcat.tagging.groups import open_groups
from textcat.tagging.job import ReplacedError
from textcat.tagging.planning import make_plan
from textcat.tagging.run import tag_to_folder
from textcat.tagging.shards import read_tags
from textcat.tagging.stream import tag_to_stream

READ = InputSettings(block_bytes=4096)
WORDS = ["".join(random.Random(i).choices("abcdefghijklmnoprstuvw", k=7)) for i in range(5000)]


def article(seed):
    return " ".join(random.Random(seed).choices(WORDS, k=80))


def write(path, texts, prefix="a"):
    lines = (json.dumps({"id": f"{prefix}{i}", "text": text}) for i, text in enumerate(texts))
    path.write_text("".join(line + "\n" for line in lines))


def lines_of(path):
    return list(map(json.loads, path.read_text().splitlines()))


@pytest.fixture
def archive(tmp_path):
    folder = tmp_path / "news"
    folder.mkdir()
    texts = [article(i) for i in range(40)]
    write(folder / "1.jsonl", texts)
    write(
        folder / "2.jsonl", [*(article(100 + i) for i in range(30)), *texts[:8], " ".join(texts[9].split()[:50])], "b"
    )
    return folder


def group(archive, id_):
    """Return the name of the group whose first document has this id."""
    file, position = {"a": "1.jsonl", "b": "2.jsonl", "c": "0.jsonl"}[id_[0]], int(id_[1:]) + 1
    return f"{archive / file}:{position}"


def run(archive, out, **options):
    return find_duplicates([archive], out, input_settings=READ, max_records=16, **{"jobs": 1, **options})


def test_each_duplicate_has_a_line_with_the_first_document_of_its_group(archive, tmp_path):
    found = run(archive, tmp_path / "out.jsonl")
    lines = lines_of(tmp_path / "out.jsonl")
    assert [(line["id"], line["group"]) for line in lines] == [
        *((f"b{30 + i}", group(archive, f"a{i}")) for i in range(8)),
        ("b38", group(archive, "a9")),
    ]
    first, last = lines[0], lines[-1]
    assert (first["source"], first["position"]) == (str(archive / "2.jsonl"), 31)
    assert (first["group_source"], first["group_position"]) == (str(archive / "1.jsonl"), 1)
    assert first["similarity"] == 1 > last["similarity"] > 0.3
    assert (found.counts.records, found.exact, found.near, found.groups) == (79, 8, 1, 9)


def test_versions_of_a_news_item_do_not_repeat_each_other(tmp_path, model):
    """Only the newest one is tagged, and must count as the first of those that repeat it."""
    folder = tmp_path / "news"
    text = " ".join(map(article, range(8)))  # so long that each is in a batch of its own, as in a large archive
    write_items(folder / "1.jsonl", [item("urn:1", 1) | {"body_text": text}, item("urn:2", 1) | {"body_text": text}])
    write_items(folder / "2.jsonl", [item("urn:1", 2) | {"body_text": text}])
    write_items(folder / "3.jsonl", [item("urn:1", 3) | {"body_text": f"{text} A correction of the last word."}])
    found = run(folder, tmp_path / "out.jsonl")
    (line,) = lines_of(tmp_path / "out.jsonl")
    assert (line["id"], line["group"]) == ("urn:2", f"{folder}/1.jsonl:1")
    assert (found.exact, found.near, found.groups) == (0, 1, 1)
    settings = textcat.OutputSettings(duplicates=str(tmp_path / "out.jsonl"))
    textcat.tag_archive(model, [folder], tmp_path / "tags", output_settings=settings, jobs=1)
    assert {tags.id: tags.repeats_another for tags in read_tags(tmp_path / "tags")} == {"urn:1": False, "urn:2": True}


def test_any_number_of_jobs_writes_the_same_bytes(archive, tmp_path, monkeypatch):
    monkeypatch.setattr("textcat.runs.workers.IN_PROCESS_BYTES", 0)
    for jobs in (1, 2):
        run(archive, tmp_path / f"{jobs}.jsonl", jobs=jobs)
    assert (tmp_path / "1.jsonl").read_bytes() == (tmp_path / "2.jsonl").read_bytes()


def killed_run(archive, out, n_batches):
    """Run up to a number of batches, and kill the process."""

    def stop(progress):
        nonlocal n_batches
        n_batches -= 1
        if not n_batches:
            os.kill(os.getpid(), signal.SIGKILL)

    run(archive, out, progress=stop)


@pytest.mark.parametrize("n_batches", [1, 5, 9])
def test_a_killed_run_resumes_and_writes_the_same_bytes(archive, tmp_path, n_batches):
    run(archive, tmp_path / "whole.jsonl")
    process = multiprocessing.get_context("fork").Process(
        target=killed_run, args=(archive, tmp_path / "out.jsonl", n_batches)
    )
    process.start()
    process.join()
    assert process.exitcode == -signal.SIGKILL
    assert not (tmp_path / "out.jsonl").exists()
    run(archive, tmp_path / "out.jsonl")
    assert (tmp_path / "out.jsonl").read_bytes() == (tmp_path / "whole.jsonl").read_bytes()


def test_a_finished_run_writes_its_file_again(archive, tmp_path):
    before = run(archive, tmp_path / "out.jsonl")
    content = (tmp_path / "out.jsonl").read_bytes()
    (tmp_path / "out.jsonl").unlink()
    again = run(archive, tmp_path / "out.jsonl")
    assert (tmp_path / "out.jsonl").read_bytes() == content
    assert (again.exact, again.near, again.counts.records) == (before.exact, before.near, before.counts.records)


def test_groups_keep_their_names_when_the_archive_grows(archive, tmp_path):
    run(archive, tmp_path / "out.jsonl")
    before = lines_of(tmp_path / "out.jsonl")
    write(archive / "0.jsonl", [article(3), article(500), article(500)], "c")  # sorts before the others
    found = run(archive, tmp_path / "out.jsonl")
    lines = lines_of(tmp_path / "out.jsonl")
    assert lines[: len(before)] == before
    assert [(line["id"], line["group"]) for line in lines[len(before) :]] == [
        ("c0", group(archive, "a3")),
        ("c2", group(archive, "c1")),
    ]
    assert found.counts.records == 82


def test_documents_of_a_changed_file_are_taken_out_and_read_again(archive, tmp_path):
    run(archive, tmp_path / "out.jsonl")
    write(archive / "2.jsonl", [article(1), article(900)], "b")
    found = run(archive, tmp_path / "out.jsonl")
    assert [(line["id"], line["group"]) for line in lines_of(tmp_path / "out.jsonl")] == [("b0", group(archive, "a1"))]
    assert found.counts.records == 42


def test_sketches_of_another_format_are_refused(archive, tmp_path, monkeypatch):
    with monkeypatch.context() as former:
        former.setattr("textcat.tagging.duplicates.SKETCH_FORMAT", None)
        run(archive, tmp_path / "out.jsonl")
    with pytest.raises(TextcatError, match=r"sketch format 2.*restart"):
        run(archive, tmp_path / "out.jsonl")
    run(archive, tmp_path / "out.jsonl", restart=True)


def test_a_damaged_shard_is_refused(archive, tmp_path):
    run(archive, tmp_path / "out.jsonl")
    shard = sorted((tmp_path / "out.jsonl.sketches").glob("part-*"))[1]
    data = bytearray(shard.read_bytes())
    data[100] ^= 1
    shard.write_bytes(data)
    with pytest.raises(TextcatError, match=shard.name):
        run(archive, tmp_path / "out.jsonl")
    run(archive, tmp_path / "out.jsonl", restart=True)
    assert len(lines_of(tmp_path / "out.jsonl")) == 9


def test_a_document_that_cannot_be_read_is_rejected(archive, tmp_path):
    (archive / "3.jsonl").write_text("no json\n")
    found = run(archive, tmp_path / "out.jsonl")
    assert (found.counts.rejected, found.exact) == (1, 8)
    assert (tmp_path / "out.jsonl.sketches" / "_rejected.jsonl").exists()


def test_the_bytes_that_an_input_has_lost_are_counted(archive, tmp_path):
    size = (archive / "2.jsonl").stat().st_size

    def shrink(progress):
        os.truncate(archive / "2.jsonl", 100)

    (change,) = run(archive, tmp_path / "out.jsonl", progress=shrink).changes
    assert change.missing >= size - 100 > 0


def test_the_file_must_not_be_a_folder_or_an_input(archive, tmp_path):
    with pytest.raises(TextcatError, match="is a folder"):
        run(archive, tmp_path)
    with pytest.raises(TextcatError, match="overlap"):
        run(archive, archive / "out.jsonl")


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("model") / "m"
    records = [{"text": article(i), "topics": [f"t{i % 2}"]} for i in range(20)]
    textcat.save(textcat.train(textcat.Corpus.from_records(records), "paum"), folder)
    return folder


@pytest.mark.parametrize("to", ["jsonl", "csv"])
def test_tags_have_the_group_of_each_document(archive, tmp_path, model, to):
    run(archive, tmp_path / "out.jsonl")
    settings = textcat.OutputSettings(to=to, duplicates=str(tmp_path / "out.jsonl"), per_document=to == "csv")
    textcat.tag_archive(model, [archive], tmp_path / "tags", output_settings=settings, jobs=1)
    text = "".join(path.read_text() for path in sorted((tmp_path / "tags").glob("part-*")))
    if to == "csv":
        assert '"b38","' in text
        row = next(line for line in text.splitlines() if line.startswith('"b38"'))
        assert f'"{group(archive, "a9")}"' in row
        assert text.splitlines()[0].split(",")[6] == "group"
        return
    groups = {line["id"]: line["fields"]["group"] for line in map(json.loads, text.splitlines())}
    firsts = {"a0": "a0", "b0": "b0", "b30": "a0", "b38": "a9"}
    assert {id_: groups[id_] for id_ in firsts} == {id_: group(archive, first) for id_, first in firsts.items()}


def test_a_field_of_their_own_is_not_replaced_by_the_group(archive, tmp_path, model):
    run(archive, tmp_path / "out.jsonl")
    settings = textcat.OutputSettings(duplicates=str(tmp_path / "out.jsonl"), keep_fields=("group",))
    with pytest.raises(TextcatError, match="The field 'group' cannot be kept"):
        textcat.tag_archive(model, [archive], tmp_path / "tags", output_settings=settings)


def test_a_file_that_has_no_groups_is_refused(archive, tmp_path, model):
    for name, match in (("none.jsonl", "cannot be read"), ("bad.jsonl", "not a file of groups")):
        (tmp_path / "bad.jsonl").write_text('{"a": 1}\n')
        settings = textcat.OutputSettings(duplicates=str(tmp_path / name))
        with pytest.raises(TextcatError, match=match):
            textcat.tag_archive(model, [archive], tmp_path / "tags", output_settings=settings)


def groups_of(folder):
    lines = (line for path in folder.glob("part-*.jsonl") for line in lines_of(path))
    return {line["id"]: line["fields"]["group"] for line in lines}


def test_a_rewritten_file_of_groups_is_read_anew(archive, tmp_path, model):
    groups = tmp_path / "out.jsonl"
    run(archive, groups)
    settings = textcat.OutputSettings(duplicates=str(groups))
    textcat.tag_archive(model, [archive], tmp_path / "tags", output_settings=settings, jobs=1)
    assert groups_of(tmp_path / "tags")["b38"] == group(archive, "a9")
    lines = [json.loads(line) | {"group": "other"} for line in groups.read_text().splitlines()]
    other = tmp_path / "other.jsonl"
    other.write_text("".join(json.dumps(line) + "\n" for line in reversed(lines)))
    before = open_groups(str(groups))
    other.rename(groups)
    records = [Record("b38", {}, source=str(archive / "2.jsonl"), position=39)]
    assert [record.fields["group"] for record in before.add_groups(records)] == [
        group(archive, "a9")
    ]  # its lines are still there
    textcat.tag_archive(model, [archive], tmp_path / "other", output_settings=settings, jobs=1)
    assert groups_of(tmp_path / "other")["b38"] == "other"


def test_a_run_goes_on_with_grown_groups_but_not_with_others(archive, tmp_path, model):
    groups, out = tmp_path / "out.jsonl", tmp_path / "tags"
    settings = textcat.OutputSettings(duplicates=str(groups))
    tag = partial(textcat.tag_archive, model, [archive], out, output_settings=settings, jobs=1)
    run(archive, groups)
    tag()
    (archive / "3.jsonl").write_text((archive / "2.jsonl").read_text().replace('"b', '"c'))
    run(archive, groups)
    assert tag().growth.new == (str(archive / "3.jsonl"),)
    assert groups_of(out)["c38"] == groups_of(out)["b38"] == group(archive, "a9")
    groups.write_text("".join(groups.read_text().splitlines(keepends=True)[1:]))
    with pytest.raises(TextcatError, match="--duplicates"):
        tag()


@pytest.fixture
def tag(archive, tmp_path, model):
    settings = textcat.OutputSettings(duplicates=str(tmp_path / "out.jsonl"))
    return partial(textcat.tag_archive, model, out=tmp_path / "tags", output_settings=settings, jobs=1)


def test_a_run_without_groups_does_not_go_on_with_them(archive, tmp_path, model, tag):
    run(archive, tmp_path / "out.jsonl")
    textcat.tag_archive(model, [archive], tmp_path / "tags", jobs=1)
    with pytest.raises(TextcatError, match="began with no --duplicates"):
        tag([archive])


def test_documents_get_no_group_before_duplicates_has_read_them(archive, tmp_path, tag):
    run(archive, tmp_path / "out.jsonl")
    tag([archive])
    (archive / "3.jsonl").write_text((archive / "2.jsonl").read_text().replace('"b', '"c'))
    write(archive / "1.jsonl", [article(i) for i in range(41)])
    with pytest.raises(TextcatError, match=r"no groups of .*1\.jsonl and of 1 more.*`textcat duplicates"):
        tag([archive])
    run(archive, tmp_path / "out.jsonl")
    with pytest.raises(TextcatError, match="--restart"):  # 1.jsonl was read again, so its documents are repeats now
        tag([archive])
    tag([archive], restart=True)
    assert groups_of(tmp_path / "tags")["c38"] == groups_of(tmp_path / "tags")["a9"] == group(archive, "b38")


def test_a_stream_has_no_groups_of_files_that_duplicates_has_not_read(archive, tmp_path, model):
    run(archive, tmp_path / "out.jsonl")
    settings = textcat.OutputSettings(duplicates=str(tmp_path / "out.jsonl"))
    plan = partial(make_plan, model, [archive], output_settings=settings, jobs=1)
    tag_to_stream(plan(), rows := BytesIO(), on_rejection=None)
    assert f'"group":"{group(archive, "a9")}"'.encode() in rows.getvalue()
    (archive / "3.jsonl").write_text("")
    with pytest.raises(TextcatError, match=r"no groups of .*3\.jsonl"):
        tag_to_stream(plan(), BytesIO(), on_rejection=None)


def test_groups_of_inputs_with_other_names_are_refused_and_the_remedies_help(archive, tmp_path, tag, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run(archive.name, tmp_path / "out.jsonl")
    with pytest.raises(TextcatError, match=r"no groups of .*with the inputs as they are named here"):
        tag([archive])
    assert not (tmp_path / "tags").exists()
    run(archive, tmp_path / "out.jsonl")
    with pytest.raises(TextcatError, match=r"former name news/1\.jsonl.*--restart"):
        tag([archive])
    run(archive, tmp_path / "out.jsonl", restart=True)
    tag([archive])
    assert groups_of(tmp_path / "tags")["b38"] == group(archive, "a9")


def test_a_run_goes_on_after_a_file_was_renamed(archive, tmp_path, tag):
    run(archive, tmp_path / "out.jsonl")
    tag([archive])
    (archive / "2.jsonl").rename(archive / "4.jsonl")
    (archive / "3.jsonl").write_text((archive / "4.jsonl").read_text().replace('"b', '"c'))
    run(archive, tmp_path / "out.jsonl")
    assert tag([archive]).growth.renamed
    assert groups_of(tmp_path / "tags")["c38"] == groups_of(tmp_path / "tags")["b38"] == group(archive, "a9")


def test_a_renamed_file_that_another_model_reads_again_keeps_its_groups(archive, tmp_path, tag, other_model):
    write(archive / "3.jsonl", ["Wheat rose."], "c")
    run(archive, tmp_path / "out.jsonl")
    tag([archive])
    (archive / "3.jsonl").unlink()  # its rows stay, so that tags are added to a copy of the folder
    (archive / "2.jsonl").rename(archive / "4.jsonl")
    run(archive, tmp_path / "out.jsonl")
    tag([archive])
    with pytest.raises(TextcatError, match=r"former name .*2\.jsonl.*--restart"):
        textcat.tag_archive(other_model, [archive], model_changes="all", **tag.keywords)
    assert groups_of(tmp_path / "tags")["b38"] == group(archive, "a9")


def test_a_run_ends_if_a_tagged_document_gets_another_group(archive, tmp_path, tag):
    groups = tmp_path / "out.jsonl"
    run(archive, groups)
    tag([archive])
    line = lines_of(groups)[0] | {"position": 3}
    groups.write_text(groups.read_text() + json.dumps(line) + "\n")
    for _ in range(2):
        with pytest.raises(TextcatError, match=r"--duplicates n_bytes \d+, sha256 .*--restart"):
            tag([archive])


def test_a_file_of_groups_without_its_folder_is_refused(archive, tmp_path, tag):
    run(archive, tmp_path / "out 1.jsonl")
    (tmp_path / "out 1.jsonl").rename(tmp_path / "out.jsonl")
    with pytest.raises(TextcatError, match=r"lists the files .* cannot be read"):
        tag([archive])


def test_an_interrupted_search_for_duplicates_covers_no_new_file(archive, tmp_path, tag):
    run(archive, tmp_path / "out.jsonl")
    (archive / "3.jsonl").write_text((archive / "2.jsonl").read_text().replace('"b', '"c'))
    process = multiprocessing.get_context("fork").Process(target=killed_run, args=(archive, tmp_path / "out.jsonl", 2))
    process.start()
    process.join()
    assert process.exitcode == -signal.SIGKILL
    with pytest.raises(TextcatError, match=r"no groups of .*3\.jsonl"):
        tag([archive])


def test_a_batch_is_not_tagged_with_the_groups_of_another_file(archive, tmp_path, model):
    groups = tmp_path / "out.jsonl"
    run(archive, groups)
    plan = make_plan(model, [archive], output_settings=textcat.OutputSettings(duplicates=str(groups)), jobs=1)
    groups.write_text("".join(groups.read_text().splitlines(keepends=True)[1:]))
    with pytest.raises(ReplacedError, match="is not the file"):
        tag_to_folder(plan, tmp_path / "tags")
