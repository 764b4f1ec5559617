"""The process above those that serve: what becomes of the others when it gets signals or is killed."""

import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from running_server import BODY, HEAD, answer_of, is_alive, wait_until

from textcat.base.folders import exchange_folders
from textcat.serving.http.keys import new_key
from textcat.serving.http.supervisor import Replacements

pytest.importorskip("fastapi", reason="fastapi is not installed")
pytest.importorskip("prometheus_client", reason="prometheus-client is not installed")
pytest.importorskip("uvicorn", reason="uvicorn is not installed")
if not Path("/proc/self/task").exists():
    pytest.skip("system: there is no /proc", allow_module_level=True)
pytestmark = pytest.mark.long


class Clock:
    """A clock that is set by hand."""

    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


def test_pauses_double_while_short_lives_follow_each_other():
    clock = Clock()
    replacements = Replacements(clock)

    def pause(lived, slot=0):
        begun, clock.now = clock.now, clock.now + lived
        replacements.add(slot, begun)
        seconds = replacements.seconds()
        clock.now += seconds
        assert replacements.take() == [slot]
        assert replacements.seconds() is None
        return seconds

    assert [pause(0.5) for _ in range(7)] == [1, 2, 4, 8, 16, 30, 30]
    assert pause(0.5, slot=1) == 1
    assert pause(3600) == 0
    assert [pause(4.9), pause(4.9), pause(5), pause(0)] == [1, 2, 0, 1]


def test_each_process_has_its_own_pause():
    clock = Clock()
    replacements = Replacements(clock)
    clock.now = 10
    replacements.add(0, 9)
    replacements.add(1, 0)
    assert replacements.take() == [1]
    clock.now = 10.5
    replacements.add(1, 10)
    assert (replacements.take(), replacements.seconds()) == ([], 0.5)
    clock.now = 11
    assert (replacements.take(), replacements.seconds()) == ([0], 0.5)


# In a process of its own, which has no other children, and whose signals nobody else handles.
WAITING = """
import os, signal, threading, time
from pathlib import Path
from textcat.serving.http.supervisor import Supervisor

started = Path("started")

def work(slot, replaces):
    with started.open("a") as file:
        file.write(f"{slot} ")
    if slot == 0:
        os._exit(1)
    threading.Event().wait()

def children():
    return [int(number) for number in Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()]

def disturb():
    while not started.exists() or len(started.read_text().split()) != 2 or len(children()) != 2:  # other, process 1
        time.sleep(0.01)
    os.kill(children()[-1], signal.SIGKILL)
    while len(children()) != 1:
        time.sleep(0.01)
    os.kill(os.getpid(), signal.SIGTERM)

def clock():  # it stands still: the process 0 is never due again
    return 0.0

other = os.fork()
if not other:
    signal.pause()
supervisor = Supervisor(work, 2, lambda: None, lambda: None, 5, clock)
threading.Thread(target=disturb, daemon=True).start()
number = supervisor.run()
os.kill(other, signal.SIGKILL)
print("ended by", number, "and another child by", os.waitstatus_to_exitcode(os.waitpid(other, 0)[1]))
"""


def test_a_process_that_waits_for_its_replacement_holds_neither_others_nor_signals_up(tmp_path):
    environment = {**os.environ, "PROMETHEUS_MULTIPROC_DIR": str(tmp_path)}
    command = [sys.executable, "-c", WAITING]
    options = {"cwd": tmp_path, "env": environment, "text": True, "capture_output": True, "timeout": 60}
    ended = subprocess.run(command, check=False, **options)
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.splitlines()[-1] == "ended by 15 and another child by -9"
    assert sorted((tmp_path / "started").read_text().split()) == ["0", "1"]


def test_a_killed_supervisor_leaves_no_processes_and_no_folders(serve, tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    server = serve("--workers", "2")
    assert server.ask(HEAD + BODY)[0] == 200
    (folder,) = tmp_path.glob("textcat-serve-*")
    workers = server.workers()
    server.process.kill()
    server.process.communicate()
    wait_until(lambda: not any(is_alive(process) for process in workers))
    assert not folder.exists()


def test_systemd_is_told_when_signals_no_longer_end_the_server(newswire_model, tmp_path):
    path = tmp_path / "notify"
    command = [sys.executable, "-m", "textcat", "serve", newswire_model, "--workers", "1", "--port", "0"]
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as systemd:
        systemd.bind(str(path))
        systemd.settimeout(60)
        environment = {**os.environ, "NOTIFY_SOCKET": str(path)}
        with subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True) as server:
            assert systemd.recv(100) == b"READY=1"
            server.send_signal(signal.SIGHUP)
            server.terminate()
            assert server.wait(60) == 0, server.stderr.read()
            systemd.settimeout(0)
            with pytest.raises(BlockingIOError):  # told once
                systemd.recv(100)


RELOADED_AT_START = """
import os, pathlib, signal, sys, time
from textcat.__main__ import main
from textcat.serving.http import processes
from textcat.serving.tagging import Service

run_alone, reload = processes.run_alone, Service.reload

def run_later(*arguments, **options):
    os.kill(os.getppid(), signal.SIGHUP)
    for _ in range(1000):
        if signal.SIGHUP in signal.sigpending():
            break
        time.sleep(0.01)
    return run_alone(*arguments, **options)

def note(service):
    pathlib.Path("reloaded").write_text("yes")
    reload(service)

processes.run_alone, Service.reload = run_later, note
main()
"""


def test_sighup_while_a_process_starts_is_heard_when_it_has_started(newswire_model, tmp_path):
    command = [sys.executable, "-c", RELOADED_AT_START, "serve", newswire_model, "--workers", "1", "--port", "0"]
    with subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True) as server:
        try:
            wait_until(lambda: (tmp_path / "reloaded").exists())
            server.terminate()
            assert server.wait(60) == 0, server.stderr.read()
        finally:
            server.kill()


def test_sighup_reads_the_keys_again_and_ends_nothing(serve, tmp_path):
    (first, first_line), (second, second_line) = new_key("first"), new_key("second")
    file = tmp_path / "keys"
    file.write_text(first_line)
    server = serve("--workers", "1", "--keys", str(file))

    def status(key):
        return server.ask(HEAD[:-2] + f"x-api-key: {key}\r\n\r\n".encode() + BODY)[0]

    assert (status(first), status(second)) == (200, 401)
    workers = server.workers()
    file.write_text(second_line)
    server.process.send_signal(signal.SIGHUP)
    wait_until(lambda: (status(first), status(second)) == (401, 200))
    file.write_text(f"damaged\n{second_line}")
    server.process.send_signal(signal.SIGHUP)
    wait_until(lambda: "keys_failed" in server.log.read_text())
    assert (status(first), status(second)) == (401, 200)
    assert server.workers() == workers
    assert server.stop()[0] == 0


def test_connections_that_wait_when_the_server_is_to_stop_are_answered(serve):
    server = serve("--workers", "1")
    assert server.ask(HEAD + BODY)[0] == 200
    (worker,) = server.workers()
    os.kill(worker, signal.SIGSTOP)  # so that connections wait to be accepted
    connections = [server.connect() for _ in range(40)]
    for connection in connections:
        connection.sendall(HEAD + BODY)
    server.process.send_signal(signal.SIGTERM)
    threading.Timer(0.3, os.kill, (worker, signal.SIGCONT)).start()
    answers = [answer_of(connection)[0] for connection in connections]
    for connection in connections:
        connection.close()
    assert answers == [200] * 40
    assert server.stop()[0] == 0


def test_a_model_truncated_in_place_is_told_until_its_folder_is_replaced(newswire_model, serve, tmp_path):
    folder, good = tmp_path / "model", tmp_path / "good"
    for copy in (folder, good):
        shutil.copytree(newswire_model, copy)
    server = serve(f"copy={folder}", "--workers", "2", "--log", "events")
    head = HEAD.replace(b"/news/", b"/copy/")
    assert server.ask(head + BODY)[0] == 200
    os.truncate(folder / "bias.npy", 0)  # reading a page that is mapped there ends a process

    def answer():
        try:
            return server.ask(head + BODY)
        except ConnectionError:
            return 0, {}

    for _ in range(10):
        status, problem = answer()
    assert status == 503
    assert "bias.npy" in problem["detail"]
    assert server.ask(HEAD + BODY)[0] == 200  # another model's
    log = server.log.read_text()
    assert 1 <= log.count('"process_died"') <= 4
    assert f"The model {folder} is damaged, bias.npy is not as it was written" in log
    exchange_folders(folder, good)
    wait_until(lambda: all(answer()[0] == 200 for _ in range(5)))
    assert server.stop()[0] == 0
