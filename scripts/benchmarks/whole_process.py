"""Run a command with nothing shown, and print the seconds and the peak memory it took as JSON.

whole_process.py COMMAND [ARGUMENT ...]
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time


def main(command: list[str]) -> int:
    started = time.perf_counter()
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    taken = time.perf_counter() - started
    process.returncode = os.waitstatus_to_exitcode(status)
    print(json.dumps({"seconds": taken, "peak_bytes": usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024)}))
    return process.returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
