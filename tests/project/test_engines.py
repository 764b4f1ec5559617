"""The page on tagging in parts: the scripts of its engines, run by a shell with the variables that the engines set."""

import os
import re
import subprocess
from pathlib import Path

import pytest
import yaml

PAGE = (Path(__file__).parents[2] / "docs/how-to/parts.md").read_text(encoding="utf-8")


def script_of_slurm():
    return re.search(r"```text\n(#!/bin/bash\n.*?)```", PAGE, re.DOTALL)[1]


def script_of_kubernetes():
    job = yaml.safe_load(re.search(r"```yaml\n(.*?)```", PAGE, re.DOTALL)[1])
    assert job["spec"]["completions"] == 64
    return job["spec"]["template"]["spec"]["containers"][0]["args"][0]


@pytest.mark.parametrize("ends", [0, 3, 1])
@pytest.mark.parametrize(
    ("script", "variables"),
    [
        (script_of_slurm, {"SLURM_ARRAY_TASK_ID": "7", "SLURM_ARRAY_TASK_COUNT": "64"}),
        (script_of_kubernetes, {"JOB_COMPLETION_INDEX": "6"}),
    ],
)
def test_a_task_tags_its_part_and_fails_only_if_the_part_is_unfinished(tmp_path, script, variables, ends):
    command = tmp_path / "textcat"
    command.write_text(f'#!/bin/sh\necho "$@"\nexit {ends}\n')
    command.chmod(0o755)
    environment = {"PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}", **variables}
    run = subprocess.run(["bash", "-c", script()], env=environment, capture_output=True, text=True)
    assert run.returncode == (ends == 1)
    assert "tag /shared/model /shared/archive" in run.stdout
    assert "--part 7/64 --out /shared/parts/7" in run.stdout
