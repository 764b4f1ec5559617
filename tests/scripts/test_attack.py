"""Attacks are bounded in time, and a trial that does not hold is named and makes the script fail."""

import socket
import sys
import threading
import time
import types

import attacks.__main__ as attack
import pytest
from attacks import clients, commands, running, server, teaching
from attacks.commands import Ended
from cases import every


@pytest.fixture
def attack_with(monkeypatch, capsys):
    """Run the script with one kind of attack, whose trials are as told."""

    def run(*trials):
        module = types.ModuleType("attacks.invented")
        module.trials = lambda random, seconds: iter(trials)
        monkeypatch.setitem(sys.modules, "attacks.invented", module)
        monkeypatch.setattr(attack, "KINDS", {"invented": "what a test tells"})
        monkeypatch.setattr(sys, "argv", ["attack", "invented"])
        with pytest.raises(SystemExit) as end:
            attack.main()
        return end.value.code, capsys.readouterr().out

    return run


def test_trials_that_hold_are_counted_and_the_script_succeeds(attack_with):
    code, out = attack_with(("kill", True, ""), ("kill", True, ""), ("cut", True, ""))
    assert not code
    rows = [line.split("│")[1:4] for line in out.splitlines() if "invented: " in line]
    assert [[cell.strip() for cell in row] for row in rows] == [
        ["invented: kill", "2", "2"],
        ["invented: cut", "1", "1"],
    ]


def test_a_trial_that_fails_is_named_and_fails_the_script(attack_with):
    code, out = attack_with(("kill", True, ""), ("kill", False, "exit None after 60 s"))
    assert code == 1
    assert "FAILED invented: kill: exit None after 60 s" in out


@pytest.mark.parametrize("kind", attack.KINDS)
def test_each_kind_has_trials(kind):
    module = pytest.importorskip(f"attacks.{kind}", reason=f"system: attacks.{kind} needs what is not installed")
    assert callable(module.trials)


@every(
    "code, err, clean, refused",
    [
        (0, "", True, False),
        (1, "textcat: No model here: train one.\n", True, True),
        (1, "textcat: warning: a\ntextcat: b\n", True, False),
        (1, "Traceback (most recent call last):\n", False, False),
        (None, "", False, False),
    ],
)
def test_an_end_is_clean_or_refused(code, err, clean, refused):
    ended = Ended(code, "", err, 0.1)
    assert (ended.clean, ended.refused) == (clean, refused)


def test_a_training_that_had_to_be_killed_gives_no_model_to_attack(monkeypatch, tmp_path):
    monkeypatch.setattr(commands, "run", lambda arguments: Ended(None, "", "", 60.0))
    with pytest.raises(RuntimeError, match="No model to attack"):
        commands.train_model(tmp_path)


def test_attacks_on_servers_are_as_many_as_told(monkeypatch):
    codes = []
    module = types.ModuleType("attacks.server")
    module.Counts = server.Counts
    monkeypatch.setitem(sys.modules, "attacks.server", module)
    for options, wanted in (
        ([], server.Counts()),
        (["--kills", "50", "--hold-seconds", "0.5"], server.Counts(kills=50, hold_seconds=0.5)),
    ):
        module.trials = lambda random, seconds, counts, wanted=wanted: iter([("told", counts == wanted, str(counts))])
        monkeypatch.setattr(sys, "argv", ["attack", "server", *options])
        with pytest.raises(SystemExit) as end:
            attack.main()
        codes.append(end.value.code)
    assert codes == [False, False]


@pytest.fixture
def listener():
    """A socket that answers each request, and the server that it stands for."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.settimeout(10)
        yield (
            listening,
            types.SimpleNamespace(
                address=listening.getsockname(),
                connect=lambda: socket.create_connection(listening.getsockname(), timeout=10),
            ),
        )


def test_answers_that_clients_do_not_get_are_counted_but_for_those_of_killed_workers(listener):
    listening, stand_in = listener
    load = clients.Load(stand_in, n=1)
    ports = []
    for answer in (
        b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 2\r\n\r\n{}",
        b"HTTP/1.1 503 Busy\r\nconnection: close\r\n\r\n",
        b"",
    ):
        connection, (_, port) = listening.accept()
        ports.append(port)
        connection.recv(1000)
        connection.sendall(answer)
        connection.close()
    listening.close()
    load.end()
    assert load.answered == 1
    lost = load.lost_beside([])
    assert [how.partition(" at ")[0] for how in lost][:1] == ["status 503"]
    assert any(how.endswith(f" at port {ports[2]}") for how in lost)
    moment = min(moment for moment, _, _ in load.lost)
    assert load.lost_beside([(moment, {port for _, port, _ in load.lost})]) == []


def test_a_crowd_holds_connections_of_each_kind_and_sends_what_they_send(listener):
    listening, stand_in = listener
    kinds = {"held": clients.Kind(b"abc"), "slow": clients.Kind(b"d", b"e", 0.01)}
    crowd = clients.Crowd(stand_in, 4, kinds)
    received = []

    def read():
        connections = [listening.accept()[0] for _ in range(4)]
        time.sleep(0.3)
        received.extend(connection.recv(1000) for connection in connections)

    thread = threading.Thread(target=read)
    thread.start()
    crowd.hold(0.6)
    thread.join()
    assert sorted(data[:2] for data in received) == [b"ab", b"ab", b"de", b"de"]
    assert crowd.bytes_sent >= sum(map(len, received))


@pytest.mark.parametrize(
    ("share", "wanted"),
    [(1.0, running.PATIENCE), (0.25, 2 * running.PATIENCE), (0.0, running.LONGEST)],
)
def test_patience_with_a_server_lasts_until_it_has_had_enough_of_a_processor(monkeypatch, share, wanted):
    now = [0.0]
    clock = types.SimpleNamespace(
        monotonic=lambda: now[0], sleep=lambda seconds: now.__setitem__(0, now[0] + 10 * seconds)
    )
    monkeypatch.setattr(running, "time", clock)
    stand_in = object.__new__(running.Server)
    stand_in.answers = lambda: False
    stand_in.seconds = lambda: share * now[0]
    assert not stand_in.answers_soon()
    assert wanted < now[0] <= wanted + 2


def test_hostile_requests_are_of_many_kinds_and_differ():
    for requests in (server.hostile_requests(), teaching.hostile_requests()):
        assert len(set(requests.values())) == len(requests) > 15
        assert {"no host", "two hosts", "unknown keys", "brackets within brackets"} <= requests.keys()
