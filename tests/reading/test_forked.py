"""A corpus read by a process of its own comes whole, or not at all."""

import subprocess
import sys

import pytest

FORKED = """
import logging, os, sys, warnings
from types import SimpleNamespace as Record
from textcat.reading import read_forked
def open_corpus(as_read, progress):
    zones = [{{"body": str(i)}} for i in range(1000)]
    for i, each in enumerate(zones):
        as_read(Record(zones=each, split="unused" if i == 7 else ""))
        if i % 300 == 299:
            progress.show(completed=i + 1, total=1000)
    {}
    return tuple(zones[::-1])
def stream():
    if (reading := read_forked(open_corpus)) is None:
        sys.exit("alone")
    shown = []
    reading.show = lambda completed, total: shown.append(f"{{completed}}/{{total}}")
    texts = list(reading)
    again = {{id(each) for each in texts}} == {{id(each) for each in reading.corpus if each["body"] != "7"}}
    return len(texts), texts[998]["body"], len(reading.corpus), again, *shown
try:
    print(*stream())
except EOFError:
    print("EOFError")
"""


@pytest.mark.parametrize(
    ("line", "result"),
    [
        ("pass", "999 999 1000 True 300/1000 600/1000 900/1000"),
        ("raise ValueError", "EOFError"),
        ("warnings.warn('odd')", "EOFError"),
        ("logging.getLogger('textcat.corpus').warning('odd')", "EOFError"),
        ("os.kill(os.getpid(), 9)", "EOFError"),
        ("logging.getLogger('textcat.corpus').info('read')", "999 999 1000 True 300/1000 600/1000 900/1000"),
    ],
)
def test_a_corpus_read_in_a_process_of_its_own_comes_whole_unless_that_failed_or_warned(line, result):
    run = subprocess.run([sys.executable, "-c", FORKED.format(line)], capture_output=True, text=True, check=False)
    if run.stderr == "alone\n":
        pytest.skip("system: there is one processor, or no fork")
    assert (run.stdout, run.stderr) == (f"{result}\n", "")


ABANDONED = """
import os, sys
from textcat.reading import read_forked
def open_corpus(as_read, progress):
    print(os.getpid(), flush=True)
    return "x" * 10_000_000
if read_forked(open_corpus) is None:
    sys.exit("alone")
"""


def test_a_process_whose_result_nobody_takes_ends():
    with subprocess.Popen([sys.executable, "-c", ABANDONED], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as run:
        out, err = run.communicate()  # until both processes have closed their output
    if err == b"alone\n":
        pytest.skip("system: there is one processor, or no fork")
    assert out.strip().isdigit()


STREAMED = """
import sys
from dataclasses import replace
from textcat.lean_imports import keep_imports_lean
keep_imports_lean()  # so that numpy starts no threads, with which no process forks
from textcat.corpus.catalogue import open_corpus, stream_corpus
if (reading := stream_corpus(sys.argv[1])) is None:
    sys.exit("alone")
texts, opened = list(reading), open_corpus(sys.argv[1])
print(len(texts), len(opened.unused), reading.corpus == replace(opened, unused=[]))
"""


def test_a_streamed_corpus_is_the_opened_one_without_its_unused_documents(tmp_path):
    line = '{{"id": "{0}", "text": "Tin rose.", "topics": ["tin"], "split": "{0}"}}\n'
    path = tmp_path / "news.jsonl"
    path.write_text("".join(map(line.format, ("train", "test", "unused"))))
    run = subprocess.run([sys.executable, "-c", STREAMED, path], capture_output=True, text=True, check=False)
    if run.stderr == "alone\n":
        pytest.skip("system: there is one processor, or no fork")
    assert (run.stdout, run.stderr) == ("2 1 True\n", "")
