"""Attacks are bounded in time, and a trial that does not hold is named and makes the script fail."""

import sys
import types

import attacks.__main__ as attack
import pytest
from attacks.commands import Ended


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


@pytest.mark.parametrize(
    ("code", "err", "clean", "refused"),
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
