"""(b) The raw archive → an evaluated, saved model, as whole processes."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from measuring import Task, interleaved, whole_process

from textcat.documents import Corpus
from textcat.evaluation.export import markdown_table

TEXTCAT = "textcat train"


def measured(corpus: Corpus, rounds: int) -> str:
    """Write the table of the whole way."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        command = Path(sys.executable).with_name("textcat")
        script = Path(__file__).with_name("sklearn_pipeline.py")
        commands: dict[str, list[Any]] = {
            TEXTCAT: [command, "train", corpus.name, "--out", folder / "textcat"],
            **{
                f"scikit-learn ({backend})": [sys.executable, script, corpus.name, folder / backend, backend]
                for backend in ("loky", "threading")
            },
        }
        timings = interleaved({name: _process(line) for name, line in commands.items()}, rounds)
        shown = subprocess.run(
            [command, "evaluate", folder / "textcat", "--json"], capture_output=True, check=True, text=True
        )
        evaluations = {
            TEXTCAT: json.loads(shown.stdout),
            **{
                name: json.loads((folder / line[-1] / "evaluation.json").read_text())
                for name, line in commands.items()
                if name != TEXTCAT
            },
        }
    rows = [
        {
            "what": name,
            "seconds": timing,
            "textcat's part of it": timings[TEXTCAT].ratio(timing),
            "peak memory": f"{timing.result.peak_bytes / 1e6:.0f} MB",
            **{band["band"]: f"{band['macro_average_precision']:.3f}" for band in evaluations[name]["bands"]},
        }
        for name, timing in timings.items()
    ]
    return f"""## (b) From the raw archive to an evaluated, saved model

Whole processes, each started for one run. `textcat train {corpus.name}` with its default recipe, against
`scripts/benchmarks/sklearn_pipeline.py`: the same reader, `TfidfVectorizer`, `OneVsRestClassifier(SGDClassifier(),
n_jobs=2)` under each of joblib's backends, the same evaluation, the model pickled. The peak is that of the largest
process; under loky, scikit-learn's two workers come on top.

{markdown_table(rows)}"""


def _process(command: list[Any]) -> Task:
    return Task(lambda _: whole_process(command))
