"""Rows made piece by piece are those of all texts in memory, whatever happens to pieces."""

import pytest
from pools import SMALL, content, read

from textcat.recipes.recipe import read_recipe
from textcat.teaching.pool import build_pool, index, texts


@pytest.mark.parametrize("recipe", ["active-learning", "default", "paum", "most"])
def test_rows_of_pieces_are_those_of_all_texts_in_memory(tmp_path, long_archive, in_pieces, monkeypatch, recipe):
    if recipe == "most":
        recipe = read_recipe("active-learning").with_settings(
            ["features.max_features=50", "features.zones={title=2,body=1}"]
        )
    with monkeypatch.context() as patched:
        patched.setattr(index, "from_texts", None)  # nothing is counted anew
        build_pool(long_archive, tmp_path / "pool", recipe=recipe, settings=SMALL)
    monkeypatch.setattr(texts, "PIECES_FROM", 1 << 40)
    build_pool(long_archive, tmp_path / "other", recipe=recipe, settings=SMALL)
    assert content(tmp_path / "pool") == content(tmp_path / "other")
    assert {"index/manifest.json", "_rejected.jsonl", "part-00000.jsonl"} < content(tmp_path / "pool").keys()


def pieces_in(folder):
    return sorted((folder / "_pieces").iterdir())


def test_pieces_that_are_damaged_or_missing_are_counted_anew(tmp_path, long_archive, in_pieces, caplog):
    expected = content(build_pool(long_archive, tmp_path / "pool", settings=SMALL).folder)
    for number, damage in enumerate(["cut", "gone", "flipped"]):
        folder = tmp_path / str(number)
        read(long_archive, folder)
        path = pieces_in(folder)[2 * number]
        data = path.read_bytes()
        path.write_bytes(data[:-100] if damage == "cut" else data[:2000] + bytes([data[2000] ^ 1]) + data[2001:])
        if damage == "gone":
            path.unlink()
        caplog.clear()
        assert content(build_pool(long_archive, folder, settings=SMALL).folder) == expected
        assert "Terms are counted again" in caplog.text
