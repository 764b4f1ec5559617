"""Explanations: what terms add, where they stand, and that texts come out of it whole."""

import html
import json
import os
import re
from functools import lru_cache
from pathlib import Path

import pytest
from commands import Run
from hypothesis import example, given
from hypothesis import strategies as st
from manifests import rewrite

import textcat
from textcat.base.disk import sha256_of_file
from textcat.base.errors import TextcatError
from textcat.features.spans import Span, places
from textcat.model import ModelError
from textcat.model.explain import Explanation, Reason, explanation_in_words

HOSTILE = "Wheat\0 prices <b>rose</b> &amp; \U0001f33e wheats' café é don't-know wheat-exports U.S. wheat"


@lru_cache(100_000)  # most spans are a word that comes again
def terms_of(features, space, text):
    """The names of all terms and n-grams that a text by itself has, in a space."""
    words = [each.term for each in features.tokens_.locate_tokens([text])[0]]
    names = {" ".join(words[i : i + n]) for n in range(1, features.ngrams + 1) for i in range(len(words) - n + 1)}
    names |= {
        f"~{padded[i : i + features.chars]}~"
        for word in words
        for padded in [f" {word.lower()} "]
        for i in range(max(len(padded) - features.chars, 0) + 1)
        if features.chars
    }
    return {f"{space}:{name}" for name in names} | names


@pytest.fixture(scope="module", params=["default", "chars", "paum"])
def tagger(request, trained):
    return trained(request.param)


def test_the_text_of_every_span_by_itself_gives_the_term(corpus, tagger):
    features = tagger.features
    for document in [*corpus.test[:15], textcat.Document("odd", {"title": HOSTILE, "body": f"{HOSTILE}\n {HOSTILE}"})]:
        row = features.transform([document])
        found = places(features, document, row.indices.tolist())
        assert set(found) == set(row.indices.tolist())  # each column stands somewhere
        for column, (name, spans) in found.items():
            assert features.vocabulary_[name] == column
            for zone, start, end in spans:
                assert 0 <= start < end <= len(document.zones[zone])
                assert name in terms_of(features, zone, document.zones[zone][start:end])


def test_contributions_and_the_bias_and_the_rest_add_up_to_the_score(corpus, tagger):
    for document in corpus.test[:10]:
        everything = tagger.explain(document, "grain", n=None)
        assert sum(each.contribution for each in everything) + everything.bias == pytest.approx(
            everything.score, abs=1e-4
        )
        assert everything.rest == 0
        some = tagger.explain(document, "grain", n=3)
        total = sum(each.contribution for each in some) + some.rest + some.bias
        assert total == pytest.approx(some.score, abs=1e-4)
        assert json.loads(json.dumps(some.as_dict()))["reasons"][0]["term"] == some[0].term


@pytest.mark.parametrize("zone_terms", [False, True, ["title"]])
def test_what_ngrams_of_characters_add_is_shared_by_the_words_that_they_are_in(zone_terms):
    texts = ["wheat wheats heat", "gold golden old", "wheat heat oat", "gold bold cold"]
    corpus = textcat.Corpus.from_records(
        {"title": text, "body": text, "topics": [text[:4]]} for text in [*texts, *texts[::-1]]
    )
    settings = ["features.chars=4", "features.char_min=2", "topics.vectors=none", "topics.choose_margins=false"]
    recipe = (
        textcat.read_recipe("few-documents")
        .with_settings(settings)
        .with_values({"features": {"zone_terms": zone_terms}})
    )
    tagger = textcat.train(corpus, recipe)
    document = {"title": "wheat heat wheat, gold", "body": "bold wheat buckwheats Buckwheat"}
    explained = tagger.explain(document, "whea", n=None)
    names, row = tagger.features.listed_names(), tagger.features.transform([textcat.Document("", document)])
    adds = dict.fromkeys((reason.term for reason in explained), 0.0)
    for column, value in zip(row.indices.tolist(), row.data.tolist(), strict=True):
        contribution = value * tagger.scorer.weights_of(0 if tagger.topics[0] == "whea" else 1, [column])[0]
        prefix = next((prefix for prefix in ("title:", "body:") if names[column].startswith(prefix)), "")
        name = names[column][len(prefix) :]
        if name[0] != "~":
            adds[names[column]] += contribution
            continue
        zones = [prefix[:-1]] if prefix else [*document]
        holders = [
            word for zone in zones for word in re.findall(r"\w+", document[zone].lower()) for _ in ngrams_of(word, name)
        ]
        for word in holders:
            term = word.removesuffix("s")
            adds[prefix + term if prefix + term in adds else f"{prefix}~{term}~"] += contribution / len(holders)
    assert {reason.term: reason.contribution for reason in explained} == pytest.approx(adds, abs=1e-5)
    unknown = [reason for reason in explained if reason.term.endswith("~buckwheat~")]
    assert [{document[zone][start:end] for zone, start, end in reason.spans} for reason in unknown] == [
        {"buckwheats", "Buckwheat"}
    ]
    without_spans = tagger.explain_all(document, ["whea"], None, with_spans=False)[0]
    assert [reason[:4] for reason in without_spans] == [reason[:4] for reason in explained]
    assert [abs(reason.contribution) for reason in explained] == sorted(
        (abs(reason.contribution) for reason in explained), reverse=True
    )


def test_explanations_of_long_texts_add_up_with_the_ngrams_that_are_counted(trained, monkeypatch):
    tagger = trained("chars")
    for module in ("tokens", "char_ngrams", "spans"):
        monkeypatch.setattr(f"textcat.features.{module}.MOST_NGRAMS", 20)
    explained = tagger.explain(
        "wheat harvest rose, and wheats rose as the harvests of grain did, wheat said", "wheat", None
    )
    total = sum(reason.contribution for reason in explained) + explained.bias
    assert total == pytest.approx(explained.score, abs=1e-4)
    assert explained.without is None or explained.without


def ngrams_of(word, name):
    """The places at which a word has an n-gram of characters, given by its name "~abc~"."""
    padded = f" {word.removesuffix('s')} "
    return [i for i in range(len(padded)) if padded.startswith(name[1:-1], i)]


def test_without_topics_the_tags_are_explained(corpus, tagger):
    for document in corpus.test[:20]:
        tags = tagger.tag([document])[0]
        explained = tagger.explain_all(document)
        assert [(each.topic, each.score, each.probability, None) for each in explained] == tags
        assert explained == [tagger.explain(document, tag.topic) for tag in tags]


def test_marked_texts_are_escaped_and_whole(tagger):
    document = {"title": HOSTILE, "body": "<script>alert('wheat')</script> wheat \ud800"}
    shown = tagger.explain(document, "wheat", n=None).html(document)
    assert "<script" not in shown
    assert "<b>" not in shown
    assert '<mark class="for"' in shown
    shown.encode()
    zones = re.findall('<div class="zone" data-zone="(.*?)">(.*?)</div>', shown, flags=re.DOTALL)
    plain = {zone: html.unescape(re.sub("<[^>]*>", "", text)) for zone, text in zones}
    assert plain == {zone: re.sub("[\0\ud800]", "\ufffd", text) for zone, text in document.items()}


@pytest.fixture
def run(capsys, monkeypatch, tmp_path):
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.chdir(tmp_path)
    return Run(capsys, monkeypatch)


def check(tagger, document):
    """Every span's text gives the term, and what all terms add, and the bias, is the score, of some topics."""
    features = tagger.features
    row = features.transform([document])
    found = places(features, document, row.indices.tolist())
    assert set(found) == set(row.indices.tolist())
    scores = tagger.scores([document])[0]
    n_exact = 0
    for name, spans in found.values():
        for zone, start, end in spans:
            piece = document.zones[zone][start:end]
            names = terms_of(features, zone, piece)
            assert name in names
            n_exact += len(features.tokens_.locate_tokens([piece])[0]) == name.count(" ") + 1
    for topic in (tagger.topics[0], tagger.topics[len(scores) // 2]):
        explained = tagger.explain(document, topic, n=None)
        assert explained.score == scores[tagger.topics.index(topic)]
        total = sum(each.contribution for each in explained)
        assert total + explained.bias == pytest.approx(explained.score, rel=1e-4, abs=1e-3)
    return n_exact, sum(len(spans) for _, spans in found.values())


# What is odd about texts: NUL, white space of all kinds, combining marks, astral characters, special cases, HTML.
ODD = ["\0", "\u00a0", "\u2028", "\r\n", "  ", "\t", "e\u0301", "\u0130", "\U0001f33e", "\U00010400x", "don't"]
WORDS = "dont-know U.S. 10am :) <b>wheat</b> wheat Wheats crops/grain gold http://a.b/c?d=1 &amp; 's cannot ies we'll ß"
PIECES = st.sampled_from([*ODD, *WORDS.split(), "10 am", ": )", "wheat" * 300, "supplies", "İstanbuls", "ﬁnance"])
TEXTS = st.lists(PIECES | st.text(st.characters(exclude_categories=["Cs"]), max_size=8), max_size=12)


@given(st.lists(TEXTS, min_size=2, max_size=2), st.sampled_from(["", " "]))
@example([["wheat" * 300, "\U00018cd6"], []], "")  # no character of Unicode: it may belong to what stands before it
def test_spans_and_sums_of_hostile_texts_are_true(tagger, parts, space):
    title, body = map(space.join, parts)
    check(tagger, textcat.Document("odd", {"title": title, "body": body}))


@lru_cache(100_000)
def columns_of(features, zone, text):
    return {*features.transform([textcat.Document("piece", {zone: text})]).indices.tolist()}


@given(st.lists(TEXTS, min_size=2, max_size=2))
@example([["wheat \ud800 gold"], ["\udfffwheat"]])
def test_spans_of_zones_apart_give_the_column(odd_tagger, parts):
    document = textcat.Document("odd", dict(zip(("title", "body"), map(" ".join, parts), strict=True)))
    features = odd_tagger.features
    row = features.transform([document])
    found = places(features, document, row.indices.tolist())
    if not any("\ud800" <= c <= "\udfff" for text in document.zones.values() for c in text):
        assert set(found) == set(row.indices.tolist())
    for column, (_, spans) in found.items():
        for zone, start, end in spans:
            assert column in columns_of(features, zone, document.zones[zone][start:end])


@pytest.fixture(scope="module", params=["own_titles", "zone_terms", "neither"])
def odd_tagger(request, part):
    base = textcat.read_recipe("default")
    settings = {
        "own_titles": ["features.min_df=1", "features.ngrams=3", 'features.zone_terms=["title"]'],
        "zone_terms": ["features.zone_terms=true", "features.chars=3"],
        "neither": ["tokens.alphanumeric=false", "tokens.lowercase=false", "features.ngrams=3"],
    }
    recipe = base.with_settings([*settings[request.param], "features.idf=smooth", "features.ngram_min_df=1"])
    return textcat.train(part, recipe)


def test_on_reuters_every_span_gives_its_term_and_sums_are_scores(reuters):
    whole = "TEXTCAT_LONG" in os.environ  # 21,578 stories take some minutes
    corpus = reuters if whole else textcat.Corpus.from_documents("part", reuters.train[:500])
    tagger = textcat.train(corpus, textcat.read_recipe("default").with_settings(["tags.strategy=zero"]))
    documents = [*reuters.test, *reuters.train, *reuters.unused]
    sums = [check(tagger, document) for document in (documents if whole else documents[::300])]
    exact, n_spans = map(sum, zip(*sums, strict=True))
    assert exact > 0.99 * n_spans  # few had to be made wider than their words


def test_the_command_explains_in_words_as_json_and_as_a_page(run, newswire_model, tmp_path):
    Path("a.txt").write_text("Wheat <b>exports</b> rose; traders bought wheat", encoding="utf-8")
    printed = run("explain", newswire_model, "a.txt", "--topic", "wheat", "--terms", "3").out
    assert printed.startswith("wheat in a.txt: score ")
    assert "With unknown words in place of wheat the document loses the tag (no smaller set does that)." in printed
    (line,) = run("explain", newswire_model, "a.txt", "--as", "json").out.splitlines()
    explained = textcat.load(newswire_model).explain_all({"title": "", "body": Path("a.txt").read_text()})
    assert json.loads(line)["explanations"] == json.loads(json.dumps([each.as_dict() for each in explained]))
    assert run("explain", newswire_model, "-", "--html", "page.html", stdin=b"Wheat <b>exports").code == 0
    page = Path("page.html").read_text(encoding="utf-8")
    assert '<mark class="for" data-strength="5"' in page
    assert "<b>" not in page


def test_what_cannot_be_explained_is_told_in_a_sentence(run, newswire_model):
    refused = run.refuses("explain", newswire_model, "-", "--topic", "weather", stdin=b"rain")
    assert refused.startswith("The model has no topic 'weather'")
    with pytest.raises(TextcatError, match="0 is no topic: give the id or the name"):
        textcat.load(newswire_model).explain("rain", 0)
    assert "no document in standard input" in run.refuses("explain", newswire_model, stdin=b"")
    assert "no term that the model knows" in run.refuses("explain", newswire_model, "--topic", "wheat", stdin=b"qqz")
    assert "name one with --topic" in run.refuses("explain", newswire_model, stdin=b"qqz")
    assert "choose one of" in run.misuses("explain", newswire_model, "--as", "json", "--html", "a.html")


def test_the_command_keeps_training_documents_and_names_them(run, newswire_model):
    assert run("train", "newswire", "--recipe", "paum", "--keep-support", "ids", "--out", "model").code == 0
    assert textcat.load("model").support.titles[0]  # though texts are not held
    printed = run("explain", "model", "--topic", "wheat", "--terms", "3", stdin=b"Wheat exports rose").out
    assert "training document" in printed
    assert Path("model/weights.npy").read_bytes() == Path(newswire_model, "weights.npy").read_bytes()
    told = run.refuses("train", "newswire", "--keep-support", "everything", "--out", "other")
    assert told.startswith("keep_support cannot be 'everything': choose one of none, ids, texts.")
    told = run.refuses("train", "newswire", "--recipe", "many-topics", "--keep-support", "texts", "--out", "other")
    assert told.startswith("Recipe many-topics has a shortlist")


@pytest.mark.parametrize(
    ("change", "value"),
    [("ids", ["a"]), ("titles", "a"), ("texts", [{"body": 1}]), ("more", 1), ("ids", None), ("titles", [1])],
)
def test_a_damaged_list_of_documents_is_told_of(corpus, change, value, tmp_path):
    small = textcat.Corpus.from_documents("small", corpus.train[:40])
    folder = textcat.save(textcat.train(small, textcat.read_recipe("paum"), keep_support="ids"), tmp_path / "model")
    documents = json.loads((folder / "documents.json").read_text())
    (folder / "documents.json").write_text(json.dumps({**documents, change: value}))
    rewrite(
        folder, files={path.name: sha256_of_file(path) for path in folder.iterdir() if path.name != "manifest.json"}
    )
    with pytest.raises(ModelError, match="is damaged"):
        textcat.load(folder)


def test_a_description_that_was_trained_on_several_times_is_listed_once(corpus):
    recipe = textcat.read_recipe("default")
    assert recipe.topics.description_copies > 1
    tagger = textcat.train(corpus, recipe)
    explanation = tagger.explain("Wheat exports rose.", "wheat", n=None)
    ids = [each.id for each in explanation.documents]
    assert ids.count("description of wheat") == 1
    assert len(ids) == len(set(ids))
    whole = sum(each.contribution for each in explanation.documents) + explanation.bias
    assert whole == pytest.approx(explanation.score, abs=2e-3)


def explained(*entries, score=9.0):
    """An explanation by (term, contribution, place) in the body, whose bias is 0."""
    reasons = [Reason(term, 0.5, 2 * adds, adds, (Span("body", *place),)) for term, adds, place in entries]
    return Explanation("t", score, 0.0, 0.0, None, reasons, score - sum(reason.contribution for reason in reasons))


def test_an_n_gram_counts_for_its_words_without_stop_words_and_signs_at_its_ends():
    # in livestock , state of health .
    entries = [
        ("in", 0.5, (0, 2)),
        ("livestock", 2.0, (3, 12)),
        ("in livestock", 1.0, (0, 12)),
        ("livestock ,", 0.25, (3, 14)),
        (", state", 0.75, (13, 20)),
        ("state of health", 1.5, (15, 30)),
        ("of", 0.125, (21, 23)),
        (".", 4.0, (31, 32)),
        ("of .", 8.0, (21, 32)),
        ("~ in l~", 1.0, (0, 3)),
    ]
    by_words = explanation_in_words(explained(*entries), (), 10, {"in", "of"}.__contains__)
    assert [(reason.term, reason.contribution, reason.spans) for reason in by_words] == [
        ("livestock", 3.25, (Span("body", 3, 12),)),
        ("state of health", 1.5, (Span("body", 15, 30),)),
        ("state", 0.75, (Span("body", 13, 20),)),
    ]
    assert by_words.rest + sum(reason.contribution for reason in by_words) == pytest.approx(9.0)
