"""In a spaCy pipeline documents get the topics that the command line gives them; the model travels with it."""

import json
import shutil
from dataclasses import replace
from importlib.metadata import entry_points

import forked_commands
import numpy as np
import pytest
import spacy
from commands import COMMAND
from scipy import sparse
from spacy.training import Example

import textcat
from textcat.base.errors import TextcatError
from textcat.model import spacy_component
from textcat.model.sparse import Sparse

TEXTS = [
    "Wheat exports rose to 12 mln tonnes, and corn shipments fell.",
    "",
    "Gold and silver: the mine said its gold output rose.",
    "Nothing of all this.\nA second line :) )",
]


@pytest.fixture(scope="module")
def model(tagger, tmp_path_factory):
    return str(textcat.save(tagger, tmp_path_factory.mktemp("models") / "newswire"))


def _pipeline(model, **config):
    nlp = spacy.blank("en")
    nlp.add_pipe("textcat_paum", config={"model": model, **config})
    return nlp


@pytest.fixture(scope="module")
def nlp(model):
    return _pipeline(model)


def _found(docs):
    return [(doc.text, doc.cats, doc._.textcat_topics) for doc in docs]


def test_a_document_gets_the_topics_of_the_command_line(nlp, model, tmp_path):
    archive = tmp_path / "archive.jsonl"
    archive.write_text("".join(json.dumps({"text": text}) + "\n" for text in TEXTS))
    done = forked_commands.run([*COMMAND, "tag", model, archive], text=True)
    printed = [json.loads(line)["topics"] for line in done.stdout.splitlines()]
    assert any(printed)
    for doc, topics in zip(nlp.pipe(TEXTS), printed, strict=True):
        assert doc._.textcat_topics == [entry["topic"] for entry in topics]
        for entry in topics:
            assert entry["probability"] == pytest.approx(doc.cats[entry["topic"]], abs=1e-4)


def test_every_topic_has_its_probability(nlp, tagger):
    values = tagger.decisions.calibration.probabilities(tagger.scores(TEXTS))
    for text, row in zip(TEXTS, values.tolist(), strict=True):
        doc = nlp(text)
        assert doc.cats == dict(zip(tagger.topics, row, strict=True))
        assert doc._.textcat_topics == [tag.topic for tag in tagger.tag([text])[0]]
    assert nlp.get_pipe("textcat_paum").labels == tagger.topics
    assert nlp.pipe_labels["textcat_paum"] == list(tagger.topics)


def test_without_probabilities_topics_have_their_scores(tagger):
    plain = replace(tagger, decisions=replace(tagger.decisions, calibration=None))
    doc = spacy_component.TopicTagger(plain)(spacy.blank("en")(TEXTS[0]))
    assert list(doc.cats.values()) == tagger.scores([TEXTS[0]])[0].tolist()


@pytest.mark.parametrize("batch_size", [1, 3, 1000])
def test_a_stream_in_batches_gives_the_same(nlp, batch_size):
    assert _found(nlp.pipe(TEXTS * 3, batch_size=batch_size)) == _found(map(nlp, TEXTS * 3))


def test_several_processes_give_the_same(nlp):
    assert _found(nlp.pipe(TEXTS, n_process=2, batch_size=2)) == _found(map(nlp, TEXTS))


def test_a_saved_pipeline_brings_its_model(nlp, model, tmp_path):
    copy = shutil.copytree(model, tmp_path / "model")
    _pipeline(str(copy)).to_disk(tmp_path / "pipeline")
    shutil.rmtree(copy)
    loaded = spacy.load(tmp_path / "pipeline")
    assert _found(loaded.pipe(TEXTS)) == _found(map(nlp, TEXTS))
    loaded.to_disk(tmp_path / "pipeline")  # over the files that it is using
    assert _found(spacy.load(tmp_path / "pipeline").pipe(TEXTS)) == _found(map(nlp, TEXTS))
    again = textcat.load(tmp_path / "pipeline" / "textcat_paum")
    assert again.tag(TEXTS) == textcat.load(model).tag(TEXTS)


def test_bytes_hold_the_model(nlp):
    other = spacy.blank("en")
    other.add_pipe("textcat_paum")
    other.from_bytes(nlp.to_bytes())
    assert _found(other.pipe(TEXTS)) == _found(map(nlp, TEXTS))


def test_a_saved_pipeline_keeps_the_house_rules(model, tmp_path):
    folder = str(shutil.copytree(model, tmp_path / "model"))
    rules = tmp_path / "model.rules.toml"
    plain = [_pipeline(folder)(TEXTS[0])]
    assert "wheat" in plain[0]._.textcat_topics
    rules.write_text('replace = { wheat = "zinc" }\n')
    ruled = _pipeline(folder)
    assert "wheat" not in ruled(TEXTS[0])._.textcat_topics
    assert "zinc" in ruled(TEXTS[0])._.textcat_topics
    copied = spacy.blank("en")
    copied.add_pipe("textcat_paum")
    for rules_text in (rules.read_text(), 'never = ["wheat"]\n'):  # other rules are written over the former ones
        rules.write_text(rules_text)
        ruled = _pipeline(folder)
        expected = _found(map(ruled, TEXTS))
        ruled.to_disk(tmp_path / "pipeline")
        assert _found(spacy.load(tmp_path / "pipeline").pipe(TEXTS)) == expected
        assert _found(copied.from_bytes(ruled.to_bytes()).pipe(TEXTS)) == expected
    assert _found(ruled.pipe(TEXTS, n_process=2, batch_size=2)) == expected
    rules.unlink()
    _pipeline(folder).to_disk(tmp_path / "pipeline")
    assert _found([spacy.load(tmp_path / "pipeline")(TEXTS[0])]) == _found(plain)
    assert _found([copied.from_bytes(_pipeline(folder).to_bytes())(TEXTS[0])]) == _found(plain)


def test_a_model_with_sparse_weights_fills_documents_and_is_saved_the_same(tagger, nlp, tmp_path):
    thin = textcat.save(
        replace(tagger, scorer=Sparse(sparse.csr_array(tagger.scorer.weights), tagger.scorer.bias)), tmp_path / "thin"
    )
    one, other = _pipeline(str(thin)), spacy.blank("en")
    assert _found(one.pipe(TEXTS, n_process=2, batch_size=2)) == _found(map(nlp, TEXTS))
    other.add_pipe("textcat_paum")
    other.from_bytes(one.to_bytes())
    assert _found(other.pipe(TEXTS)) == _found(map(nlp, TEXTS))


def test_settings_are_saved_with_the_pipeline(model, tagger, tmp_path):
    labels = list(tagger.topics[3:6])
    _pipeline(model, threshold=0.01, labels=labels).to_disk(tmp_path / "pipeline")
    doc = spacy.load(tmp_path / "pipeline")(TEXTS[0])
    assert list(doc.cats) == labels
    values = tagger.decisions.calibration.probabilities(tagger.scores([TEXTS[0]]))[0, 3:6]
    assert set(doc._.textcat_topics) == {labels[j] for j in np.flatnonzero(values > 0.01)}


def test_entries_of_other_components_stay(nlp):
    doc = nlp.make_doc(TEXTS[0])
    doc.cats = {"NEWS": 0.5}
    assert nlp.get_pipe("textcat_paum")(doc).cats["NEWS"] == 0.5


def test_topics_are_measured_as_spacy_does_it(nlp, tagger):
    examples = []
    for text in TEXTS:
        first = tagger.select(tagger.scores([text]), top=1)[0][0].topic
        cats = {topic: float(topic == first) for topic in tagger.topics}
        examples.append(Example.from_dict(nlp.make_doc(text), {"cats": cats}))
    measured = nlp.evaluate(examples)
    assert 0 < measured["cats_micro_f"] <= 1
    assert set(measured["cats_f_per_type"]) == set(tagger.topics)


def test_a_document_that_fails_goes_to_the_error_handler(nlp, monkeypatch):
    component, failed = spacy_component.TopicTagger(nlp.get_pipe("textcat_paum").tagger), []
    monkeypatch.setattr(textcat.Tagger, "scored", lambda tagger, texts: 1 / 0)
    component.set_error_handler(lambda name, proc, docs, error: failed.append((name, len(docs), type(error))))
    assert list(component.pipe(map(nlp.make_doc, TEXTS), batch_size=3)) == []
    assert failed == [("textcat_paum", 3, ZeroDivisionError), ("textcat_paum", 1, ZeroDivisionError)]


def test_a_missing_model_is_told_of(tmp_path):
    with pytest.raises(TextcatError, match=r"nowhere is not a model: it has no manifest.json"):
        _pipeline(str(tmp_path / "nowhere"))
    empty = spacy.blank("en")
    empty.add_pipe("textcat_paum")
    with pytest.raises(TextcatError, match=r"The component 'textcat_paum' has no model: name its folder"):
        empty(TEXTS[0])


def test_an_unknown_label_is_told_of(model):
    with pytest.raises(TextcatError, match=r"has no topic 'weather'; `textcat topics MODEL` lists"):
        _pipeline(model, labels=["wheat", "weather"])


@pytest.mark.parametrize("threshold", [7, -0.1])
def test_a_threshold_that_is_no_probability_is_refused(model, tagger, threshold):
    with pytest.raises(
        TextcatError, match=r"The threshold .* of the component 'textcat_paum' is no probability: give one"
    ):
        _pipeline(model, threshold=threshold)
    plain = replace(tagger, decisions=replace(tagger.decisions, calibration=None))
    assert spacy_component.TopicTagger(plain, threshold=threshold).labels == tagger.topics


def test_spacy_tells_by_a_private_name_that_it_loads_a_pipeline(tmp_path):
    seen = []

    @spacy.Language.factory("textcat_probe")
    def probe(nlp, name):
        seen.append(list(nlp._meta.get("components", ())))
        return lambda doc: doc

    probed = spacy.blank("en")
    probed.add_pipe("textcat_probe")
    assert seen == [[]]
    probed.to_disk(tmp_path / "probed")
    spacy.load(tmp_path / "probed")
    assert seen == [[], ["textcat_probe"]]


def test_spacy_finds_the_component_by_its_name():
    (found,) = entry_points(group="spacy_factories", name="textcat_paum")
    assert found.load() is spacy_component.make
