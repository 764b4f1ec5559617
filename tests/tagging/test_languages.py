"""Models by language: each document goes to the model of its language, and those of other languages are told."""

import json
import shutil

import pytest
from tagged_rows import rows

import textcat
from textcat.base.errors import TextcatError
from textcat.model.manifest import read_manifest
from textcat.review.review import Review
from textcat.tagging import job as job_module
from textcat.tagging.output import OutputSettings
from textcat.tagging.planning import make_plan
from textcat.tagging.run import tag_archive

pytest.importorskip("py3langid")

TEXTS = {
    "en": {
        "ships": "The ship left the harbour with a cargo of timber for the northern ports",
        "bread": "The baker puts the bread into the oven before the sun rises over the village",
    },
    "sv": {
        "ships": "Fartyget lämnade hamnen med en last av timmer till de norra städerna",
        "bread": "Bagaren ställer in brödet i ugnen innan solen går upp över byn på morgonen",
    },
}
FINNISH = "Laiva lähti satamasta kohti pohjoista mukanaan suuri lasti puutavaraa kaupunkeja varten"


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """A folder of two tiny models, named after their languages, and a file that is none."""
    folder = tmp_path_factory.mktemp("models")
    for language, texts in TEXTS.items():
        records = [{"text": text, "topics": [topic]} for topic, text in texts.items() for _ in range(6)]
        recipe = textcat.read_recipe("default").with_settings([f"tokens.lang={language}", "tags.strategy=zero"])
        textcat.save(textcat.train(records, recipe), folder / language)
    (folder / "README.txt").write_text("Models by language.")
    return folder


@pytest.fixture
def archive(tmp_path):
    """Documents of both languages in turn, one in Finnish, and one without a letter."""
    texts = [TEXTS[language][topic] for topic in ("ships", "bread") for language in ("en", "sv")]
    lines = [{"id": str(i), "text": text} for i, text in enumerate([*texts, FINNISH, "1984", *texts])]
    path = tmp_path / "news.jsonl"
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    return path


def tag(models, archive, out, **output):
    settings = OutputSettings(**output)
    return tag_archive(models, [archive], out, output_settings=settings, jobs=1, lang="auto")


def written(out, pattern="*.jsonl"):
    return rows(b"".join(path.read_bytes() for path in sorted(out.glob(pattern)) if path.name[0] != "_"))


def test_each_document_is_tagged_by_the_model_of_its_language_in_the_order_of_the_input(models, archive, tmp_path):
    summary = tag(models, archive, tmp_path / "out")
    found = written(tmp_path / "out")
    assert [row["id"] for row in found] == ["0", "1", "2", "3", "6", "7", "8", "9"]
    assert [[tag["topic"] for tag in row["topics"]] for row in found] == [["ships"]] * 2 + [["bread"]] * 2 + [
        ["ships"]
    ] * 2 + [["bread"]] * 2
    ids = [read_manifest(models / language).id for language in TEXTS]
    assert [row["model"] for row in found] == ids * 4
    for language, places in (("en", [0, 2]), ("sv", [1, 3])):
        alone = textcat.load(models / language).tag([*TEXTS[language].values()])
        scores = [[round(tag.score, 4) for tag in tags] for tags in alone]
        assert [[tag["score"] for tag in found[i]["topics"]] for i in places] == scores
    assert summary.counts.languages == {"en": 4, "sv": 4, "fi": 1, "?": 1}
    assert summary.counts.topics == {"ships": 4, "bread": 4}
    assert summary.train_sizes == {"bread": 12, "ships": 12}


def test_documents_of_other_languages_are_rejected_with_the_reason(models, archive, tmp_path):
    summary = tag(models, archive, tmp_path / "out")
    rejected = rows((tmp_path / "out" / "_rejected.jsonl").read_bytes())
    assert [(row["position"], row["reason"]) for row in rejected] == [
        (5, "It is in fi, and there are models for en, sv only."),
        (6, "It has no letter to tell its language by."),
    ]
    assert (summary.counts.rejected, summary.counts.tagged) == (2, 8)


@pytest.mark.parametrize("output", [{}, {"to": "csv"}, {"explain": 2}, {"to": "csv", "per_document": True}], ids=str)
def test_documents_of_other_languages_can_be_written_without_topics(models, archive, tmp_path, output):
    summary = tag(models, archive, tmp_path / "out", other_languages="untagged", **output)
    assert (summary.counts.rejected, summary.counts.tagged, summary.counts.untagged) == (0, 10, 2)
    if output.get("to") != "csv":
        found = written(tmp_path / "out")
        assert [row["id"] for row in found] == [str(i) for i in range(10)]
        assert [row["id"] for row in found if not row["topics"]] == ["4", "5"]
        assert [row["id"] for row in found if "model" not in row] == ["4", "5"]


def test_scores_of_one_document_are_those_of_many(models, archive, tmp_path, monkeypatch):
    tag(models, archive, tmp_path / "many")
    load = job_module.load_tagger

    class Failing:
        """A tagger that scores one document at a time only."""

        def __init__(self, tagger):
            self._tagger = tagger

        def __getattr__(self, name):
            return getattr(self._tagger, name)

        def scores(self, records):
            if len(records) > 1:
                raise ValueError("too many")
            return self._tagger.scores(records)

    monkeypatch.setattr(job_module, "load_tagger", lambda job: Failing(load(job)))
    job_module.load_taggers.cache_clear()
    tag(models, archive, tmp_path / "one")
    job_module.load_taggers.cache_clear()
    assert written(tmp_path / "many") == written(tmp_path / "one")


def test_an_interrupted_run_keeps_its_counts_of_languages(models, archive, tmp_path):
    first, again = (tag(models, archive, tmp_path / "out") for _ in range(2))
    assert again.before.finished
    assert again.counts.languages == first.counts.languages


@pytest.mark.parametrize("is_beside", [True, False])
def test_rules_may_hold_for_a_language_that_is_identified_or_named(models, archive, tmp_path, is_beside):
    archive.write_text(archive.read_text().replace('"id": "0"', '"id": "0", "language": "en-GB"'))
    text, rules = '[[when]]\nlanguage = ["en"]\nnever = ["ships"]\n', ""
    if is_beside:
        folder = tmp_path / "models"
        shutil.copytree(models, folder)
        (folder / "en.rules.toml").write_text(text)
    else:
        folder, rules = models, str(tmp_path / "house.toml")
        (tmp_path / "house.toml").write_text(text)
    summary = tag(folder, archive, tmp_path / "out", rules=rules)
    assert summary.counts.rules == {"for language en: never ships": 2}
    topics = [[one["topic"] for one in row["topics"]] for row in written(tmp_path / "out")]
    assert topics == [[], ["ships"], ["bread"], ["bread"]] * 2
    (folder / "en.rules.toml" if is_beside else tmp_path / "house.toml").write_text(text.replace("ships", "bread"))
    with pytest.raises(TextcatError, match="other rules"):
        tag(folder, archive, tmp_path / "out", rules=rules)


@pytest.mark.parametrize(
    ("folder", "lang", "output", "message"),
    [
        ("", "", {}, r"holds several models \(en, sv\): name one of them, or give --lang auto"),
        ("en", "auto", {}, r"has no models by language, as --lang auto needs them"),
        ("", "sv", {}, r"cannot be 'sv': give 'auto', or the model of this language"),
        ("", "auto", {"topics": ("ships",)}, r"--topic chooses topics of one model"),
        ("", "auto", {"other_languages": "lost"}, r"can be 'rejected' or 'untagged', not 'lost'"),
        ("", "auto", {"min_probability": 0.5}, r"has no probabilities"),
    ],
)
def test_what_does_not_fit_models_by_language_is_told(models, archive, folder, lang, output, message):
    with pytest.raises(TextcatError, match=message):
        make_plan(models / folder, [archive], output_settings=OutputSettings(**output), lang=lang)


def test_a_correction_and_an_explanation_are_of_the_model_that_tagged_the_document(models, archive, tmp_path):
    tag(models, archive, tmp_path / "out")
    review = Review(tmp_path / "out")
    ids = {language: read_manifest(models / language).id for language in TEXTS}
    for document in review.documents:
        (language,) = (language for language in TEXTS if document.model == ids[language])
        (given,) = (tag.topic for tag in document.tags)
        terms = {reason.term for reason in review.explain(document.number, given)}
        assert terms <= {*textcat.load(models / language).features.get_feature_names_out()}
        assert review.correction(document.number, {given: True}).model == document.model
