"""`textcat doctor` prints facts for a report of an error, and ends in 1 if something is broken."""

import json

from textcat.doctor import kernels


def test_the_facts_are_printed_by_section_and_as_json(run, monkeypatch):
    checks = [kernels.KernelCheck(name, 0.1, "") for name in kernels.CHECKS]
    monkeypatch.setattr(kernels, "check_kernels_apart", lambda: checks)
    run("doctor")
    assert run.code == 0
    assert "versions\n  textcat   " in run.out
    assert f"kernels: {len(checks)} of {len(checks)} compute right" in run.out
    assert run.out.endswith("Nothing is broken.\n")
    run("doctor", "--as", "json")
    assert json.loads(run.out)["broken"] == []


def test_something_broken_is_told_and_is_the_exit_code(run, monkeypatch):
    monkeypatch.setattr(kernels, "check_kernels_apart", lambda: [kernels.KernelCheck("margin.rules", 0.1, "differs")])
    run("doctor")
    assert run.code == 1
    assert run.out.endswith("broken: The compiled module textcat.margin.rules is broken: differs.\n")
    assert run.err == ""
    run("doctor", "--as", "json")
    assert run.code == 1
    assert json.loads(run.out)["kernels"]["margin.rules"]["error"] == "differs"
