"""`textcat card` writes a card into the model's folder, where `report` finds it."""

import json
import sys

import pytest
from manifests import rewrite

from textcat.base.folders import MANIFEST
from textcat.model import CARD
from textcat.model.manifest import read_manifest


@pytest.fixture
def model(run, tmp_path):
    run("train", "newswire", "--recipe", "paum", "--out", tmp_path / "model")
    return tmp_path / "model"


def test_a_card_is_written_once_and_replaced_only_when_forced(run, model):
    run("card", model, "--bootstrap", "50", "--licence", "mit", "--title", "News of 1992")
    assert run.out == f"Card: {model / CARD}\n"
    assert "# News of 1992" in (model / CARD).read_text()
    assert "exists: replace it with --force" in run.refuses("card", model)
    run("card", model, "--force", "--bootstrap", "0")
    assert "without intervals" in (model / CARD).read_text()
    assert f"Its id is `{read_manifest(model).id}`." in (model / CARD).read_text()
    run("tag", model, stdin=b"Wheat rose.")
    assert run.code == 0  # the card is not among the files that are checked


@pytest.mark.parametrize("is_there", [True, False])
def test_a_card_that_is_a_link_is_replaced_and_not_written_through(run, model, tmp_path, is_there):
    secret = tmp_path / "secret"
    if is_there:
        secret.write_text("kept")
    (model / CARD).symlink_to(secret)
    assert "exists: replace it with --force" in run.refuses("card", model)
    assert "is a link" in run.refuses("report", model, "--out", tmp_path / "report.html")
    run("card", model, "--force", "--bootstrap", "0")
    assert "without intervals" in (model / CARD).read_text()
    assert not (model / CARD).is_symlink()
    assert secret.exists() == is_there


def test_a_card_is_printed(run, model):
    run("card", model, "--out", "-", "--bootstrap", "0")
    assert run.out.startswith("---\n")
    assert not (model / CARD).exists()


def test_a_report_shows_the_card_of_its_model_and_runs_nothing_of_it(run, model, tmp_path):
    (model / CARD).write_text("# Mine\n\n<script>alert(1)</script> and **more**\n")
    run("report", model, "--out", tmp_path / "report.html", "--bootstrap", "0")
    page = (tmp_path / "report.html").read_text()
    assert "<h3>Mine</h3>" in page
    assert "<script>alert" not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt; and <strong>more</strong>" in page


@pytest.mark.parametrize("resamples", ["0", "50"])
def test_the_learner_that_a_model_names_is_not_imported(run, model, tmp_path, monkeypatch, resamples):
    (tmp_path / "trapped.py").write_text("raise SystemExit('imported')")
    monkeypatch.syspath_prepend(tmp_path)
    entries = json.loads((model / MANIFEST).read_bytes())
    rewrite(model, recipe={**entries["recipe"], "learner": {"name": "trapped:Learner"}})
    run("card", model, "--bootstrap", resamples)
    assert run.code == 0
    assert "trapped" not in sys.modules
    assert "trapped:Learner" in (model / CARD).read_text()
