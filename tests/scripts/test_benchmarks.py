"""scripts/benchmarks: what peers are given, and how runs are paired; no test measures time."""

import ast
import gettext
import importlib
import importlib.util
import json
import struct
import sys
from configparser import ConfigParser
from contextlib import redirect_stdout
from dataclasses import replace
from functools import partial
from io import StringIO
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
from cases import every

import textcat
from textcat.base.errors import TextcatError
from textcat.corpus.catalogue import open_corpus
from textcat.corpus.documents import Corpus, Document, topic_counts
from textcat.features.tfidf import TfIdf
from textcat.features.tokens import Tokens
from textcat.reading import FORMATS
from textcat.recipes.recipe import read_recipe
from textcat.training.steps import train_and_evaluate

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
    from sklearn_pipeline import ZonedRows

    settings = read_recipe("default").settings("features") | least
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
    from sklearn_pipeline import LEARNERS, PROBABILITY, Calibrated

    y = np.arange(60) < positives
    X = np.random.default_rng(0).normal(size=(60, 2)) + 8.0 * y[:, np.newaxis]
    for learner in LEARNERS.values():
        probabilities = Calibrated(learner).fit(X, y.astype(int)).predict_proba(X)
        np.testing.assert_allclose(probabilities.sum(axis=1), 1)
        assert probabilities[y, 1].min() > probabilities[~y, 1].max()
        if positives == 1:
            assert (probabilities[:, 1] > PROBABILITY).tolist() == y.tolist()


def test_what_runs_once_is_paired_with_the_first_counted_round():
    from harness import Task, Timing, interleaved

    order = []
    tasks = {name: Task(lambda _, name=name: order.append(name), once=name == "slow") for name in ("fast", "slow")}
    timings = interleaved(tasks, 3)
    assert order == ["fast", "fast", "slow", "fast", "fast"]
    assert [len(timings[name].seconds) for name in tasks] == [3, 1]
    assert Timing([2.0, 1.0, 1.0]).ratio(Timing([4.0])) == "0.5"


@pytest.fixture
def benchmark(monkeypatch, capfd):
    """Runs scripts/benchmark with arguments; gives what it printed."""
    spec = importlib.util.spec_from_file_location("benchmarks_main", SCRIPTS / "benchmarks" / "__main__.py")
    main = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(main)

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["benchmark", *map(str, arguments)])
        main.main()
        return capfd.readouterr()

    run.benchmarks = main.BENCHMARKS
    return run


def tables_in(folder):
    from tables import read_table

    return {path.stem: read_table(path) for path in (folder / "tables").iterdir()}


def test_a_table_is_written_under_its_name_and_shown_where_a_page_names_it(benchmark, tmp_path, monkeypatch):
    from harness import Benchmark, commit

    (tmp_path / "page.md").write_text("# Times\n\n<!-- table: speed-all -->\n<!-- end of table -->\n")
    for name in ("speed-all", "speed-some", "size"):
        measure = partial(lambda name, work: [{"what": name, "rounds": work.rounds}], name)
        monkeypatch.setitem(benchmark.benchmarks, name, Benchmark(f"The {name}", "default", measure))
    printed, _ = benchmark("speed", "--rounds", 4, "--out", tmp_path)
    assert tables_in(tmp_path).keys() == {"speed-all", "speed-some"}
    table = tables_in(tmp_path)["speed-all"]
    assert (table.title, table.columns, table.rows) == ("The speed-all", ["what", "rounds"], [["speed-all", "4"]])
    assert (table.conditions.commit, table.conditions.recipe) == (commit(), "default")
    assert str(table) in (tmp_path / "page.md").read_text()
    assert all(str(table) in printed for table in tables_in(tmp_path).values())


def test_what_has_no_data_here_is_told_and_the_others_are_measured(benchmark, monkeypatch, tmp_path):
    from harness import Benchmark

    def fail(work):
        raise TextcatError("No titles here.")

    monkeypatch.setitem(benchmark.benchmarks, "a-first", Benchmark("A", "default", fail))
    monkeypatch.setitem(benchmark.benchmarks, "a-second", Benchmark("B", "default", lambda work: [{"what": "1"}]))
    printed, told = benchmark("a-")
    assert "a-first: No titles here.\n" in told
    assert "| 1 |" in printed
    with pytest.raises(SystemExit):
        benchmark("no-such-benchmark")


def test_what_was_measured_at_this_commit_is_kept_with_the_load_of_then(tmp_path):
    from harness import Work

    work, again = (Work(tmp_path) for _ in range(2))
    assert work.kept("speed", lambda: {"seconds": 2})["seconds"] == 2
    assert again.kept("speed", lambda: {"seconds": 3})["seconds"] == 2
    assert again.loads == work.loads
    assert len(again.loads) == 2


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


def test_training_alone_ranks_as_the_trained_model_does(tmp_path):
    from harness import Work
    from training import PEER, alone_on

    corpus = open_corpus("newswire")
    quality = {row["what"]: row["MAP"] for row in alone_on(corpus, Work(tmp_path, rounds=1))}
    recipe = read_recipe("few-documents").with_settings(
        ["topics.choose_margins=false", "topics.vectors=none", "features.chars=0"]
    )
    trained = train_and_evaluate(corpus, recipe).evaluation.bands[0]["macro_average_precision"]
    assert quality["textcat, recipe few-documents"] == f"{trained:.3f}"
    assert float(quality[PEER]) > 0.8


def test_a_document_without_a_feature_or_a_topic_is_left_out_of_what_the_peer_is_trained_on():
    from omikuji_trees import lines

    X = np.array([[0.5, 0.0, 0.25], [0.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
    Y = np.array([[1, 1], [1, 0], [0, 0], [0, 1]])
    assert list(lines(X, Y)) == ["2 3 2\n", "0,1 0:0.500000 2:0.250000\n", "1 2:1.000000\n"]


def test_topics_are_taken_away_from_training_documents_alone():
    from many_topics_work import hidden_topics, without

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
    from annif_systems import BASE, PROJECTS, write_files

    titles = {"train": ["Wood:\ta\nhouse", "A church", "Owners"], "test": ["Houses"]}
    topics = {"Wood:\ta\nhouse": ("p1", "p2"), "A church": ("p2",), "Owners": ("p3",), "Houses": ("p1",)}
    documents = [
        Document(title, {"title": title}, topics[title], split=part) for part in titles for title in titles[part]
    ]
    names = {"p1": ('timber "raw"',), "p2": ("back\\slash", "äöå")}
    corpus = Corpus.from_documents("titles", documents, names=names)
    write_files(corpus, tmp_path / "annif", "en", PROJECTS.values())
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
    import annif_systems

    monkeypatch.setenv("TEXTCAT_ANNIF", str(tmp_path / "bin" / "python"))
    tfidf, mllm = (annif_systems.train_command(tmp_path, project) for project in ("tfidf", "mllm"))
    assert f"ANNIF_DATADIR={tmp_path / 'data'}" in tfidf
    assert tfidf[tfidf.index("train") - 1] == tmp_path / "bin" / "annif"
    assert [mllm[i + 1] for i, word in enumerate(mllm) if word == "--docs-limit"] == [annif_systems.MLLM_TITLES]
    assert "--docs-limit" not in tfidf


def run_here(command, **options):
    """Do most tasks of textcat in this process, as to begin one takes longer."""
    import many_topics_work
    from harness import run

    if command[1] == SCRIPTS / "benchmarks" / "many_topics_work.py":
        getattr(many_topics_work, command[2])(*map(str, command[3:]))
    else:
        run(command, **options)


def output_here(command, **options):
    """Return the JSON that a task prints as its last line, as `run_here` does it."""
    from harness import output

    if command[1] != SCRIPTS / "benchmarks" / "many_topics_work.py":
        return output(command, **options)
    with redirect_stdout(StringIO()) as printed:
        run_here(command)
    return json.loads(printed.getvalue().splitlines()[-1])


@pytest.mark.where_long("25,062 subjects take many seconds")
def test_the_tables_of_many_topics_are_measured_and_resumed(finna_titles, benchmark, tmp_path, monkeypatch):
    import many_topics
    import titles
    from harness import Work

    out, keep = tmp_path / "pages", tmp_path / "kept"
    names = [f"many-topics-{name}" for name in ("training", "quality", "tagging", "unseen", "cost")]
    words = [*names, "--documents", "440", "--rounds", "1", "--keep", keep, "--out", out]
    for name, value in (("SIZES", ()), ("RESAMPLES", 50), ("run", run_here), ("output", output_here)):
        monkeypatch.setattr(many_topics, name, value)
    printed, _ = benchmark(*words)
    written = tables_in(out)
    assert written.keys() == {*names}
    assert all(str(table) in printed for table in written.values())
    of = many_topics.Titles(Work(keep, documents=440))
    has_peers = ["Omikuji, Bonsai-like", "ALL"] in [row[:2] for row in written["many-topics-quality"].rows]
    assert has_peers == bool(of.peers())
    with titles.opened(finna_titles) as file:
        first = [line.split("\t")[0] for line in islice(file, 484)]
    assert [each.zones["title"] for each in (*of.corpus.train, *of.corpus.test)] == first
    # What the table has is what the model's own evaluation has.
    evaluation, own = of.evaluated("textcat"), textcat.load(of.path("textcat")).evaluation
    for row, row_of_model in zip(evaluation.rows, own.rows, strict=True):
        assert row.measures == pytest.approx(row_of_model.measures)
    for name in ("run", "output", "cost"):
        monkeypatch.setattr(many_topics, name, None)  # nothing is trained twice
    assert benchmark(*names[:2], *words[len(names) :])[0]
    for name in names[:2]:
        assert tables_in(out)[name].rows == written[name].rows


@every("script", sorted(SCRIPTS.rglob("*.py")))
def test_all_that_a_script_takes_from_textcat_is_there(script):
    for node in ast.walk(ast.parse(script.read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "textcat":
            module = importlib.import_module(node.module)
            for alias in node.names:
                assert hasattr(module, alias.name) or importlib.import_module(f"{node.module}.{alias.name}")


def test_autotar_is_rebuilt_as_its_authors_describe_it():
    import scipy.sparse as sp
    from autotar import autotar

    generator = np.random.default_rng(0)
    labels = np.arange(400) % 20 == 7
    rows = sp.csr_matrix(
        generator.random((400, 6)) * [0, 0.1, 0.1, 0.1, 0.1, 0.1] + labels[:, np.newaxis] * np.eye(6)[0]
    )
    description = sp.csr_matrix(np.eye(6)[:1])
    assert autotar(rows, description, labels, 0, 1.0) == 19  # of 20: those with the word of the description come first
    assert autotar(rows, description, labels, 0, 1.0, recall=0.5) == 10
    assert autotar(rows, description, ~labels, 0, 1.0, recall=1.0) == 400  # all are asked for in the end


def test_the_tables_of_hostile_texts_have_each_operation_and_what_was_measured_is_kept(
    monkeypatch, benchmark, tmp_path
):
    hostile_texts = importlib.import_module("hostile_texts")
    one = dict([*hostile_texts.patterns().items()][:1])
    for name, value in (("SIZES", (4000, 1000)), ("patterns", lambda: one)):
        monkeypatch.setattr(hostile_texts, name, value)
    words = ["hostile-texts", "--keep", tmp_path / "kept", "--out", tmp_path]
    benchmark(*words)
    assert [row[0] for row in tables_in(tmp_path)["hostile-texts"].rows] == ["tag", "explain", "train", "teach"]
    (kept,) = (tmp_path / "kept").glob("*.json")
    seconds = json.loads(kept.read_text())
    seconds["tag"][next(iter(one))]["4000"] = 123.0
    kept.write_text(json.dumps(seconds))
    benchmark(*words)
    assert "123.00 s" in tables_in(tmp_path)["hostile-texts"].rows[0]


def test_hostile_files_are_made_of_each_format_and_measured(monkeypatch, benchmark, tmp_path):
    hostile_files = importlib.import_module("hostile_files")
    monkeypatch.setattr(hostile_files, "SIZES", (100, 400))
    for form in FORMATS.keys() - {"parquet"}:  # pyarrow reads its bytes
        makers = hostile_files.patterns(form)
        assert len(makers) >= 100
        assert all(len(make(400)) > 300 for make in makers.values())
    benchmark("hostile-files", "--quick", "--out", tmp_path)
    forms = [row[0] for row in tables_in(tmp_path)["hostile-files"].rows]
    assert forms.count("csv") >= 3 <= forms.count("pdf")


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


NEWS = [
    Document(str(i), {"title": f"t{i}"}, topics)
    for i, topics in enumerate([("a",), ("a",), ("a",), ("b",), ("b",), ("c",), ("a", "c"), ("a", "b"), ("c", "d"), ()])
]


def test_few_labels_are_drawn_from_documents_with_exactly_one_of_the_largest_topics():
    few_labels = importlib.import_module("few_labels")
    alone, any_other = (few_labels.with_one_of_the_largest(NEWS, 2, alone=alone) for alone in (True, False))
    assert [document.id for document in alone] == ["0", "1", "2", "3", "4"]
    assert {document.id: document.topics for document in any_other} == {
        **{str(i): ("a",) for i in (0, 1, 2, 6)},
        **{str(i): ("b",) for i in (3, 4)},
    }


def test_a_share_of_the_labels_is_replaced_by_random_topics_for_few_labels_that_are_wrong():
    from few_labels_hard import with_wrong_labels

    corpus = open_corpus("newswire")
    corpus = Corpus.from_documents("one", [replace(d, topics=d.topics[:1]) for d in corpus.train if d.topics])
    unchanged, wrong = (with_wrong_labels(corpus, share) for share in (0.0, 0.3))
    assert [d.topics for d in unchanged.train] == [d.topics for d in corpus.train]
    changed = np.mean([a.topics != b.topics for a, b in zip(wrong.train, corpus.train, strict=True)])
    assert 0.2 < changed < 0.35
    assert all(len(d.topics) == 1 for d in wrong.train)
    assert [d.zones for d in wrong.train] == [d.zones for d in corpus.train]


def test_messages_of_programs_are_those_that_gettext_reads(tmp_path):
    from few_labels_hard import translations

    pairs = {
        "": "Content-Type: text/plain; charset=UTF-8\n",
        "Cannot open the file": "Datei kann nicht geöffnet werden",
        "short": "kurz",
        "%d file\0%d files that are long": "%d Datei, die lang ist\0%d Dateien, die lang sind",
        "not translated at all": "not translated at all",
    }
    texts = [text.encode() for side in (sorted(pairs), [pairs[key] for key in sorted(pairs)]) for text in side]
    n = len(pairs)
    places = 28 + 16 * n + np.cumsum([0, *(len(text) + 1 for text in texts)])
    table = b"".join(struct.pack("<2I", len(text), place) for text, place in zip(texts, places, strict=False))
    head = struct.pack("<7I", 0x950412DE, 0, n, 28, 28 + 8 * n, 0, 0)
    path = tmp_path / "program.mo"
    path.write_bytes(head + table + b"".join(text + b"\0" for text in texts))
    with path.open("rb") as file:
        assert gettext.GNUTranslations(file).gettext("Cannot open the file") == pairs["Cannot open the file"]
    assert translations(path) == ["Datei kann nicht geöffnet werden"]


def test_few_labels_and_the_documents_to_test_on_do_not_overlap_and_all_systems_know_the_same_topics(tmp_path):
    from few_labels import Pool, draws
    from harness import Work

    work = Work(tmp_path, rounds=3, documents=6)
    drawn, again = (draws(Pool("news", NEWS), 4, work) for _ in range(2))
    assert len({tuple(document.id for document in draw.test) for draw in drawn}) == 3
    for draw, same in zip(drawn, again, strict=True):
        assert {document.id for document in (*draw.train.train, *draw.test)} == {document.id for document in NEWS}
        assert draw.test == same.test
        assert draw.labels.any(axis=0).all()
        assert draw.test_labels.shape == (6, draw.labels.shape[1]) == (6, len(draw.train.topics))


def test_few_labels_are_measured_by_document_or_by_topic_and_compared_in_pairs():
    from few_labels import difference, values

    labels = np.array([[1, 0, 0], [0, 1, 0], [0, 0, 0]])
    scores = np.array([[3.0, 2.0, 1.0], [1.0, 0.0, 0.5], [0.0, 1.0, 0.0]])
    assert values("accuracy", scores, labels).tolist() == [1, 0, 0]
    assert values("MAP", scores, labels).tolist() == [1, 1 / 3]
    ones, half = np.ones(100), np.tile([0.0, 1.0], 50)
    # The mean of 100 differences with a standard deviation of .5025 has a standard error of .05025.
    assert difference([ones], [half]) == "+0.500 ± 0.098"
    assert difference([half] * 4, [ones] * 4) == "-0.500 ± 0.049"
    assert difference([ones], [ones]) == "+0.000 ± 0.000"


@pytest.mark.where_long("to train textcat and its peers takes seconds")
def test_the_tables_of_few_labels_have_each_system_and_what_was_measured_is_kept(monkeypatch, benchmark, tmp_path):
    few_labels = importlib.import_module("few_labels")
    news = few_labels.with_one_of_the_largest(open_corpus("newswire").train, 4)
    pools = few_labels.Pool("one", news), few_labels.Pool("several", news, "MAP")
    # Documents do not reach the first size.
    for name, value in (("SIZES_QUICK", (10_000, 40)), ("pools", lambda work: pools)):
        monkeypatch.setattr(few_labels, name, value)
    words = ["few-labels", "few-labels-tags", "--quick", "--documents", 30, "--jobs", 1, "--keep", tmp_path / "kept"]
    benchmark(*words, "--out", tmp_path)
    quality, tags = (tables_in(tmp_path)[name] for name in words[:2])
    assert [row[:3] for row in quality.rows] == [["one", "accuracy", "40"], ["several", "MAP", "40"]]
    assert quality.columns[3:6] == ["textcat", "LinearSVC", "LinearSVC on words and vectors"]
    assert all(0.3 < float(figure) <= 1 for row in quality.rows for figure in row[3:6])
    assert [row[:2] for row in tags.rows] == [
        [pool, name] for pool in ("one", "several") for name in ("textcat", "LinearSVC")
    ]
    monkeypatch.setattr(few_labels, "train_on", None)  # nothing is trained twice
    benchmark(*words[:1], *words[2:], "--out", tmp_path)
    assert tables_in(tmp_path)["few-labels"].rows == quality.rows
