"""Keys of people."""

import errno
import os
import threading

import pytest
from serving_requests import assert_problem, get

from textcat.base.errors import TextcatError
from textcat.serving.http.keys import Keys, new_key
from textcat.serving.http.log import Log
from textcat.serving.tagging import Service


def test_a_key_opens_what_is_closed_and_is_kept_as_a_sum(store, tmp_path):
    key, line = new_key("alice")
    assert key not in line
    file = tmp_path / "keys"
    file.write_text(f"# people\n{line}\n{new_key('bob')[1]}  # and their machines\n", encoding="utf-8")
    keys = Keys(file)
    assert keys.name_of(key.encode()) == "alice"
    service = Service(store, log=Log(None), keys=keys)
    assert_problem(get(service, "/api/v1/models"), 401, "key is needed")
    assert get(service, "/api/v1/models").headers["www-authenticate"] == "Bearer"
    assert_problem(get(service, "/metrics", headers={"authorization": "Bearer no"}), 401, "The key is unknown")
    assert get(service, "/api/v1/models", headers={"authorization": f"Bearer {key}"}).status_code == 200
    assert get(service, "/metrics", headers={"x-api-key": key}).status_code == 200
    assert get(service, "/v2/health/live").status_code == 200
    assert get(service, "/openapi.json").json()["security"]
    file.write_text(f"alice {key}\n", encoding="utf-8")
    with pytest.raises(TextcatError, match="Line 1") as raised:
        Keys(file)
    assert key not in str(raised.value)
    file.write_text("# none\n", encoding="utf-8")
    with pytest.raises(TextcatError, match="has no key"):
        Keys(file)
    with pytest.raises(TextcatError, match="--new-key"):
        Keys(tmp_path / "absent")


def test_a_revoked_key_stops_working_when_its_file_changes(tmp_path):
    (first, first_line), (second, second_line) = new_key("first"), new_key("second")
    file = tmp_path / "keys"
    file.write_text(f"{first_line}\n{second_line}\n")
    keys = Keys(file)
    assert not keys.refresh()
    file.write_text(f"{second_line}\n")
    assert keys.refresh()
    assert [keys.name_of(key.encode()) for key in (first, second)] == [None, "second"]
    file.write_text(f"damaged\n{second_line}\n")
    with pytest.raises(TextcatError, match="Line 1"):
        keys.refresh()
    assert not keys.refresh()  # told once
    assert [keys.name_of(key.encode()) for key in (first, second)] == [None, "second"]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="system: there are no pipes")
@pytest.mark.parametrize("kind", ["pipe", "device", "folder"])
def test_nobody_enters_when_the_file_is_replaced_by_what_is_no_file(tmp_path, kind):
    key, line = new_key("alice")
    file = tmp_path / "keys"
    file.write_text(line)
    keys = Keys(file)
    file.unlink()
    {"pipe": os.mkfifo, "device": lambda path: path.symlink_to("/dev/zero"), "folder": os.mkdir}[kind](file)
    with pytest.raises(TextcatError, match=r"regular file|directory"):
        keys.refresh()
    assert not keys.refresh()  # told once
    assert keys.name_of(key.encode()) is None
    file.rmdir() if kind == "folder" else file.unlink()
    file.write_text(line)
    assert keys.refresh()
    assert keys.name_of(key.encode()) == "alice"


def a_service(store, tmp_path):
    """Return a service with one key, a function that asks with the key, and the file of keys."""
    key, line = new_key("alice")
    file = tmp_path / "keys"
    file.write_text(line)
    service = Service(store, log=Log(None), keys=Keys(file))

    def status():
        service.front.refresh_keys(now=True)
        return get(service, "/api/v1/models", headers={"authorization": f"Bearer {key}"}).status_code

    assert status() == 200
    return service, status, file


EMPTIED = {
    "empty": lambda file: file.write_text(""),
    "blank": lambda file: file.write_text(" \n\t\n"),
    "comments": lambda file: file.write_text("# alice is gone\n"),
    "absent": lambda file: file.unlink(),
    "without its folder": lambda file: file.parent.rename(file.parent.with_name("away")),
    "no text": lambda file: file.write_bytes(b"\xff\xfe\x00"),
    "cut": lambda file: file.write_bytes(file.read_bytes()[:-1]),
    "a link to itself": lambda file: (file.unlink(), file.symlink_to(file)),
}


@pytest.mark.parametrize("way", EMPTIED)
def test_nobody_enters_while_the_file_has_no_key(store, tmp_path, way):
    folder = tmp_path / "secrets"
    folder.mkdir()
    service, status, file = a_service(store, folder)
    EMPTIED[way](file)
    assert status() == 401
    assert get(service, "/api/v1/models").status_code == 401  # nor without any key
    assert service.openapi()["security"]


def test_keys_count_again_when_a_passing_fault_has_gone(store, tmp_path, monkeypatch):
    _, status, file = a_service(store, tmp_path)

    def fail(path):
        raise OSError(errno.EIO, "Input/output error", str(path))

    os.utime(file, (1, 1))
    with monkeypatch.context() as patch:
        patch.setattr("textcat.serving.http.keys.open_regular", fail)
        assert status() == 401
    assert status() == 200  # the file has not changed since


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="system: there are no pipes")
def test_keys_are_read_from_a_pipe_once(tmp_path):
    key, line = new_key("alice")
    pipe = tmp_path / "keys"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_text, args=(line,))
    writer.start()
    keys = Keys(pipe)
    writer.join()
    assert not keys.refresh()
    assert keys.name_of(key.encode()) == "alice"
