"""An argument that names files or folders is one path, or several paths, and nothing else."""

from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest
from cases import every

import textcat
from textcat.base.errors import TextcatError
from textcat.base.paths import named_paths


@every(
    "named, paths",
    [
        ("a", ["a"]),
        (Path("a"), [Path("a")]),
        (["a", Path("b")], ["a", Path("b")]),
        (pd.Series(["a", "b"]), ["a", "b"]),
        (np.array(["a"]), ["a"]),
        ((name for name in "ab"), ["a", "b"]),
        ([], []),
    ],
)
def test_one_path_or_several_may_be_named(named, paths):
    assert named_paths(named) == paths


@every(
    "wrong, kind",
    [
        (pd.DataFrame({"text": ["Wheat rose"]}), "the type DataFrame is no path"),
        (pl.DataFrame({"text": ["Wheat rose"]}), "the type DataFrame is no path"),
        ([{"text": "Wheat rose"}], "the type dict is no path"),
        ([b"a"], "the type bytes is no path"),
        (None, "the type NoneType is no path"),
        (3, "the type int is no path"),
    ],
)
def test_documents_in_memory_are_no_paths(wrong, kind, tmp_path):
    for read in (
        lambda: textcat.find_duplicates(wrong, tmp_path / "out"),
        lambda: textcat.build_pool(wrong, tmp_path / "out"),
        lambda: textcat.merge_parts(wrong, tmp_path / "out"),
        lambda: textcat.monitor_tags(wrong),
        lambda: textcat.estimate_trends(wrong),
    ):
        with pytest.raises(TextcatError, match=f"{kind}: give the paths of files or folders"):
            read()
    assert not [*tmp_path.iterdir()]


@every("read", [textcat.monitor_tags, textcat.estimate_trends, lambda folder: textcat.merge_parts(folder, "out")])
def test_a_single_folder_need_not_be_in_a_list(read):
    with pytest.raises(TextcatError, match="missing-folder"):
        read("missing-folder")
