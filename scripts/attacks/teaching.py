"""Attack the server of a session by requests and connections that no client should send or hold; it keeps answers."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

from attacks.clients import JSON, Crowd, Kind, Trial, common_kinds, crowd_trials, malformed_requests, request_trials
from attacks.commands import run, write_archive
from attacks.running import Server, request, started

_PATH = "/api/v1/teach"
_TOPIC = "grain"
_DOCUMENTS = 300
_HELD = 200  # connections: a session has a single process
_BRACKETS = "(" * 100_000


def _post(route: str, body: object, headers: Sequence[str] = ()) -> bytes:
    return request(route, body, [*JSON, *headers], _PATH)


def _get(route: str, headers: Sequence[str] = (), **fields: object) -> bytes:
    query = "&".join(f"{name}={quote(str(value))}" for name, value in fields.items())
    head = [f"GET {_PATH}{route}?{query} HTTP/1.1", "Host: localhost", *headers]
    return "\r\n".join([*head, "", ""]).encode()


def hostile_requests() -> dict[str, bytes]:
    """Return requests that no client of a session should send, by their names."""
    answer = {"topic": _TOPIC, "position": 0, "answer": "yes"}
    answers = {
        "unknown keys": answer | {f"k{i}": i for i in range(530_000)},
        "more than a body may have": answer | {"note": "a" * 11_000_000},
        "a position beyond the archive": answer | {"position": 2**31 - 1},
        "a position beyond all numbers": answer | {"position": 10**400},
        "a negative position": answer | {"position": -1},
        "half a character": answer | {"note": "\ud800", "person": "\udfff"},
        "control characters": answer | {"person": "\0\r\n\x1b[2J", "note": "\0\u2028"},
        "answers for topics that are not there": answer | {"others": {f"t{i}": "yes" for i in range(1000)}},
    }
    topics = {
        "a description of brackets": {"description": _BRACKETS},
        "a query of brackets": {"query": _BRACKETS[:1000]},
        "a query of quotes and operators": {"query": '"-"*~^:\\' * 100},
        "criteria of brackets": {"criteria": _BRACKETS, "exclusion_reasons": ["(" * 100] * 100},
        "examples that are not there": {"examples": [f"no{i}" for i in range(1000)]},
        "half a character in a name": {"topic": "\ud800"},
        "a path in a name": {"topic": "../../../../etc/passwd\0"},
    }
    found = {"topic": _TOPIC, "query": "wheat"}
    return {
        **malformed_requests(f"{_PATH}/answer"),
        **{name: _post("/answer", body) for name, body in answers.items()},
        **{name: _post("/topics", {"topic": name} | body) for name, body in topics.items()},
        "a keyword of brackets": _post("/keyword", {"topic": _TOPIC, "term": _BRACKETS[:1000], "speaks_for": True}),
        "an answer from a page of another site": _post("/answer", answer, ["Origin: http://evil.example"]),
        "an answer of another session": _post("/answer", answer, ["If-Match: other"]),
        "an answer that is not declared as JSON": request("/answer", answer, ["Content-Type: text/plain"], _PATH),
        "a question from a page of another site": _get("/question", ["Sec-Fetch-Site: cross-site"], topic=_TOPIC),
        "a search for brackets": _get("/search", query=_BRACKETS[:1000]),
        "a search for operators": _get("/search", query='"-"*~^:\\' * 100),
        "the last results of a search": _get("/search", **found, offset=2**31 - 1, limit=200),
        "evidence of a document that is not there": _get("/evidence", topic=_TOPIC, position=2**31 - 1),
        "progress towards nothing": _get("/progress", topic=_TOPIC, target="nan", confidence="inf"),
        "a list that is not there": _get("/queue", name="../../etc/passwd"),
        "an export of nothing": _get("/export", what="model", topic="../.."),
    }


def _kinds() -> dict[str, Kind]:
    """Return the kinds of hostile connections to a session, by their names."""
    asked = _get("/question", topic=_TOPIC)
    return {
        **common_kinds(f"{_PATH}/answer"),
        "half-closed after a request": Kind(asked, closes_half=True),
        "searches": Kind(b"", _get("/search", query=_BRACKETS[:1000]), 0),
        "answers not read": Kind(b"", _get("/judgements", topic=_TOPIC, limit=1000) * 10, 0, reads=False),
        "requests sent ahead": Kind(b"", asked * 10, 0, reads=False),
        "exports": Kind(b"", _get("/export", what="corpus"), 1, reads=False),
    }


def trials(folder: Path, rng: random.Random, hold_seconds: float) -> Iterator[Trial]:
    """Yield trials against the server of a new session in a folder."""
    archive = write_archive(folder / "teach.jsonl", _DOCUMENTS)
    session = folder / f"session-{rng.randrange(10**9)}"
    with _teaching(archive, session) as server:
        yield "hostile requests to a session: before them", server.answers_soon(), "an ordinary answer was not taken"
        yield from request_trials(server, "hostile requests to a session", hostile_requests())
        names = (
            "connections held to a session",
            "answers of a session after held connections",
            "memory given back by a session",
        )
        yield from crowd_trials(Crowd(server, _HELD, _kinds()), hold_seconds, *names)
        wrong = [event for event in server.events() if event["event"] == "error"]
        yield "errors of a session", not wrong, str(wrong[:1])
        yield "answers kept by a session", *_kept(server, archive, session)


@contextmanager
def _teaching(archive: Path, session: Path) -> Iterator[Server]:
    arguments = ["teach", str(archive), "--session", str(session), "--topic", _TOPIC, "--query", "wheat"]
    ordinary = _post("/answer", {"topic": _TOPIC, "position": 1, "answer": "yes", "person": "a", "ask": False})
    log = session.with_suffix(".log")
    with started([*arguments, "--no-browser", "--jobs", "1"], log, ordinary) as server:
        yield server


def _kept(server: Server, archive: Path, session: Path) -> tuple[bool, str]:
    """End the server, and return whether the last answer that it has taken is in the session."""
    last = {"topic": _TOPIC, "position": 7, "answer": "no", "person": "the last"}
    status, _ = server.ask(_post("/answer", last))
    code = server.end()
    labels = session.with_suffix(".labels.jsonl")
    ended = run(["teach", archive, "--session", session, "--export", "audit", "--out", labels])
    rows = [json.loads(line) for line in labels.read_text().splitlines()] if labels.exists() else []
    is_there = any("the last" in json.dumps(row) for row in rows)
    ok = status == 200 and code == 0 and ended.clean and is_there
    return ok, f"status {status}, exit {code}; the last answer is {'' if is_there else 'not '}there; {ended.detail}"
