"""Fuzz everything that reads, each target in a process of its own, and print a row for each as Markdown.

``scripts/fuzz server`` fuzzes the HTTP server instead; see its --help.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from .targets import TARGETS

HEAD = "| target | minutes | inputs tried | peak memory | found |\n|---|---:|---:|---:|---|"


def main() -> None:
    if sys.argv[1:2] == ["server"]:
        from . import server  # here, for it needs what the others do not

        server.main(sys.argv[2:])
    options = _options()
    work = Path(options.out or tempfile.mkdtemp(prefix="textcat-fuzz-"))
    print(f"Logs, inputs and findings are in {work}.\n\n{HEAD}", flush=True)
    with ThreadPoolExecutor(options.jobs) as pool:
        rows = pool.map(lambda name: _run(name, work, options.minutes), options.targets or TARGETS)
        findings = [_print(row) for row in rows]
    sys.exit(any(findings))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="scripts/fuzz", description=__doc__)
    parser.add_argument("targets", nargs="*", choices=[*TARGETS, []], metavar="TARGET", help=f"{', '.join(TARGETS)}")
    parser.add_argument("--minutes", type=float, default=10, help="for each target (default: %(default)g)")
    parser.add_argument("--jobs", type=int, default=2, help="targets at the same time (default: %(default)s)")
    parser.add_argument("--out", help="folder for logs, inputs and findings; inputs found earlier are used again")
    return parser.parse_args()


def _run(name: str, work: Path, minutes: float) -> tuple[str, bool]:
    """Run a target; return its row and whether it found something."""
    folder = work / name
    folder.mkdir(parents=True, exist_ok=True)
    log = folder / "log"
    with log.open("wb") as file:
        command = [sys.executable, "-m", "fuzzing.one", name, str(folder), f"-max_total_time={60 * minutes:.0f}"]
        failed = subprocess.run(command, stdout=file, stderr=subprocess.STDOUT).returncode != 0
    return row(name, log, folder, failed), failed


def row(name: str, log: Path, folder: Path, failed: bool) -> str:
    """Make a row of what a target printed."""
    text = log.read_text(encoding="utf-8", errors="replace")
    done = re.search(r"^Done (\d+) runs in (\d+) second", text, re.MULTILINE)
    tried = re.search(r"^stat::number_of_executed_units: *(\d+)", text, re.MULTILINE)
    memory = re.search(r"^stat::peak_rss_mb: *(\d+)", text, re.MULTILINE)
    found = [path.name for kind in ("crash", "timeout", "oom", "leak") for path in sorted(folder.glob(f"{kind}-*"))]
    cells = [
        name,
        f"{int(done[2]) / 60:.1f}" if done else "interrupted",
        f"{int(tried[1]):,}" if tried else "",
        f"{memory[1]} MB" if memory else "",
        ", ".join(found) or ("see its log" if failed else "nothing"),
    ]
    return f"| {' | '.join(cells)} |"


def _print(result: tuple[str, bool]) -> bool:
    line, failed = result
    print(line, flush=True)
    return failed


if __name__ == "__main__":
    main()
