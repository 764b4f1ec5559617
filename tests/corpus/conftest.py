"""Fixtures that the tests of this folder share."""

import pytest
from cards_of_tin import SUM

from textcat.corpus import fetch


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    """An empty user cache and no other place to search."""
    monkeypatch.delenv("TEXTCAT_CORPORA", raising=False)
    monkeypatch.setattr(fetch, "cache_folder", lambda: tmp_path / "cache")
    return tmp_path / "cache"


@pytest.fixture
def write_card(tmp_path):
    def write(text="", urls=()):
        path = tmp_path / "cards" / "tin.toml"
        path.parent.mkdir(exist_ok=True)
        listed = ", ".join(f'"{url}"' for url in urls)
        path.write_text(
            text
            or f'reader = "reuters"\nfiles = ["tin.tar.gz"]\nurls = [{listed}]\nsha256 = {{ "tin.sgm" = "{SUM}" }}\n'
        )
        return path

    return write
