"""The figures that the papers print, to set ours beside them."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib  # type: ignore[import-not-found, unused-ignore]


def published() -> dict[str, Any]:
    """Return the published figures by paper and table: ``published()["micra"]["table1"]["perceptron"]``.

    What a list holds, and in which unit, stands beside it in ``published.toml``.
    """
    return tomllib.loads(Path(__file__).with_name("published.toml").read_text(encoding="utf-8"))
