"""`textcat tag` as a contract: a filter, a printer of tags, and a run over an archive that can be broken off."""

import csv
import json
import os
import pty
import re
import signal
import subprocess
import time
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from types import SimpleNamespace

import forked_commands
import pytest
from archive_runs import make_archive
from commands import COMMAND, Run, environment
from scipy import sparse
from web_records import PAGE, record, response

import textcat
from textcat.model.manifest import read_manifest
from textcat.model.sparse import Sparse
from textcat.runs.results import Counts


@pytest.fixture(scope="module")
def model(newswire_model):
    return newswire_model


@pytest.fixture(scope="module")
def tagger(model):
    return textcat.load(model)


@pytest.fixture
def run(capsys, monkeypatch, tmp_path):
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.chdir(tmp_path)
    return Run(capsys, monkeypatch)


def rows(text):
    return [json.loads(line) for line in text.splitlines()]


def topics(tags):
    return [
        {"topic": tag.topic, "score": round(tag.score, 4), "probability": round(tag.probability, 4)} for tag in tags
    ]


def latin(name="latin.txt"):
    Path(name).write_bytes("blé".encode("latin-1"))
    return name


# --- to standard output ----------------------------------------------------------------------------------------------


def test_a_line_is_printed_for_each_text_file_in_their_order(run, model, tagger):
    texts = {"b.txt": "wheat harvest and grain exports", "a.txt": "", "c.txt": "gold and silver"}
    for name, text in texts.items():
        Path(name).write_text(text)
    run("tag", model, *texts)
    assert (run.code, run.err) == (0, "")
    assert rows(run.out) == [
        {"id": name, "source": name, "position": 1, "topics": topics(tags), "model": read_manifest(model).id}
        | ({} if texts[name] else {"reason": "no_known_term"})
        for name, tags in zip(texts, tagger.tag(texts.values()), strict=True)
    ]


@pytest.mark.parametrize("arguments", [[], ["-"], ["--stdout"]])
def test_standard_input_is_one_text(run, model, tagger, arguments):
    (line,) = rows(run("tag", model, *arguments, stdin=b"wheat harvest\n\nand grain").out)
    assert (line["id"], line["topics"]) == ("-", topics(tagger.tag(["wheat harvest\n\nand grain"])[0]))


@pytest.mark.parametrize("arguments", [["--stdin"], ["--lines"], ["-", "--format", "lines"]])
def test_a_filter_reads_and_writes_lines(run, model, tagger, arguments):
    lines = rows(run("tag", model, *arguments, stdin=b"wheat harvest\ngold\n").out)
    assert [line["topics"] for line in lines] == [topics(tags) for tags in tagger.tag(["wheat harvest", "gold"])]


def test_standard_input_may_be_json_lines(run, model):
    lines = rows(run("tag", model, stdin=b'{"id": "x", "text": "wheat"}\n{"text": "gold"}\n').out)
    assert [(line["id"], line["position"]) for line in lines] == [("x", 1), ("-:2", 2)]


@pytest.mark.parametrize(
    "options", [[], ["--top", "3"], ["--all-topics"], ["--explain", "2"], ["--topic", "gold", "--topic", "wheat"]]
)
def test_a_model_with_sparse_weights_prints_and_writes_the_same(run, model, tagger, options, tmp_path):
    thin = textcat.save(
        replace(tagger, scorer=Sparse(sparse.csr_array(tagger.scorer.weights), tagger.scorer.bias)), tmp_path / "thin"
    )
    Path("a.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in ("gold and wheat", "", "corn")))
    ids = [read_manifest(folder).id for folder in (model, thin)]
    printed = [run("tag", folder, "a.jsonl", *options).out for folder in (model, thin)]
    assert printed[0].replace(*ids) == printed[1] != printed[0]
    for folder, out in ((model, "one"), (thin, "two")):
        run("tag", folder, "a.jsonl", "--out", out, *options)
    shards = [Path(out, "part-00000.jsonl").read_text() for out in ("one", "two")]
    assert shards[0].replace(*ids) == shards[1]
    for command in (["--topic", "gold"], []):
        assert run("topics", thin, *command).out == run("topics", model, *command).out


def test_topics_are_explained_with_the_terms_that_count_most(run, model, tagger):
    text = "wheat harvest and grain exports"
    (line,) = rows(run("tag", model, "--explain", "2", stdin=text.encode()).out)
    assert line["topics"]
    for tag in line["topics"]:
        reasons = tagger.explain(text, tag["topic"], 2)
        assert tag["terms"] == {reason.term: round(reason.contribution, 4) for reason in reasons}


def test_the_options_of_the_output_count(run, model, tagger):
    assert len(rows(run("tag", model, "--top", "3", stdin=b"wheat").out)[0]["topics"]) == 3
    assert len(rows(run("tag", model, "--all-topics", stdin=b"wheat").out)[0]["topics"]) == len(tagger.topics)
    lines = run("tag", model, "--to", "csv", "--top", "2", stdin=b"wheat").out.splitlines()
    assert lines[0] == "id,source,position,date,date_text,model,topic,score,probability,status,reason"
    assert len(lines) == 3


def test_the_options_of_the_input_count(run, model):
    Path("a.dat").write_text("nr\tbody\n7\twheat\n")
    fields = ("--format", "tsv", "--text-field", "body", "--id-field", "nr")
    assert rows(run("tag", model, "a.dat", *fields).out)[0]["id"] == "7"
    assert run("tag", model, latin(), "--encoding", "latin-1").code == 0
    assert "utf-9" in run.refuses("tag", model, latin(), "--encoding", "utf-9")
    assert "there" in run.refuses("tag", model, latin(), "--format", "xlsx").lower()


def test_fields_of_training_that_are_not_named_again_are_told(run, tmp_path):
    words = {"ash": "ashwood ashgrove leaf", "birch": "birchwood birchgrove bark"}
    rows = [f"{i},{words[name]} {i},nothing here,{name}" for i, name in enumerate([*words] * 6)]
    (tmp_path / "trees.csv").write_text("\n".join(["id,headline,text,topics", *rows, ""]))
    (tmp_path / "other.csv").write_text((tmp_path / "trees.csv").read_text())
    (tmp_path / "plain.txt").write_text("ashwood")
    run("train", "trees.csv", "--text-field", "headline", "--recipe", "paum", "--out", "m")
    told = "was trained on the texts in headline; of other.csv, the fields with usual names are read: --text-field"
    for command in (("tag", "m", "other.csv"), ("evaluate", "m", "other.csv"), ("explain", "m", "other.csv")):
        run(*command)
        assert told in run.err, command
        run(*command, "--text-field", "headline")
        assert run.code == 0
        assert "usual names" not in run.err, command
    assert "usual names" not in run("evaluate", "m", "trees.csv").err, "read as for training"
    assert "usual names" not in run("tag", "m", "plain.txt").err


def test_what_cannot_be_read_is_named_and_the_others_are_tagged(run, model):
    Path("good.txt").write_text("wheat")
    run("tag", model, latin(), "good.txt")
    assert run.code == 3
    assert [row["id"] for row in rows(run.out)] == ["good.txt"]
    assert run.err == "textcat: latin.txt:1: The file is not utf-8 (byte 2): name its encoding with --encoding.\n"
    assert "because of --strict" in run.refuses("tag", model, latin(), "--strict")


def test_an_input_that_is_not_there_is_refused_before_any_work(run, model):
    assert run.refuses("tag", model, "absent.txt").startswith("absent.txt cannot be read (No such file or directory)")
    assert "is not a model" in run.refuses("tag", "absent", stdin=b"wheat")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--stdin", "a.txt"], "--stdin reads standard input"),
        (["--stdout", "--out", "x"], "choose one of --out and --stdout"),
        (["--restart"], "--restart needs --out"),
        (["--keep", "2"], "--keep needs --out"),
        (["--backend", "spark"], "--backend is 'local' or 'dask', not 'spark'"),
        (["--backend", "dask"], "--backend dask and --scheduler ADDRESS go together"),
        (["--scheduler", "tcp://x:1"], "--backend dask and --scheduler ADDRESS go together"),
        (["--top", "0"], "greater than or equal to 1"),
        (["--jobs", "0"], "0 jobs do nothing"),
    ],
)
def test_wrong_usage_ends_as_such(run, model, arguments, message):
    assert message in run.misuses("tag", model, *arguments)


# --- in parts --------------------------------------------------------------------------------------------------------


def test_parts_are_tagged_and_merged_with_the_summary_of_one_run(run, model):
    make_archive(Path("a.jsonl"), 60)
    for k in (1, 2):
        assert run("tag", model, "a.jsonl", "--part", f"{k}/2", "--out", f"parts/{k}", "-q").code in (0, 3)
    assert run("merge", "parts/1", "parts/2", "--out", "merged", "--as", "json").code == 3
    merged = json.loads(run.out)
    run("tag", model, "a.jsonl", "--out", "whole", "--as", "json")
    counted = ("records", "tagged", "rejected", "reasons", "topics", "drift", "shards")
    assert [merged[name] for name in counted] == [json.loads(run.out)[name] for name in counted]
    run("tag", model, "a.jsonl", "--out", "merged")
    assert "nothing is left to do" in run.out
    assert "merged exists" in run.refuses("merge", "parts/1", "parts/2", "--out", "merged")
    assert "Part 2 of 2 is missing" in run.refuses("merge", "parts/1", "--out", "other")
    assert not Path("other").exists()


@pytest.mark.parametrize(
    "others", [[], ["--out", "out", "--watch"], ["--write-back", "new"], ["--out", "out", "--write-back", "new"]]
)
def test_a_part_needs_a_folder_of_its_own_and_goes_with_no_option_that_looks_at_all_files(run, model, others):
    make_archive(Path("in/a.jsonl"), 5)
    assert "--part" in run.misuses("tag", model, "in", "--part", "1/2", *others)
    assert not Path("out").exists()


def test_what_cannot_be_written_is_refused(run, model):
    assert "Tags cannot be written as 'xml'" in run.refuses("tag", model, "--to", "xml", stdin=b"x")
    assert "write it to a folder with --out" in run.refuses("tag", model, "--to", "parquet", stdin=b"x")


def test_names_and_texts_are_written_in_utf8_whatever_the_terminal_shows(model, tmp_path):
    (tmp_path / "tagesanzeiger-ö.txt").write_text("wheat")
    ended = subprocess.run(
        [*COMMAND, "tag", str(model), "tagesanzeiger-ö.txt"],
        cwd=tmp_path,
        capture_output=True,
        env=environment(PYTHONIOENCODING="ascii"),
        check=True,
    )
    assert json.loads(ended.stdout.decode("utf-8"))["id"] == "tagesanzeiger-ö.txt"
    assert ended.stderr == b""


def test_a_filter_answers_while_its_input_pauses(model):
    with forked_commands.Popen(
        [*COMMAND, "tag", str(model), "--stdin"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        for word in ("wheat", "gold", "corn"):
            process.stdin.write(f"{word}\n")
            process.stdin.flush()
            assert json.loads(process.stdout.readline())["source"] == "-"
        process.stdin.close()
        assert process.stdout.read() == ""
    assert process.returncode == 0


def test_a_reader_that_has_gone_is_no_error_to_speak_of(model, tmp_path):
    (tmp_path / "many.jsonl").write_text('{"text": ""}\n' * 100_000)
    with forked_commands.Popen(
        [*COMMAND, "tag", str(model), "many.jsonl"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout.readline().startswith('{"id":"many.jsonl:1"')
        process.stdout.close()
        assert process.stderr.read() == ""


# --- to a folder -----------------------------------------------------------------------------------------------------


def test_an_archive_is_tagged_into_a_folder_and_summed_up(run, model):
    make_archive(Path("news.jsonl"), 100)
    run("tag", model, "news.jsonl", "--out", "out", "--log", "run.log")
    assert (run.code, run.err) == (3, "")
    facts = dict(line.split()[:2] for line in run.out.partition("\n\n")[0].splitlines())
    n_rejected = len(Path("out/_rejected.jsonl").read_text().splitlines())
    assert (facts["documents"], facts["tagged"], facts["rejected"]) == ("100", str(100 - n_rejected), str(n_rejected))
    assert "jsonl (by name)" in run.out
    assert sum(row["topics"] != [] for row in rows(Path("out/part-00000.jsonl").read_text()))
    log = Path("run.log").read_text()
    assert f"INFO Tagging 1 input by {model} (model {read_manifest(model).id}) into " in log
    assert "INFO news.jsonl is read as jsonl, recognised by name" in log
    finished = f"out is finished, with 100 documents, {n_rejected} of them rejected: nothing is left to do.\n"
    assert run("tag", model, "news.jsonl", "--out", "out").out == finished
    assert run.code == 3
    assert "start again with --restart" in run.refuses("tag", model, "news.jsonl", "--out", "out", "--top", "1")
    assert run("tag", model, "news.jsonl", "--out", "out", "--top", "1", "--restart", "--quiet").out == ""


def test_an_archive_that_has_grown_is_tagged_where_it_is_new(run, model):
    make_archive(Path("in/a.jsonl"), 20)
    make_archive(Path("in/b.jsonl"), 20, seed=1)
    run("tag", model, "in", "--out", "out")
    make_archive(Path("in/c.jsonl"), 10, seed=2)
    Path("in/b.jsonl").write_text('{"text": "wheat"}\n')
    Path("in/a.jsonl").unlink()
    run("tag", model, "in", "--out", "out")
    assert "files 1 new, 1 changed, 1 gone, whose tags stay" in run.out
    assert "in/a.jsonl" in run.err
    assert "done before" in run.out
    assert "31" in next(line for line in run.out.splitlines() if line.startswith("documents"))


def test_what_another_model_changes_is_shown(run, model, tmp_path):
    make_archive(Path("a.jsonl"), 30)
    run("tag", model, "a.jsonl", "--out", "out")
    run("train", "newswire", "--recipe", "paum", "--set", "learner.tau_pos=5", "--out", "other")
    assert "began with model" in run.refuses("tag", "other", "a.jsonl", "--out", "out")
    run("tag", "other", "a.jsonl", "--out", "out", "--model-changes", "all")
    assert run.code in (0, 3)
    run("diff", "out.before", "out", "--examples", "1")
    assert run.code == 0
    assert "documents in both" in run.out
    found = json.loads(run("diff", "out.before", "out", "--as", "json").out)
    assert found["documents"] == len(rows(Path("out/part-00000.jsonl").read_text()))
    assert "There is no folder nowhere" in run.refuses("diff", "nowhere", "out")


def test_watching_needs_an_output_folder_and_inputs(run, model):
    for words in (["in"], ["--out", "out"], ["-", "--out", "out"]):
        run("tag", model, *words, "--watch")
        assert (run.code, "--watch needs --out" in run.err) == (2, True)


def test_a_watching_process_prints_how_much_the_output_has_grown_or_shrunk(run, model, monkeypatch):
    before, after = Counts(5, 4, rejected=1), Counts(1005, 1005)
    summary = SimpleNamespace(counts=after, before=SimpleNamespace(counts=before), growth=None)
    monkeypatch.setattr("textcat.tagging.watch.watch_archive", lambda _, __, ___, show, **____: show(summary))
    assert run("tag", model, "in", "--out", "out", "--watch").out.endswith("  +1,001 documents tagged, -1 rejected\n")


def test_an_archive_without_a_fault_ends_well(run, model):
    Path("a.jsonl").write_text('{"text": "wheat"}\n' * 3)
    assert run("tag", model, "a.jsonl", "--out", "out", "--to", "parquet").code == 0
    assert "rejected         0\n" in run.out
    held_out = f"_held-out-{read_manifest(model).id}.json"
    assert sorted(path.name for path in Path("out").iterdir()) == [
        ".lock",
        "_bins-00000.bin",
        "_files-00000.jsonl",
        held_out,
        "_inputs.jsonl",
        "_journal.jsonl",
        "_origin.json",
        "_summary.json",
        "part-00000.parquet",
    ]


def test_what_is_no_document_is_counted_and_is_no_fault(run, model):
    Path("web").mkdir()
    Path("web/a.warc").write_bytes(record("warcinfo", b"a: b", 0) + record("request", b"GET /", 1) + response(PAGE, 2))
    run("tag", model, "web", "--out", "tags", "--as", "json")
    counts = json.loads(run.out)
    assert (run.code, counts["records"], counts["tagged"], counts["rejected"], counts["left_out"]) == (0, 3, 1, 2, 2)
    assert [line["left_out"] for line in rows(Path("tags/_rejected.jsonl").read_text())] == [True, True]
    Path("web/a.warc").write_bytes(record("request", b"GET /", 1) + response(PAGE, 2))
    Path("web/b.txt").write_bytes(b"\xff\xfe\xff")
    run("tag", model, "web", "--out", "tags", "--as", "json")
    counts = json.loads(run.out)
    assert (run.code, counts["records"], counts["tagged"], counts["rejected"], counts["left_out"]) == (3, 3, 1, 2, 1)
    assert "2, 1 of them left out as no documents" in run("tag", model, "web", "--out", "again").out


@pytest.mark.parametrize("option", ["--top 3", "--all-topics"])
def test_that_other_topics_are_counted_than_written_is_said(run, model, option):
    Path("a.jsonl").write_text('{"text": "wheat harvest and wheat exports"}\n' * 20)
    assert "--all-topics" not in run("tag", model, "a.jsonl", "--out", "out").out
    printed = run("tag", model, "a.jsonl", "--out", "other", *option.split()).out
    assert "The table counts the topics above their thresholds" in printed
    folder = str(Path("part"))
    run("tag", model, "a.jsonl", "--out", folder, "--part", "1/1", *option.split())
    assert "The table counts the topics above their thresholds" in run("merge", folder, "--out", "merged").out


def test_a_topic_that_drifts_is_marked(run, model):
    Path("a.jsonl").write_text('{"text": "wheat harvest and wheat exports"}\n' * 200)
    run("tag", model, "a.jsonl", "--out", "out")
    (line,) = [line for line in run.out.splitlines() if line.startswith("wheat ")]
    assert line.endswith("*")
    in_table = re.findall(r"^\S.*? +(\d+) +\S+ +\S+( +\*)?$", run.out, re.MULTILINE)
    n_without = int(re.search(r"(\d+) of \d+ topics have no document", run.out)[1])
    assert n_without >= sum(n == "0" for n, _ in in_table) > 0


def test_without_drift_there_is_no_column_of_it_and_it_is_said(run, model):
    Path("a.jsonl").write_text('{"text": "wheat harvest and wheat exports"}\n')
    run("tag", model, "a.jsonl", "--out", "out")
    assert "No drift: no topic has more than three times" in run.out
    assert "drift" not in run.out.partition("No drift")[0]


def test_fields_are_carried_and_one_that_no_document_has_is_told(run, model):
    Path("a.csv").write_text("id,title,text,year\n1,Wheat,wheat exports,2020\n")
    run(
        "tag",
        model,
        "a.csv",
        "--to",
        "csv",
        "--keep-fields",
        "title, year",
        "--keep-fields",
        "nowhere",
        "--per-document",
    )
    head, row = run.out.splitlines()
    assert head.startswith("id,source,position,date,date_text,model,title,year,nowhere,topics,")
    assert row.startswith(f'"1","a.csv",2,"","","{read_manifest(model).id}","Wheat","2020","","')
    assert "No document has the field nowhere, which --keep-fields names" in run.err


def test_at_a_terminal_it_says_what_it_waits_for(run, model, monkeypatch):
    assert "Ctrl-D" not in run("tag", model, stdin=b"wheat").err
    monkeypatch.setattr("textcat.cli.terminal.is_typed", lambda: True)
    assert "end with Ctrl-D" in run("tag", model, stdin=b"wheat").err


def test_a_folder_of_other_things_is_refused(run, model):
    Path("out").mkdir()
    Path("out/mine").touch()
    assert run.refuses("tag", model, "--out", "out", stdin=b"x").startswith("out holds 'mine', but no journal of a run")


def test_on_a_terminal_progress_is_drawn(model, tmp_path):
    make_archive(tmp_path / "news.jsonl", 50)
    ours, theirs = pty.openpty()
    process = forked_commands.Popen(
        [*COMMAND, "tag", str(model), "news.jsonl", "--out", "out"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=theirs,
        env=environment(COLUMNS="160"),
        text=True,
    )
    os.close(theirs)
    drawn = b""
    try:
        while batch := os.read(ours, 1 << 16):
            drawn += batch
    except OSError:  # how Linux tells that the other end of a terminal is closed
        pass
    out = process.communicate()[0]
    os.close(ours)
    assert b"50 documents, " in drawn
    assert b" MB/s, " in drawn
    assert "\x1b" not in out


def test_ctrl_c_ends_soon_and_leaves_a_folder_that_a_run_can_resume_in(model, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with forked_commands.Popen(
        [*COMMAND, "tag", str(model), "--stdin", "--out", "out"],
        cwd=tmp_path,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        process.stdin.write("wheat\n")
        process.stdin.flush()
        while not (tmp_path / "out" / "_journal.jsonl").exists():
            assert process.poll() is None
            time.sleep(0.05)
        time.sleep(0.2)
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=300) == 130
        assert process.stderr.read() == (
            "textcat: interrupted; give the same command without --restart to resume the run.\n"
        )
    assert {path.name for path in (tmp_path / "out").iterdir()} <= {
        ".lock",
        "_bins-00000.bin.part",
        f"_held-out-{read_manifest(model).id}.json",
        "_inputs.jsonl",
        "_journal.jsonl",
        "_origin.json",
        "part-00000.jsonl.part",
    }


# --- topics, show ----------------------------------------------------------------------------------------------------


def test_topics_are_listed_with_what_training_knows_of_them(run, model, tagger):
    rows = json.loads(run("topics", model, "--as", "json").out)
    assert sorted(row["topic"] for row in rows) == list(tagger.topics)
    assert [row["train"] for row in rows] == sorted(tagger.facts.train_sizes, reverse=True)
    table = run("topics", model).out.splitlines()
    margins = ["directional_margin", "margin", "certificate"]  # more than a table has room for
    assert table[0].split() == [name for name in rows[0] if name not in margins]
    assert all(row[name] is not None for row in rows for name in margins)
    assert [line.split()[0] for line in table[1:]] == [row["topic"] for row in rows]


def test_show_prints_how_a_model_was_made_and_what_it_has_learnt(run, model):
    shown = run("show", model).out
    assert re.search(r"^corpus +newswire, 721 training documents$", shown, re.MULTILINE)
    assert f"textcat {textcat.__version__}" in shown
    about = json.loads(run("show", model, "--as", "json").out)
    written = datetime.fromisoformat(about["written"])
    assert written.timestamp() == int((model / "manifest.json").stat().st_mtime)
    assert re.search(rf"^written +{re.escape(about['written'])}$", shown, re.MULTILINE)
    assert about["learnt"] == 0
    terms = run("show", model, "--topic", "wheat", "--terms", "3").out.splitlines()
    assert len(terms) == 4
    assert terms[1].split()[0] == "wheat"


# --- models by language ----------------------------------------------------------------------------------------------


def test_languages_are_counted_and_those_without_a_model_are_told(run, model, tmp_path):
    pytest.importorskip("py3langid")
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "en").symlink_to(model.resolve(), target_is_directory=True)
    english = "The grain harvest of this year is larger than the one of the year before."
    finnish = "Tämän vuoden viljasato on suurempi kuin edellisen vuoden sato oli."
    (tmp_path / "texts.txt").write_text(f"{english}\n{finnish}\n{english}\n")
    languages = ("tag", "models", "texts.txt", "--lines", "--lang", "auto")
    run(*languages, "--as", "json")
    assert run.code == 3
    assert "texts.txt:2: It is in fi, and there are models for en only." in run.err
    assert json.loads(run.err[run.err.index("\n{") :])["languages"] == {"en": 2, "fi": 1}
    assert len(rows(run.out)) == 2
    run(*languages, "--out", "tags")
    assert re.search(r"languages read +en 2, fi 1", run.out)
    run(*languages, "--other-languages", "untagged")
    assert run.code == 0
    assert [bool(row["topics"]) for row in rows(run.out)][1] is False
    run("tag", "models", "texts.txt")
    assert run.code == 1
    assert "give --lang auto" in run.err


# --- dates -----------------------------------------------------------------------------------------------------------


def test_dates_come_from_the_field_that_is_named_into_every_format(run, model):
    table = "number,text,day\n1,wheat harvest,1 May 2024\n2,gold,\n"
    Path("a.csv").write_text(table)
    for to, options in {"jsonl": (), "csv": ("--per-document",)}.items():
        run("tag", model, "a.csv", "--date-field", "day", "--to", to, "--out", to, *options)
    lines = rows(Path("jsonl/part-00000.jsonl").read_text())
    assert [line.get("date") for line in lines] == ["2024-05-01", None]
    cells = [line.split(",") for line in Path("csv/part-00000.csv").read_text().splitlines()]
    assert [line[3] for line in cells] == ["date", '"2024-05-01T00:00:00"', '""']
    assert [line[4] for line in cells] == ["date_text", '"2024-05-01"', '""']


def test_a_date_is_kept_although_the_first_day_had_none(run, model):
    Path("in").mkdir()
    for day, date in (("a", ""), ("b", "2024-05-01T10:15:00+02:00")):
        Path("in", f"{day}.jsonl").write_text(json.dumps({"text": "wheat", "date": date}) + "\n")
        run("tag", model, "in", "--to", "csv", "--per-document", "--out", "out")
    lines = [line for path in sorted(Path("out").glob("part-*")) for line in csv.DictReader(path.open(newline=""))]
    assert [line["date"] for line in lines] == ["", "2024-05-01T10:15:00"]


def test_a_field_of_dates_that_a_table_lacks_is_told(run, model):
    Path("a.csv").write_text("text\nwheat\n")
    result = run("tag", model, "a.csv", "--date-field", "day", "--out", "out")
    assert "'day'" in Path("out/_rejected.jsonl").read_text(), result
