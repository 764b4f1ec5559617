"""Fixtures that several files of tests of this room share."""

import pytest
from hostile_reports import HOSTILE, letters

import textcat
from textcat.report.write import write_report


@pytest.fixture(scope="session")
def model():
    corpus = letters(topics=HOSTILE, n=60)
    return textcat.train(corpus, textcat.read_recipe("paum")), corpus


@pytest.fixture(scope="session")
def file(model, tmp_path_factory):
    folder = tmp_path_factory.mktemp("report")
    tagger, corpus = model
    return write_report(
        folder / "report.html", tagger, corpus, label_issues=folder / "label-issues.jsonl", resamples=100
    )


@pytest.fixture
def opened(new_page, file):
    """Opens a report, by default the hostile one."""
    return lambda path=file, **options: new_page(path.as_uri(), **options)
