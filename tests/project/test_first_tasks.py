"""First tasks of strangers, each with what the README and the guide tell, run from a wheel in an empty folder.

`scripts/wheel --check` runs them: TEXTCAT_BARE_PYTHON names the Python of an environment that has the wheel and what it
requires, or else TEXTCAT_WHEEL a wheel, with which the Python of the tests runs them.
"""

import csv
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

BARE_PYTHON = os.environ.get("TEXTCAT_BARE_PYTHON")
README = Path(__file__).parents[2] / "README.md"

NEWS = {
    "grain": ("Wheat exports rose.", "The corn and wheat harvest is late.", "Farmers sold more wheat and corn abroad."),
    "metal": ("Gold fell in London.", "Silver and gold were steady.", "Miners sold more gold and copper."),
    "money": ("The dollar fell.", "The bank bought dollars and sold yen.", "Interest on dollars rose at the bank."),
}
pytestmark = pytest.mark.long


class Stranger:
    """Somebody in an empty folder, who has installed the wheel."""

    def __init__(self, folder, site=None):
        self.folder, self.interpreter = folder, BARE_PYTHON or sys.executable
        names = ("PATH", "HOME", "LANG", "TMPDIR", "COVERAGE_PROCESS_START")
        kept = {name: os.environ[name] for name in names if name in os.environ}
        path = {"PYTHONPATH": str(site)} if site else {}
        self.environment = {**kept, **path, "XDG_CACHE_HOME": str(folder / "cache")}

    def write(self, name, text):
        path = self.folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def start(self, *arguments, **options):
        command = [self.interpreter, "-m", "textcat", *map(str, arguments)]
        return subprocess.Popen(command, cwd=self.folder, env=self.environment, text=True, **options)

    def command(self, *arguments, given="", code=0):
        pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
        process = self.start(*arguments, **pipes)
        out, err = process.communicate(given, timeout=300)
        assert process.returncode == code, err
        assert "Traceback" not in err
        return out + err

    def python(self, program):
        command = [self.interpreter, "-c", program]
        ended = subprocess.run(command, cwd=self.folder, env=self.environment, capture_output=True, text=True)
        assert ended.returncode == 0, ended.stderr
        return ended.stdout


@pytest.fixture
def stranger(tmp_path, request):
    return Stranger(tmp_path, None if BARE_PYTHON else request.getfixturevalue("wheel_site"))


def rows(times=4):
    """Return documents with an id, a text and a topic."""
    documents = [(topic, text) for topic, texts in NEWS.items() for text in texts] * times
    return [{"id": f"d{i}", "text": text, "topics": [topic]} for i, (topic, text) in enumerate(documents)]


def lines(documents):
    return "".join(json.dumps(document) + "\n" for document in documents)


def table(documents, columns):
    made = [",".join(columns)]
    made += [f'{one["id"]},"{one["text"]}",{one["topics"][0]}' for one in documents]
    return "\n".join(made) + "\n"


def own_data():
    """Return the README's files of own data by name, and the commands to install textcat and to use it on the first."""
    page = README.read_text(encoding="utf-8")
    files = dict(re.findall(r"<!-- file: (\S+) -->\n```\w+\n(.*?)```", page, re.DOTALL))
    commands = [re.search("pip install 'textcat-margin.*?'", page)[0]]
    for block in re.findall(r"```(?:sh|console)\n(.*?)```", page, re.DOTALL):
        lines = [line.removeprefix("$ ") for line in block.splitlines()]
        commands += [line for line in lines if re.search(r"textcat \w+ letters\b|/models/letters/", line)]
    return files, commands


def served_at(process):
    """Return the URL that a server names on its standard error when it is ready."""
    address = next(word for line in process.stderr for word in line.split() if word.startswith("http://"))
    return address.rstrip("/;,.")


def test_the_path_of_the_readme_from_own_data_to_a_served_model_has_eight_commands_at_most_and_no_dead_end(stranger):
    files, commands = own_data()
    assert len(commands) <= 8
    for name, text in files.items():
        stranger.write(name, text)
    server, answers = None, {}
    try:
        for line in commands[1:]:  # the wheel is installed
            given, _, line = line.rpartition(" | ")
            words = shlex.split(line, comments=True)
            if words[1] == "serve":
                # A port of its own: that of the README may be taken.
                server = stranger.start(*words[1:], "--port", "0", "--workers", "1", stderr=subprocess.PIPE)
                url = served_at(server)
            elif words[0] == "curl":
                (asked,) = [word for word in words if word.startswith("http://")]
                asked, body = re.sub("http://[^/]*", url, asked), words[words.index("--json") + 1]
                program = f"""
import urllib.request
sent = urllib.request.Request({asked!r}, {body!r}.encode(), {{"Content-Type": "application/json"}})
print(urllib.request.urlopen(sent).read().decode())
"""
                answers["curl"] = stranger.python(program)
            else:
                answers[words[1]] = stranger.command(*words[1:], given="".join(shlex.split(given)[1:]))
    finally:
        if server:
            server.terminate()
            server.communicate()
    assert [*answers] == ["train", "evaluate", "tag", "curl"]
    assert "mean average precision (MAP)" in answers["evaluate"]
    tagged = json.loads(answers["tag"].splitlines()[0])["topics"]
    assert [tag["topic"] for tag in tagged] == [tag["topic"] for tag in json.loads(answers["curl"])["tags"]]
    assert tagged[0]["topic"] == "invoice"


def test_a_frame_becomes_a_model_that_predicts_and_is_evaluated_on_a_file(stranger):
    pytest.importorskip("pandas", reason="pandas is not installed")
    stranger.write("new.csv", table(rows(1), ["id", "text", "topics"]))
    printed = stranger.python(
        f"""
import pandas as pd, textcat
frame = pd.DataFrame({rows()!r}).set_index("id")
tagger = textcat.train(frame, text="text", topics="topics")
likely = tagger.predict_proba(frame, text="text")
print(likely.idxmax(axis=1)["d0"], list(likely.columns), len(likely))
textcat.save(tagger, "model")
print(textcat.evaluate("model", "new.csv").bands[0].topics)
"""
    )
    assert printed == "grain ['grain', 'metal', 'money'] 36\n3\n"
    assert "mean average precision (MAP)" in stranger.command("evaluate", "model", "new.csv")


def test_a_table_with_other_columns_is_read_and_tagged(stranger):
    stranger.write("news.csv", table(rows(), ["nr", "story", "section"]))
    assert "text from 'story'" in stranger.command("train", "news.csv", "--out", "model")
    stranger.write("own.csv", table(rows(), ["key", "words", "kind"]))
    wrong = stranger.command("train", "own.csv", "--out", "own", code=1)
    assert "--text-field" in wrong
    options = ("--text-field", "words", "--topics-field", "kind", "--id-field", "key")
    stranger.command("train", "own.csv", "--out", "own", *options)
    tagged = stranger.command("tag", "own", given="Wheat and corn rose.")
    assert json.loads(tagged.splitlines()[0])["topics"][0]["topic"] == "grain"


def test_a_review_is_screened_from_ris_to_ris(stranger):
    entry = "TY  - JOUR\nID  - {id}\nTI  - {text}\nAU  - Doe, J.\nPY  - 2001\nDO  - 10.1/{id}\nER  - \n\n"
    stranger.write("found.ris", "".join(entry.format(**one) for one in rows(1)))
    options = ("--topic", "grain", "--query", "wheat corn", "--exclusion-reason", "no grain", "--terminal")
    told = stranger.command("teach", "found.ris", *options, given="y\ny\ny\n1\nq\n")
    assert "3 yes, 1 no of 9" in told
    for what in ("included.ris", "labels.csv", "counts.csv"):
        stranger.command("teach", "found-session", "--export", what.partition(".")[0], "--out", what)
    included = (stranger.folder / "included.ris").read_text(encoding="utf-8")
    assert included.count("AU  - Doe, J.") == included.count("N1  - grain: yes") == 3
    with open(stranger.folder / "labels.csv", newline="", encoding="utf-8") as file:
        decisions = [(row["decision"], row["exclusion_reason"], row["year"]) for row in csv.DictReader(file)]
    assert sorted(decisions) == [("no", "no grain", "2001"), *[("yes", "", "2001")] * 3]


def test_names_of_a_vocabulary_are_shown_and_stand_for_ids(stranger):
    coded = [one | {"topics": [f"http://x/{one['topics'][0]}"]} for one in rows()]
    stranger.write("news.jsonl", lines(coded))
    stranger.write("names.tsv", "".join(f"<http://x/{topic}>\t{topic.title()} trade\n" for topic in NEWS))
    stranger.command("train", "news.jsonl", "--vocabulary", "names.tsv", "--out", "model")
    tagged = json.loads(stranger.command("tag", "model", given="Wheat and corn rose.").splitlines()[0])
    assert tagged["topics"][0]["name"] == "Grain trade"
    shown = stranger.command("show", "model", "--topic", "grain trade")
    assert "Grain trade (http://x/grain)" in shown
    assert "Did you mean 'Grain trade'?" in stranger.command("show", "model", "--topic", "Grain trad", code=1)


def test_a_folder_of_several_formats_is_one_corpus(stranger):
    documents = rows()
    stranger.write("mixed/a.jsonl", lines(documents[:18]))
    stranger.write("mixed/b.csv", table(documents[18:], ["nr", "words", "kind"]))
    options = ("--for", "*.csv --text-field words --topics-field kind --id-field nr")
    assert "on its 36 training documents" in stranger.command("train", "mixed", "--out", "model", *options)


def test_a_grid_search_of_scikit_learn_takes_the_parts(stranger):
    texts, labels = [one["text"] for one in rows()], [one["topics"][0] for one in rows()]
    printed = stranger.python(
        f"""
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
import textcat
pipeline = make_pipeline(textcat.TfIdf(), textcat.PAUM())
search = GridSearchCV(pipeline, {{"paum__tau_pos": [1, 10]}}, cv=3).fit({texts!r}, {labels!r})
print(search.predict(["Wheat and corn"])[0], search.best_score_ > 0.9)
"""
    )
    assert printed == "grain True\n"


def test_an_archive_is_tagged_whole_however_often_it_is_interrupted(stranger):
    stranger.write("archive.jsonl", lines(one | {"id": str(i)} for i, one in enumerate(rows(2000))))
    stranger.command("train", "newswire", "--out", "model")
    tag = ("tag", "model", "archive.jsonl", "--out", "tagged")
    for seconds in (0.4, 1.0):
        process = stranger.start(*tag, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        time.sleep(seconds)  # wherever it is then, also at the end
        process.send_signal(signal.SIGINT)
        assert "Traceback" not in process.communicate()[1]
    stranger.command(*tag)
    assert "nothing" in stranger.command(*tag).lower()  # to do
    shards = sorted((stranger.folder / "tagged").glob("part-*"))
    ids = [json.loads(line)["id"] for shard in shards for line in shard.read_text(encoding="utf-8").splitlines()]
    assert ids == [str(i) for i in range(18_000)]


def test_a_model_is_served_and_answers_a_request(stranger):
    pytest.importorskip("uvicorn", reason="the extra `serve` is not installed")
    stranger.write("news.jsonl", lines(rows()))
    stranger.command("train", "news.jsonl", "--out", "model")
    process = stranger.start("serve", "model", "--port", "0", "--workers", "1", stderr=subprocess.PIPE)
    try:
        url = served_at(process)
        printed = stranger.python(
            f"""
import json, urllib.request
sent = urllib.request.Request("{url}/api/v1/models/model/tag", b'{{"text": "Wheat rose."}}',
                              {{"Content-Type": "application/json"}})
print(json.load(urllib.request.urlopen(sent))["tags"][0]["topic"])
"""
        )
        assert printed == "grain\n"
    finally:
        process.terminate()
        process.communicate()


def test_a_model_learns_corrections(stranger):
    stranger.write("news.jsonl", lines(rows()))
    stranger.command("train", "news.jsonl", "--out", "model", "--updatable")
    fixed = [{"id": f"c{i}", "text": f"Sugar and cocoa {i}.", "topics": ["sweets"]} for i in range(4)]
    stranger.write("corrections.jsonl", lines(fixed))
    stranger.command("learn", "model", "corrections.jsonl")
    tagged = stranger.command("tag", "model", given="Cocoa and sugar")
    assert json.loads(tagged.splitlines()[0])["topics"][0]["topic"] == "sweets"


def test_a_rule_of_ones_own_trains_a_tagger(stranger):
    stranger.write("news.jsonl", lines(rows()))
    stranger.write(
        "own.py",
        """
from dataclasses import dataclass

from textcat import MarginClassifier, rules


class Own(rules.Rule):
    PARAMETERS = (rules.Parameter("C", low=0),)

    def threshold(self, y, N=0.0, t=0.0, R=1.0):
        return 0.9

    def step(self, m, q, N=0.0, t=0.0, R=1.0):
        return 1.0, min(self.C, (1 - m) / q)


@dataclass(eq=False, repr=False)
class OwnLearner(MarginClassifier):
    rule = Own
    C: float = 1.0
""",
    )
    stranger.command("train", "news.jsonl", "--learner", "own:OwnLearner", "--out", "model")
    tagged = stranger.command("tag", "model", given="Gold and silver")
    assert json.loads(tagged.splitlines()[0])["topics"][0]["topic"] == "metal"
