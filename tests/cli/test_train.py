"""`textcat train`: what it prints and writes, and which mistakes it tells."""

import json
import re
import shutil
from pathlib import Path

import pytest
import typer
from new_files import new_file, recipe

import textcat
from textcat.recipes.recipe import read_recipe

# Without what few documents leave open, for tests of something else.
FIXED = "topics.choose_margins=false", "topics.forecast=false", "topics.vectors=none", "features.chars=0"
QUICK = [word for setting in FIXED for word in ("--set", setting)]


def test_where_no_recipe_is_named_many_topics_have_one_of_their_own(run, part, monkeypatch):
    monkeypatch.setattr("textcat.recipes.recipe.MANY_TOPICS", 38)
    run("train", part, "--out", "many")
    assert run.err == "textcat: 38 topics: trained by the recipe many-topics; --recipe names another.\n"
    by_name = textcat.load("many")
    expected = textcat.read_recipe("many-topics").complete()
    # Which n-grams of characters rows have is chosen, and stored as chosen.
    assert by_name.facts.recipe == expected.with_values({"topics": {"choose_chars": False}})
    assert by_name.facts.choices["rows"]["chosen"] == "words"
    alone = textcat.train(textcat.open_corpus(part), textcat.read_recipe("many-topics"))
    assert (by_name.scorer.weights != alone.scorer.weights).nnz == 0
    run("train", part, "--out", "default", "--recipe", "default")
    assert (run.err, textcat.load("default").scorer.name) == ("", "dense")


def test_the_recipe_for_many_topics_is_taken_with_the_settings_and_the_learner_asked_for(run, part, monkeypatch):
    monkeypatch.setattr("textcat.recipes.recipe.MANY_TOPICS", 38)
    run("train", part, "--out", "chars", "--set", "features.chars=5", "--set", "features.char_weight=0.5")
    assert run.err == "textcat: 38 topics: trained by the recipe many-topics; --recipe names another.\n"
    asked_for = textcat.read_recipe("many-topics").with_settings(["features.chars=5", "features.char_weight=0.5"])
    assert textcat.load("chars").facts.recipe == asked_for.complete()
    run("train", part, "--out", "pam", "--learner", "pam")
    assert run.err == "textcat: 38 topics: trained by the recipe many-topics-pam; --recipe names another.\n"
    assert textcat.load("pam").scorer.shortlist.size == 38


def test_a_setting_that_only_the_other_recipe_can_have_is_refused_where_many_topics_take_theirs(run, own, monkeypatch):
    run("train", own, "--out", "few", "--set", "tags.strategy=scut")
    assert run.code == 0
    monkeypatch.setattr("textcat.recipes.recipe.MANY_TOPICS", 2)
    run("train", own, "--out", "many", "--set", "tags.strategy=scut")
    assert run.code == 1
    assert run.err.startswith("textcat: Recipe many-topics: with a shortlist, the strategy in [tags] cannot be 'scut'")
    assert not Path("many").exists()


def test_where_no_recipe_is_named_short_texts_have_one_of_their_own_with_the_settings_asked_for(run):
    texts = {"person": ("Who is he?", "Who was she?"), "place": ("Where is it?", "Where was it?")}
    lines = [{"text": text, "topics": [topic]} for topic, both in texts.items() for text in both]
    Path("questions.jsonl").write_text("\n".join(map(json.dumps, lines)))
    why = "4 training documents and texts of 12 characters on average"
    said = f"textcat: {why}: trained by the recipe {{}}; --recipe names another.\n"
    run("train", "questions.jsonl", "--out", "short")
    assert run.err == said.format("few-short-texts")
    assert "Every training document has exactly one topic: with --set tags.strategy=single" in run.out
    short = textcat.load("short")
    fixed = ["topics.choose_margins=false", "topics.choose_vectors=false"]
    fixed += ["features.chars=4", "features.char_min=2", "features.char_weight=0.35"]
    assert short.facts.recipe == textcat.read_recipe("few-short-texts").with_settings(fixed).complete()
    assert "who" in dict(short.terms("person", 50))
    run("train", "questions.jsonl", "--out", "other", "--learner", "pam", "--set", "tags.strategy=zero")
    assert run.err == said.format("few-short-texts-pam")
    asked_for = textcat.read_recipe("few-short-texts").changed("pam").with_settings(["tags.strategy=zero", *fixed])
    assert textcat.load("other").facts.recipe == asked_for.complete()


def test_with_few_documents_a_line_tells_how_much_more_would_help(run, part):
    said = r"^With 200 more documents: top-1 accuracy 0\.\d\d → about 0\.\d\d \(0\.\d\d to 0\.\d\d\), forecast"
    words_alone = ["--set", "topics.choose_margins=false", "--set", "topics.vectors=none"]
    run("train", part, "--out", "model", *words_alone)
    assert len(re.findall(said, run.out, re.MULTILINE)) == 1
    (_, now, low, high), *_, (n, *_) = textcat.load("model").facts.choices["forecast"]["forecast"]
    assert n == 2 * 200
    assert low < now < high
    assert f"accuracy {now:.2f} →" in run.out
    run("train", part, "--out", "model", "--force", *words_alone, "--set", "topics.forecast=false")
    assert "more documents:" not in run.out
    assert "forecast" not in textcat.load("model").facts.choices


def test_of_a_single_topic_the_choices_are_told_with_its_average_precision(run):
    texts = {"yes": "violin piano orchestra guitar flute", "": "wheat corn rice oats flour bread wheat and corn"}
    lines = [
        {"text": f"{text} " * 20 + " ".join(f"lot{i}x{k}{topic}" for k in range(90)), "topics": [topic] * bool(topic)}
        for i in range(10)
        for topic, text in texts.items()
    ]
    Path("music.jsonl").write_text("\n".join(map(json.dumps, lines)))
    run("train", "music.jsonl", "--out", "model")
    by = r"average precision on held-out documents: \d\.\d{3} by equal ones, \d\.\d{3} by less even, with λ = 2"
    assert re.search(rf"^Margins: .* \({by}\)", run.out, re.MULTILINE)
    assert re.search(r"^Vectors of English words: weight 0.4 \(\d+% of the words", run.out, re.MULTILINE)


def test_topics_that_are_only_named_are_trained_on_unlabelled_documents(run):
    Path("names.txt").write_text("wheat\ncrude\n", encoding="utf-8")
    Path("posts").mkdir()
    for number, text in enumerate(("wheat harvest and corn", "crude oil barrels", "oil price", "corn crop") * 3):
        Path("posts", f"{number}.txt").write_text(text, encoding="utf-8")
    run("train", "names.txt", "--unlabelled", "posts", "--unlabelled", "newswire", "--as", "json")
    told = json.loads(run.out)
    corpus = textcat.open_corpus("newswire")
    n_expected = 12 + len([*corpus.train, *corpus.test, *corpus.unused])
    assert told["unlabelled"] == n_expected, run.err  # which says what was left out, and why
    assert {row["topic"] for row in told["topics"]} == {"crude", "wheat"}
    tagger = textcat.load(told["model"])
    assert tagger.scores(["corn crop", "barrels of petroleum"]).argmax(axis=1).tolist() == [1, 0]
    run("train", "names.txt", "--unlabelled", "posts", "--force")
    assert "Trained by names alone on 12 unlabelled documents" in run.out
    assert "goes without" in run.misuses("train", "names.txt", "--unlabelled", "posts", "--updatable")
    assert "nothing is measured" in run.misuses("train", "names.txt", "--unlabelled", "posts", "--topics")
    promising = ("--promise", "precision=.9")
    assert "nothing can be promised" in run.misuses("train", "names.txt", "--unlabelled", "posts", *promising)
    run("train", "newswire", "--unlabelled", "posts", "--out", "both", *QUICK)
    assert "Unlabelled documents: " in run.out
    Path("texts.csv").write_text(
        "story,topics\n"
        + "".join(f"{text} {i},{topic}\n" for i in range(9) for topic, text in (("w", "wheat"), ("o", "oil")))
    )
    run("train", "texts.csv", "--text-field", "story", "--unlabelled", "newswire", "--out", "third", *QUICK)
    assert run.code == 0, "options of the labelled documents are not those of a known corpus"
    assert "absent" in run.refuses("train", "names.txt", "--unlabelled", "absent", "--force")
    assert "absent.txt" in run.refuses("train", "absent.txt", "--unlabelled", "posts", "--force")


def test_the_language_of_most_documents_is_found_and_told(run):
    texts = {"money": "Die Bank erhöht den Zinssatz wieder", "rain": "Heute regnet es im ganzen Land sehr stark"}
    lines = [{"text": f"{text} {i}", "topics": [topic]} for topic, text in texts.items() for i in range(3)]
    Path("german.jsonl").write_text("\n".join(map(json.dumps, lines)))
    run("train", "german.jsonl", "--out", "model", "--lang", "auto")
    assert "textcat: language de, by 6 of 6 sampled documents; --lang names another.\n" in run.err
    assert textcat.load("model").facts.recipe.tokens.lang == "de"
    by_name = textcat.train(
        textcat.open_corpus("german.jsonl"), read_recipe("few-short-texts").with_settings(["tokens.lang=de"])
    )
    assert (textcat.load("model").scorer.weights == by_name.scorer.weights).all()


def test_a_plan_names_the_recipe_and_what_it_takes_and_writes_nothing(run, part, monkeypatch):
    monkeypatch.setattr("textcat.recipes.recipe.MANY_TOPICS", 38)
    run("train", part, "--dry-run", "--set", "topics.shortlist=20", "--set", "features.chars=0")
    assert (run.code, run.err) == (0, "")
    facts = dict(re.split(r"  +", line, maxsplit=1) for line in run.out.splitlines()[:6])
    assert facts["recipe"] == "many-topics (38 topics)"
    assert (facts["documents"], facts["topics"]) == ("200 to train on, 40 to test on", "38")
    assert re.fullmatch(r"\d+\.\d (?:MB|kB)", facts["model"])
    assert re.search(r"^train topics +\d+\.\d\d +\d+\.\d\d$", run.out, re.MULTILINE)
    assert not Path("models").exists()
    run("train", part, "--dry-run", "--as", "json", "--recipe", "default", "--out", "planned")
    plan = json.loads(run.out)
    assert (plan["recipe"], plan["why"], plan["documents"], plan["fits"]) == ("default", "", 200, True)
    assert {"read", "train topics", "save"} <= plan["seconds"].keys() == plan["processor_seconds"].keys()
    assert not Path("planned").exists()


def test_what_does_not_fit_into_memory_is_refused_before_a_model_is_written(run, own, monkeypatch):
    monkeypatch.setattr("textcat.training.plan.available_memory", lambda: 1000)
    run("train", own, "--out", "large")
    assert run.code == 1
    assert re.match(r"textcat: Recipe few-short-texts would take some \d+\.\d GB of memory", run.err)
    assert not Path("large").exists()
    run("train", own, "--dry-run")
    assert run.code == 0
    assert run.out.endswith("This does not fit into memory, and would be refused.\n")


def test_train_prints_bands_stages_its_choices_and_the_model_and_on_stderr_only_the_recipe(run, part):
    run("train", part)
    said = "textcat: 200 training documents: trained by the recipe few-documents; --recipe names another.\n"
    assert (run.code, run.err) == (0, said)
    assert re.search(r"^Margins: .* 0\.\d{3} by the recipe's own, 0\.\d{3} by more even", run.out, re.MULTILINE)
    assert re.search(r"^λ: .* 0\.\d{3} by 0, 0\.\d{3} by 2", run.out, re.MULTILINE)
    assert re.search(
        r"^Vectors of English words: .* 0\.\d{3} by weight 0\.4, 0\.\d{3} by weight 0,", run.out, re.MULTILINE
    )
    lines = run.out.splitlines()
    assert lines[0].split() == ["ALL", "TOP10", "LAST30"]
    titles = [re.split(r"  +", line)[0] for line in lines]
    for title in (
        "mean average precision (MAP)",
        "tokens to rows",
        "choose settings",
        "train topics",
        "evaluate",
        "save",
        "peak memory",
    ):
        assert title in titles
    assert {"read", "read and count"} & {*titles}  # the second where a process without threads reads beside this one
    assert lines[-1] == "Model: models/part.jsonl-few-documents"
    assert textcat.load("models/part.jsonl-few-documents").facts.corpus == "part.jsonl"


def test_without_vectors_a_line_tells_what_rows_consist_of(run, part):
    run("train", part, "--out", "model", "--set", "topics.vectors=none", "--set", "topics.forecast=false")
    said = (
        r"^Rows consist of words.*\(share .* 0\.\d{3} by words and n-grams of 2 to 4 characters, 0\.\d{3} by words\);"
    )
    assert len(re.findall(said, run.out, re.MULTILINE)) == 1
    assert textcat.load("model").facts.choices["rows"]["held_out"] > 0


def test_options_go_before_the_recipe(run):
    settings = ("--set", "learner.tau_neg=1", "--set", "learner.tau_pos=5", "--set", "learner.seed=3")
    run("train", "newswire", "--out", "m", "--recipe", "paum", *settings, "--jobs", "1", "--topics")
    assert run.code == 0
    learner = json.loads(Path("m/manifest.json").read_text())["recipe"]["learner"]
    assert (learner["tau_neg"], learner["tau_pos"], learner["seed"]) == (1, 5, 3)
    assert run.out.splitlines()[0].split()[:4] == ["topic", "train", "test", "precision"]


def test_an_existing_model_is_replaced_by_force_or_if_a_person_says_so(run, own, monkeypatch):
    run("train", own, "--out", "m")
    before = Path("m/manifest.json").read_bytes()
    for more in (("--out", "m"), ("--recipe", "paum", "--out", "m")):
        refusal = run.refuses("train", own, *more)
        assert refusal == "The model m exists: replace it with --force, or name another folder with --out."
    assert run.refuses("train", "nothing-there.csv", "--out", "m").startswith("The model m exists")
    run("train", own, "--recipe", "paum")
    assert "The model models/own-paum exists" in run.refuses("train", own, "--recipe", "paum")
    assert Path("m/manifest.json").read_bytes() == before
    assert run("train", own, "--recipe", "paum", "--out", "m", "--force").code == 0
    assert textcat.load("m").facts.recipe.features == textcat.read_recipe("paum").features

    questions = []
    monkeypatch.setattr("textcat.cli.terminal.can_ask", lambda: True)
    for answer, code in ((False, 1), (True, 0)):
        monkeypatch.setattr("typer.confirm", lambda text, err, answer=answer: questions.append(text) or answer)
        assert run("train", own, "--out", "m").code == code
    assert questions == ["The model m exists. Replace it?"] * 2

    def end(*_, **__):  # Ctrl-D
        raise typer.Abort

    monkeypatch.setattr("typer.confirm", end)
    assert run.refuses("train", own, "--out", "m").startswith("The model m is not replaced")


def test_kappa_is_a_setting_where_the_margin_follows_prevalence(run, own):
    assert run("train", own, "--out", "m", "--set", "learner.kappa=-7").code == 0
    assert json.loads(Path("m/manifest.json").read_text())["recipe"]["learner"]["kappa"] == -7


@pytest.mark.parametrize("form", ["folder", "card", "sgm"])
def test_a_corpus_of_the_users_own_is_given_by_path(run, own, form):
    if form == "card":
        Path("pets.toml").write_text('reader = "folders"\nfiles = ["own"]\n')
    elif form == "sgm":
        shutil.copy(textcat.base.disk.shipped("corpora") / "newswire" / "newswire.sgm", "wire.sgm")
    path = {"folder": own, "card": "pets.toml", "sgm": "wire.sgm"}[form]
    assert run("train", path, "--recipe", "paum", "--out", "m").code == 0
    assert run("evaluate", "m", path).code == 0
    assert ("Measured after training" in run.out) == (form != "sgm")


def test_a_corpus_without_a_test_part_is_cross_validated(run, model, own):
    run("train", own, "--recipe", "default", "--out", "m")
    assert (run.code, run.err) == (0, "")
    measured_on, _, names, averages = run.out.splitlines()[:4]
    assert measured_on == "Corpus own has no test documents: by cross-validation on its 6 training documents,"
    assert names.split() == ["ALL"]
    assert averages.split()[-1] == "1.000"
    assert re.search(r"^cross-validate +[0-9.]+$", run.out, re.MULTILINE)
    shown = run.out.split("\n\n")[1]
    for command in (("evaluate", "m", own, "--band", "ALL"), ("show", "m")):
        said = "Measured after training, on 6 training documents, by cross-validation:\n\n"
        assert run(*command).out.partition(said)[2].splitlines()[1].split() == shown.splitlines()[1].split()
    measured = json.loads(run("evaluate", "m", own, "--as", "json").out)
    assert (measured["measured_on"], measured["test_documents"]) == ("training documents, by cross-validation", 6)
    assert "was kept of ALL alone" in run.refuses("evaluate", "m", own, "--band", "TOP1")
    assert "no scores were kept" in run.refuses("evaluate", "m", own, "--trec", "t")
    assert "the scores" in run.refuses("evaluate", "m", own, "--bootstrap", "100")
    own.rename("other")
    # A corpus of another name is other documents, all of which are measured.
    measured = json.loads(run("evaluate", "m", "other", "--as", "json").out)
    assert (run.code, measured["test_documents"]) == (0, 6)


def test_topics_that_did_not_converge_are_named_and_warned_of_in_a_line(run):
    run("train", "newswire", "--out", "m", "--recipe", recipe("[learner]\nmax_epochs = 2\n"))
    assert run.code == 0
    assert re.fullmatch(r"textcat: warning: \d+ of 50 topics did not converge in 2 epochs[^\n]*\n", run.err)
    late = re.search(r"^Did not converge: (.+)\.$", run.out, re.MULTILINE)[1].split(", ")
    stopped = {row["topic"]: row["stopped"] for row in json.loads(run("topics", "m", "--as", "json").out)}
    assert sorted(late) == sorted(topic for topic, why in stopped.items() if why.startswith("did not converge"))


@pytest.mark.parametrize("target", ["folder", "file", "file/below", "/proc/model", "."])
def test_where_no_model_can_be_written_training_does_not_begin(run, monkeypatch, target):
    if target.startswith("/proc") and not Path("/proc").exists():
        pytest.skip("system: there is no /proc")
    monkeypatch.setattr("textcat.training.steps.train_and_evaluate", None)
    Path("folder").mkdir()
    Path("folder/notes.txt").touch()
    Path("file").touch()
    refusal = run.refuses("train", "newswire", "--out", target)
    assert target != "file" or "file exists and is not a model" in refusal
    assert sorted(path.name for path in Path().rglob("*")) == ["file", "folder", "notes.txt"]


def test_a_shortlist_is_measured_on_a_sample_where_there_are_no_test_documents(run):
    documents = [{"text": d.zones["body"], "topics": [*d.topics]} for d in textcat.open_corpus("newswire").train[:90]]
    own = new_file("own.jsonl", "\n".join(map(json.dumps, documents)).encode())
    run("train", own, "--recipe", "many-topics", "--set", "topics.shortlist=8", "--out", "m", "--jobs", "2")
    assert run.code == 0
    assert re.fullmatch(r"textcat: warning: own.jsonl: 8 of 90 documents have no text: [^\n]+\n", run.err)
    assert run.out.startswith(
        "Corpus own.jsonl has no test documents: on 9 of its 90 training documents, held out as a sample,\n\n"
    )
    assert re.search(r"^held-out sample +[0-9.]+$", run.out, re.MULTILINE)
    for command in (("evaluate", "m", own), ("show", "m")):
        assert "Measured after training, on 9 training documents, held out as a sample:\n\n" in run(*command).out


def test_a_model_is_trained_on_the_subjects_of_one_scheme(capsys, monkeypatch, tmp_path):
    from commands import Run
    from news_items import g2_item, g2_message

    monkeypatch.chdir(tmp_path)
    items = [g2_item(n, f"<inlineData>{text}</inlineData>") for n, text in enumerate(["Tin rose.", "Gold fell."], 1)]
    (tmp_path / "a.xml").write_text(g2_message(*items))
    run = Run(capsys, monkeypatch)
    run("train", "a.xml", "--topics-scheme", "house", "--out", "model")
    manifest = json.loads((tmp_path / "model/manifest.json").read_text())
    assert manifest["topics"] == ["house:tin"]
    assert manifest["train_dates"] == ["2024-05-01T10:15:00+02:00", "2024-05-02T10:15:00+02:00"]
    assert "2024-05-01T10:15:00+02:00 to" in run("show", "model").out


def test_promises_are_asked_for_by_options_or_a_file_and_told(run, own):
    run("train", "newswire", "--promise", "precision=.8", "--confidence", ".8", "--out", own / "a", *QUICK)
    assert "Promised, with a confidence of 0.8: a precision of 0.8 of" in run.out
    assert "miss" not in run.out
    (own / "promise.toml").write_text("precision = 0.8\nconfidence = 0.8\n")
    run("train", "newswire", "--promise", own / "promise.toml", "--out", own / "b", *QUICK)
    assert (own / "a" / "promises.npy").read_bytes() == (own / "b" / "promises.npy").read_bytes()
    run("evaluate", own / "a")
    assert "Promises: " in run.out
    assert "give --promise, too" in run.misuses("train", "newswire", "--confidence", ".8")
    assert "takes MEASURE=VALUE, such as precision=.9" in run.misuses("train", "newswire", "--promise", "recall")
    assert "Cannot read the promise" in run.refuses("train", "newswire", "--promise", own / "none.toml")
    run("train", "newswire", "--promise", "precision=.999", "--out", own / "c", *QUICK)
    assert run.code == 1
    assert "No promise of 0.999 can be kept" in run.err
    assert not (own / "c").exists()


def test_what_is_promised_of_missed_topics_and_of_single_topics_is_told_and_checked(run, own):
    run("train", "newswire", "--promise", "missed=.1", "--out", own / "missed", *QUICK)
    assert "\nPromised: tags miss on average at most 0.1 of a document's topics.\n" in run.out
    assert "confidence" not in run.out
    run("evaluate", own / "missed", "--topics", "--as", "json")
    (promise,) = json.loads(run.out)["promises"]
    assert (promise["topic"], promise["measure"], promise["promised"]) == ("all topics", "sample recall", 0.9)
    (own / "promise.toml").write_text("confidence = 0.8\nprecision_of = { wheat = 0.8, gold = 0.7, results = 0 }\n")
    options = ("--promise", own / "promise.toml", "--promise", "missed=.1", *QUICK)
    run("train", "newswire", *options, "--out", own / "single")
    promised = "a precision of 0.7 to 0.8 of 2 of 50 topics; `textcat topics` lists them. Promised: tags miss on"
    assert f"Promised, with a confidence of 0.8: {promised}" in run.out
