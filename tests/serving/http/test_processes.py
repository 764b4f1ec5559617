"""The server's processes: what is not HTTP, clients that are slow or go away, processes that die."""

import contextlib
import os
import re
import signal
import socket
import subprocess
import sys
from pathlib import Path

import forked_commands
import pytest
from commands import COMMAND
from running_server import BODY, HEAD, answer_of, is_alive, wait_until

from textcat.base.errors import TextcatError
from textcat.serving.http.processes import inherited_socket, listen_at

pytest.importorskip("fastapi", reason="fastapi is not installed")
pytest.importorskip("prometheus_client", reason="prometheus-client is not installed")
pytest.importorskip("uvicorn", reason="uvicorn is not installed")
if not hasattr(os, "fork"):
    pytest.skip("system: there is no fork", allow_module_level=True)
pytestmark = pytest.mark.long


def test_what_is_slow_broken_or_no_http_is_told_so_and_others_are_served(serve):
    server = serve("--workers", "1", "--timeout", "1", "--log", "events")
    assert server.ask(b"\x16\x03\x01\x02\x00\x01\r\n\r\n")[0] == 400
    assert server.ask(b"GET / HTTP/9.9\r\n\r\n")[0] == 400
    assert server.ask(b"GET / HTTP/1.1\r\nx: " + b"a" * 70_000)[0] == 431
    assert server.ask(HEAD + b"content-length: 3\r\n\r\n")[0] in (400, 408)
    assert server.ask(HEAD[:20])[0] == 408
    assert server.ask(b"")[0] == 408
    assert server.ask(HEAD + BODY[:9])[0] == 408
    for _ in range(50):
        with server.connect() as connection:
            connection.sendall(HEAD + BODY[:9])
    with server.connect() as connection:  # two at once, in one piece
        connection.sendall((HEAD + BODY) * 2)
        assert answer_of(connection)[0] == 200
    assert server.ask(HEAD + BODY)[0] == 200
    assert server.stop()[0] == 0
    assert server.log.read_text() == ""


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="system: there is no /proc")
def test_a_process_that_dies_is_replaced_and_none_outlives_the_first(serve):
    server = serve("--workers", "2")
    assert server.ask(HEAD + BODY)[0] == 200
    first, _ = server.workers()
    os.kill(first, signal.SIGKILL)
    wait_until(lambda: len(server.workers()) == 2 and first not in server.workers())
    assert all(server.ask(HEAD + BODY)[0] == 200 for _ in range(10))
    workers = server.workers()
    server.process.kill()
    server.process.communicate()
    wait_until(lambda: not any(is_alive(process) for process in workers))


def test_an_address_that_others_reach_needs_keys_or_a_warning(monkeypatch):
    from textcat.serving.http.processes import is_loopback

    assert [is_loopback(host) for host in ("127.0.0.1", "::1", "localhost", "127.0.0.2")] == [True] * 4
    assert not any(is_loopback(host) for host in ("0.0.0.0", "::", "192.168.0.1", "example.org"))


def test_sighup_does_not_end_a_server_of_one_process(tmp_path):
    archive = tmp_path / "archive.jsonl"
    archive.write_text("".join(f'{{"text": "Wheat rose to {i} in London."}}\n' for i in range(40)))
    command = ["teach", str(archive), "--session", str(tmp_path / "session"), "--topic", "wheat", "--no-browser"]
    options = ["--description", "wheat", "--port", "0"]
    process = forked_commands.Popen([*COMMAND, *command, *options], stderr=subprocess.PIPE, text=True)
    try:
        address = next(found for line in process.stderr if (found := re.search(r"http://([\d.]+):(\d+)", line)))
        for _ in range(2):
            with socket.create_connection((address[1], int(address[2])), timeout=30) as connection:
                connection.sendall(b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n")
                assert connection.recv(100).startswith(b"HTTP/1.1 200 ")
            process.send_signal(signal.SIGHUP)
        process.terminate()
        process.communicate(timeout=60)
        assert process.returncode == 0
    finally:
        process.kill()
        process.communicate()


def _asked(path):
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.connect(str(path))
        connection.sendall(HEAD + BODY)
        return answer_of(connection)[0]


def test_a_unix_socket_is_for_the_group_and_is_replaced_only_if_no_server_listens(newswire_model, tmp_path):
    path = tmp_path / "socket"
    left = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    left.bind(str(path))
    left.close()  # as a server that was killed leaves it
    command = [*COMMAND, "serve", f"news={newswire_model}", "--unix-socket", str(path)]
    with forked_commands.Popen([*command, "--log", "events"], stderr=subprocess.PIPE, text=True) as server:
        assert server.stderr.readline().startswith(f"textcat: serving news at unix:{path} by")  # no warning of keys
        assert path.stat().st_mode & 0o777 == 0o660
        assert _asked(path) == 200
        other = forked_commands.run(command, text=True)
        assert (other.returncode, other.stderr) == (
            1,
            f"textcat: Cannot listen on the Unix socket {path}: Address already in use. Give another --unix-socket.\n",
        )
        assert _asked(path) == 200
        server.terminate()
        assert server.wait(60) == 0
    assert not path.exists()


def test_a_server_whose_queue_is_full_is_not_waited_for(newswire_model, tmp_path):
    path = tmp_path / "socket"
    with contextlib.ExitStack() as stack:
        busy = stack.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM))
        busy.bind(str(path))
        busy.listen(0)
        with contextlib.suppress(BlockingIOError):
            while True:
                client = stack.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM))
                client.setblocking(False)
                client.connect(str(path))
        with pytest.raises(TextcatError, match="Address already in use"), listen_at(path):
            pass
        assert path.is_socket()


def test_a_file_that_is_no_socket_is_not_replaced(newswire_model, tmp_path):
    path = tmp_path / "notes"
    path.write_text("kept")
    ended = forked_commands.run([*COMMAND, "serve", newswire_model, "--unix-socket", path], text=True)
    assert (ended.returncode, path.read_text()) == (1, "kept")


def test_a_socket_that_systemd_passes_is_used(newswire_model):
    # What systemd does: the socket is descriptor 3, and LISTEN_PID is the process that is started.
    passing = (
        "import os, sys; os.dup2(int(sys.argv[1]), 3);"
        "os.environ.update(LISTEN_PID=str(os.getpid()), LISTEN_FDS='1');"
        "os.execv(sys.executable, [sys.executable, '-m', 'textcat', 'serve', *sys.argv[2:]])"
    )
    with socket.create_server(("127.0.0.1", 0)) as listener:
        given, address = listener.fileno(), listener.getsockname()
        command = [sys.executable, "-c", passing, str(given), f"news={newswire_model}", "--log", "events"]
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, pass_fds=[given, 3]) as server:
            assert f"http://127.0.0.1:{address[1]} by" in server.stderr.readline()
            with socket.create_connection(address) as connection:
                connection.sendall(HEAD + BODY)
                assert answer_of(connection)[0] == 200
            server.terminate()
            assert server.wait(60) == 0
        socket.create_connection(address, timeout=60).close()  # waits for the server that systemd starts next


def test_several_sockets_that_systemd_passes_are_refused(monkeypatch):
    monkeypatch.setenv("LISTEN_PID", str(os.getpid()))
    monkeypatch.setenv("LISTEN_FDS", "2")
    with pytest.raises(
        TextcatError, match=r"^systemd has passed 2 sockets: give one ListenStream in the socket unit\.$"
    ):
        inherited_socket()
    assert "LISTEN_FDS" not in os.environ
