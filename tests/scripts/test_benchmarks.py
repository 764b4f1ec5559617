"""scripts/benchmarks: what peers are given, and how runs are paired; no test measures time."""

import ast
import importlib
import json
from configparser import ConfigParser
from itertools import islice
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import textcat
from textcat.corpus.catalogue import open_corpus
from textcat.corpus.documents import Corpus, Document, topic_counts
from textcat.features.tfidf import TfIdf
from textcat.features.tokens import Tokens
from textcat.reading import FORMATS
from textcat.recipes.recipe import read_recipe
from textcat.training.train import train_and_evaluate

SCRIPTS = Path(__file__).parents[2] / "scripts"


@pytest.fixture(autouse=True)
def _benchmarks_can_be_imported(monkeypatch):
    monkeypatch.syspath_prepend(str(SCRIPTS / "benchmarks"))


WORDS = ["alpha", "bravo", "carrot", "delta", "echelon", "foxtrot"]


def documents(n=60):
    """Return documents of words that both tokenizers take as they are."""
    generator = np.random.default_rng(0)
    texts = [" ".join(generator.choice(WORDS, size)) for size in generator.integers(2, 9, 2 * n)]
    return [Document(str(i), {"title": texts[2 * i], "body": texts[2 * i + 1]}) for i in range(n)]


@pytest.mark.parametrize("least", [{"min_df": 1, "ngram_min_df": 1}, {"min_df": 2, "ngram_min_df": 15}])
def test_the_peer_has_the_rows_of_recipe_best(least):
    from equal_kind import ZonedRows

    settings = read_recipe("default").features | least
    # What is too rare is known to textcat while it counts lengths; b = 0 leaves lengths out.
    settings |= {"b": 0} if least["ngram_min_df"] > 1 else {}
    ours, its = TfIdf(Tokens(), **settings), ZonedRows(settings, stop_words=None)
    X, Z = ours.fit_transform(documents()), its.fit_transform(documents())
    known = its.words.vocabulary_
    assert known.keys() == ours.vocabulary_.keys()
    assert least["min_df"] == 1 or len(known) < len(WORDS) + len(WORDS) ** 2
    order = [known[term] for term in ours.vocabulary_]
    np.testing.assert_allclose(Z.toarray()[:, order], X.toarray(), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(its.transform(documents()).toarray(), Z.toarray())


@pytest.mark.parametrize("positives", [1, 2, 4, 5, 20])
def test_a_peer_decides_on_topics_that_have_fewer_positives_than_folds(positives):
    from equal_kind import LEARNERS, PROBABILITY, Calibrated

    y = np.arange(60) < positives
    X = np.random.default_rng(0).normal(size=(60, 2)) + 8.0 * y[:, np.newaxis]
    for learner in LEARNERS.values():
        probabilities = Calibrated(learner).fit(X, y.astype(int)).predict_proba(X)
        np.testing.assert_allclose(probabilities.sum(axis=1), 1)
        assert probabilities[y, 1].min() > probabilities[~y, 1].max()
        if positives == 1:
            assert (probabilities[:, 1] > PROBABILITY).tolist() == y.tolist()


def test_what_runs_once_is_paired_with_the_first_counted_round():
    from measuring import Task, Timing, interleaved

    order = []
    tasks = {name: Task(lambda _, name=name: order.append(name), once=name == "slow") for name in ("fast", "slow")}
    timings = interleaved(tasks, 3)
    assert order == ["fast", "fast", "slow", "fast", "fast"]
    assert [len(timings[name].seconds) for name in tasks] == [3, 1]
    assert Timing([2.0, 1.0, 1.0]).ratio(Timing([4.0])) == "0.5"


def test_a_table_is_written_under_its_name_and_shown_where_a_page_names_it(tmp_path, capsys):
    from machine import commit
    from pages import Conditions, Page, publish
    from tables import read_table

    (tmp_path / "page.md").write_text("# Times\n\n<!-- table: speed -->\n<!-- end of table -->\n")
    rows = [{"what": "textcat", "seconds": "1"}]
    page = Page("speed", "Speed", Conditions("default").head(), "Words.", rows, picture="Seconds", draw=Path.touch)
    publish([page, "more"], tmp_path)
    assert capsys.readouterr().out == f"{page}\nmore\n"
    assert {path.name for path in tmp_path.iterdir()} == {"tables", "speed.svg", "page.md"}
    table = read_table(tmp_path / "tables" / "speed.json")
    assert (table.title, table.columns, table.rows) == ("Speed", ["what", "seconds"], [["textcat", "1"]])
    assert (table.conditions.commit, table.conditions.recipe) == (commit(), "default")
    assert "| textcat | 1 |" in (tmp_path / "page.md").read_text()


@pytest.fixture
def titles_of_subjects():
    """Return 1,000 titles whose subject p1 is the most frequent, then p2 and so on to p300."""
    numbers = [1 + min(int(x), 299) for x in np.random.default_rng(0).exponential(60, 1000)]
    return [[f"title {i}", f"p{number} p{number + 1}"] for i, number in enumerate(numbers)]


def test_titles_are_chosen_by_a_seed_and_keep_the_most_frequent_subjects(titles_of_subjects):
    import titles

    names = {"p1": "wheat", "p2": "money", "p3": "money"}
    corpus = titles.sample(titles_of_subjects, names, 800)
    assert corpus == titles.sample(titles_of_subjects, names, 800)
    assert len(corpus.train) + len(corpus.test) == 800
    assert 140 < len(corpus.test) < 260
    assert len(corpus.topics) == titles.N_TOPICS
    assert {"wheat", "p2", "p3"} <= set(corpus.topics)
    assert "money" not in corpus.topics
    assert any(not document.topics for document in corpus.train)


def test_written_titles_are_read_as_the_same_corpus(titles_of_subjects, tmp_path):
    import titles

    corpus = titles.sample(titles_of_subjects, {}, 500)
    titles.write(corpus, tmp_path / "titles.jsonl")
    assert json.loads((tmp_path / "titles.jsonl").read_text().splitlines()[0])["split"] == "train"
    read = open_corpus(tmp_path / "titles.jsonl")
    assert read.topics == corpus.topics
    for part in ("train", "test"):
        written, again = getattr(corpus, part), getattr(read, part)
        assert [(d.id, d.zones["body"], d.topics) for d in again] == [
            (d.id, d.zones["body"], d.topics) for d in written
        ]


def test_training_alone_ranks_as_the_trained_model_does():
    from other_corpora import PEER, training_rows

    corpus = open_corpus("newswire")
    quality = {row["what"]: row["MAP"] for row in training_rows(corpus, 1)}
    trained = train_and_evaluate(corpus, read_recipe("default")).evaluation.bands[0]["macro_average_precision"]
    assert quality["textcat, recipe default"] == f"{trained:.3f}"
    assert float(quality[PEER]) > 0.8


def test_a_document_without_a_feature_or_a_topic_is_left_out_of_what_the_peer_is_trained_on():
    from many_topics_omikuji import lines

    X = np.array([[0.5, 0.0, 0.25], [0.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
    Y = np.array([[1, 1], [1, 0], [0, 0], [0, 1]])
    assert list(lines(X, Y)) == ["2 3 2\n", "0,1 0:0.500000 2:0.250000\n", "1 2:1.000000\n"]


def test_topics_are_taken_away_from_training_documents_alone():
    from many_topics_textcat import hidden_topics, without

    parts = [
        Document(f"{part} {i}", {"title": f"t{i}"}, (f"p{i % 5}",), split=part)
        for part in ("train", "test")
        for i in range(20)
    ]
    corpus = Corpus.from_documents("titles", parts, names={f"p{i}": (f"name {i}",) for i in range(5)})
    hidden = hidden_topics(corpus, 2, 4)
    assert len(hidden) == 2
    assert hidden == hidden_topics(corpus, 2, 4)
    assert not hidden_topics(corpus, 2, 5)
    changed = without(corpus, hidden)
    assert (changed.topics, changed.names) == (corpus.topics, corpus.names)
    assert not hidden & set(topic_counts(changed.train))
    assert (len(changed.train), topic_counts(changed.test)) == (20, topic_counts(corpus.test))


def test_annif_is_given_the_corpus_and_the_names_of_its_topics(tmp_path):
    pytest.importorskip("rdflib")
    from many_topics_annif import BASE, write_files

    titles = {"train": ["Wood:\ta\nhouse", "A church", "Owners"], "test": ["Houses"]}
    topics = {"Wood:\ta\nhouse": ("p1", "p2"), "A church": ("p2",), "Owners": ("p3",), "Houses": ("p1",)}
    documents = [
        Document(title, {"title": title}, topics[title], split=part) for part in titles for title in titles[part]
    ]
    names = {"p1": ('timber "raw"',), "p2": ("back\\slash", "äöå")}
    corpus = Corpus.from_documents("titles", documents, names=names)
    write_files(corpus, tmp_path / "annif", "en")
    given = open_corpus(tmp_path / "annif" / "train.tsv", vocabulary=tmp_path / "annif" / "yso.ttl")
    assert given.topics == tuple(f"{BASE}{topic}" for topic in corpus.topics)
    assert [each.topics for each in given.train] == [
        tuple(f"{BASE}{topic}" for topic in each.topics) for each in corpus.train
    ]
    assert [each.zones["body"] for each in given.train] == ["Wood: a house", "A church", "Owners"]
    assert given.names == {f"{BASE}{topic}": named for topic, named in (names | {"p3": ("p3",)}).items()}
    projects = ConfigParser()
    projects.read(tmp_path / "annif" / "projects.cfg")
    assert projects["ensemble"]["sources"] == "omikuji,mllm"
    assert {projects[name]["analyzer"] for name in projects.sections()} == {"snowball(english)"}


def test_annif_is_told_where_its_files_are_and_mllm_how_few_titles_it_takes(tmp_path, monkeypatch):
    import many_topics_annif

    monkeypatch.setenv("TEXTCAT_ANNIF", str(tmp_path / "bin" / "python"))
    tfidf, mllm = (many_topics_annif.train_command(tmp_path, project) for project in ("tfidf", "mllm"))
    assert f"ANNIF_DATADIR={tmp_path / 'data'}" in tfidf
    assert tfidf[tfidf.index("train") - 1] == tmp_path / "bin" / "annif"
    assert [mllm[i + 1] for i, word in enumerate(mllm) if word == "--docs-limit"] == [many_topics_annif.MLLM_TITLES]
    assert "--docs-limit" not in tfidf


def test_the_cost_model_foretells_what_is_made_by_it(monkeypatch):
    import many_topics
    import many_topics_costs

    powers = {name: (0.5, 1 + k / 10, k / 20) for k, name in enumerate(many_topics_costs.COUNTED)}
    rates = {step: dict.fromkeys(names, 1e-7) for step, (_, names) in many_topics_costs.STEPS.items()}

    def steps(space, size):
        guesses = many_topics_costs.guessed_counts(powers, *size)
        seconds = many_topics_costs.predicted_seconds(rates, guesses)
        facts = {"documents": size[0], "topics": size[1], "counts": {name: guesses[name] for name in powers}}
        named = {function: seconds[step] for step, (function, _) in many_topics_costs.STEPS.items()}
        return {**facts, "seconds": named, "commit": "c", "date": "d", "load": [1, 1]}

    monkeypatch.setattr(many_topics, "steps", steps)
    (text,) = many_topics.cost_model(SimpleNamespace(documents=None))
    assert "300,000 × 25,062, 603,485 × 5,000, 603,485 × 25,062 (documents" in text
    assert {line.split("|")[-2].strip() for line in text.splitlines() if line.count("|") == 9} >= {"+0%", "its error"}
    assert "%" not in text.replace("+0%", "").replace("-0%", "")


def run_here(command, **options):
    """Do most tasks of textcat in this process, as to begin one takes longer; `speed` and `steps` have their own."""
    import many_topics_textcat
    from workspace import run

    if command[1] == SCRIPTS / "benchmarks" / "many_topics_textcat.py" and command[2] in ("tops", "unseen", "cost"):
        getattr(many_topics_textcat, command[2])(*map(str, command[3:]))
    else:
        run(command, **options)


def tables_in(folder):
    from tables import read_table

    return {path.stem: str(read_table(path)) for path in (folder / "tables").iterdir()}


@pytest.mark.long
def test_the_pages_on_many_topics_are_written_and_resumed(finna_titles, tmp_path, monkeypatch, capfd):
    import many_topics
    import titles

    out, keep = tmp_path / "pages", tmp_path / "kept"
    words = ["--documents", "440", "--runs", "1", "--keep", str(keep), "--out", str(out)]
    for name, value in (("SIZES", ()), ("RESAMPLES", 50), ("LEAST_DOCUMENTS", 440), ("run", run_here)):
        monkeypatch.setattr(many_topics, name, value)
    many_topics.main(words)
    written, printed = tables_in(out), capfd.readouterr().out
    with_annif = bool(many_topics.many_topics_annif.python())
    names = [
        "training",
        "quality",
        "differences",
        "tagging",
        *["annif", "annif-tagging"] * with_annif,
        "unseen",
        "cost",
    ]
    assert sorted(written) == sorted(f"many-topics-{name}" for name in names)
    assert (out / "many-topics-cost.svg").exists()
    assert all(text in printed for text in written.values())
    assert ("| Omikuji, Bonsai-like | ALL |" in written["many-topics-quality"]) == bool(many_topics.peers())
    assert ("| Annif, tfidf |" in written["many-topics-training"]) == with_annif
    kept, corpus = keep / "440", many_topics.Space(keep, 440, 1).corpus
    with titles.opened(finna_titles) as file:
        first = [line.split("\t")[0] for line in islice(file, 484)]
    assert [each.zones["title"] for each in (*corpus.train, *corpus.test)] == first
    # What the page has is what the model's own evaluation has.
    evaluation = many_topics.evaluated(many_topics.Space(keep, 440, 1), "textcat")
    own = textcat.load(kept / "textcat").evaluation
    for row, row_of_model in zip(evaluation.rows, own.rows, strict=True):
        assert row.measures == pytest.approx(row_of_model.measures)
    steps = many_topics.steps(many_topics.Space(keep, 440, 1), (200, 20))  # those of one size: the model has a test
    assert steps["seconds"].keys() >= {name for name, _ in many_topics.many_topics_costs.STEPS.values()}
    for name in ("run", "measured"):
        monkeypatch.setattr(many_topics, name, None)  # nothing is measured twice
    many_topics.main(words)
    assert written == tables_in(out)


@pytest.mark.parametrize("script", sorted(SCRIPTS.rglob("*.py")), ids=lambda path: str(path.relative_to(SCRIPTS)))
def test_all_that_a_script_takes_from_textcat_is_there(script):
    for node in ast.walk(ast.parse(script.read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "textcat":
            module = importlib.import_module(node.module)
            for alias in node.names:
                assert hasattr(module, alias.name) or importlib.import_module(f"{node.module}.{alias.name}")


def test_autotar_is_rebuilt_as_its_authors_describe_it():
    import scipy.sparse as sp
    from teaching_autotar import autotar

    generator = np.random.default_rng(0)
    labels = np.arange(400) % 20 == 7
    rows = sp.csr_matrix(
        generator.random((400, 6)) * [0, 0.1, 0.1, 0.1, 0.1, 0.1] + labels[:, np.newaxis] * np.eye(6)[0]
    )
    description = sp.csr_matrix(np.eye(6)[:1])
    assert autotar(rows, description, labels, 0, 1.0) == 19  # of 20: those with the word of the description come first
    assert autotar(rows, description, labels, 0, 1.0, recall=0.5) == 10
    assert autotar(rows, description, ~labels, 0, 1.0, recall=1.0) == 400  # all are asked for in the end


def test_the_pages_of_hostile_texts_have_each_operation_and_what_was_measured_is_kept(monkeypatch, tmp_path, capsys):
    hostile_texts = importlib.import_module("hostile_texts")
    monkeypatch.setattr(hostile_texts, "SIZES", (4000, 1000))
    monkeypatch.setattr(hostile_texts.logging, "disable", lambda: None)
    arguments = ["--patterns", "wheat,", "--results", str(tmp_path / "a.json"), "--out", str(tmp_path)]
    hostile_texts.main(arguments)
    page = tables_in(tmp_path)["hostile-texts-slowest"]
    assert all(f"| {operation} | `" in page for operation in ("tag", "explain", "train", "teach"))
    kept = json.loads((tmp_path / "a.json").read_text())
    kept["tag"]["'wheat,' repeated"]["4000"] = 123.0
    (tmp_path / "a.json").write_text(json.dumps(kept))
    hostile_texts.main(arguments)
    assert "123.00 s" in tables_in(tmp_path)["hostile-texts"]
    capsys.readouterr()


def test_hostile_files_are_made_of_each_format_and_measured(monkeypatch, tmp_path, capsys):
    hostile_files = importlib.import_module("hostile_files")
    monkeypatch.setattr(hostile_files, "SIZES", (100, 400))
    monkeypatch.setattr(hostile_files.logging, "disable", lambda: None)
    for form in FORMATS.keys() - {"parquet"}:  # pyarrow reads its bytes
        makers = hostile_files.patterns(form)
        assert len(makers) >= 100
        assert all(len(make(400)) > 300 for make in makers.values())
    hostile_files.main(["--formats", "csv", "pdf", "--out", str(tmp_path)])
    page = tables_in(tmp_path)["hostile-files"]
    assert page.count("| csv | ") >= 3 <= page.count("| pdf | ")
    capsys.readouterr()


def test_the_benchmark_of_duplicates_takes_out_what_has_half_its_pairs_of_words_in_an_earlier_text():
    planting = importlib.import_module("planting")
    words = [f"w{i}" for i in range(400)]
    text, other = " ".join(words[:21]), " ".join(words[100:121])
    half, less = (" ".join(words[:n] + words[20 * n + n : 20 * n + 21]) for n in (11, 10))
    assert planting.repeated([text, other, half, less, text, ""]) == {2, 4}


def test_the_benchmark_of_duplicates_counts_as_wrong_what_is_in_the_group_of_another_original():
    duplicates = importlib.import_module("duplicates")
    entries = [("a", 0, ""), ("b", 1, ""), ("A", 0, "exact"), ("B", 1, "exact"), ("c", 2, "")]
    found = duplicates.count_found(entries, {2: 0, 3: 0, 4: 1})
    assert found.found == {"": 0, "exact": 1}
    assert (found.wrong, found.groups) == ([(0, 1), (1, 2)], 2)
