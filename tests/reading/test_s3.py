"""Archives on S3, by a server on this machine: the rows that local files give, resuming, and errors in sentences."""

import gzip
import io
import json
import re
import socket
import subprocess
import zipfile

import pytest
from archive_runs import make_archive, rows, run, written
from commands import COMMAND, environment

from textcat.base.errors import TextcatError

NAMES = ("a.jsonl", "b.jsonl.gz", "c.zip")


def zipped(data):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("c.jsonl", data)
    return file.getvalue()


def free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


@pytest.fixture(scope="module")
def server():
    from s3_server import Server  # not above: its import takes a second, in each process that only finds these tests

    server = Server()
    yield server
    server.end()


@pytest.fixture(autouse=True)
def settings(server, monkeypatch, tmp_path):
    from s3_server import use_server

    use_server(server, monkeypatch, tmp_path)


@pytest.fixture(scope="module")
def model(newswire_model):
    return newswire_model


@pytest.fixture(scope="module")
def local(server, tmp_path_factory):
    """A folder of three files, which are on the server, too."""
    folder = tmp_path_factory.mktemp("archive") / "in"
    make_archive(folder / "a.jsonl", 120)
    packed = gzip.compress(make_archive(folder / "b", 80, seed=1).read_bytes(), mtime=0)
    (folder / "b.jsonl.gz").write_bytes(packed)
    (folder / "c.zip").write_bytes(zipped(make_archive(folder / "c", 60, seed=2).read_bytes()))
    for name in ("b", "c"):
        (folder / name).unlink()
    for name in NAMES:
        server.put(f"in/{name}", (folder / name).read_bytes())
    return folder


@pytest.fixture(scope="module")
def of_files(model, local, tmp_path_factory):
    """What a run over the local files writes, as if they were on the server."""
    out = tmp_path_factory.mktemp("local") / "out"
    run(model, [local], out)
    return [part.replace(str(local).encode(), b"s3://news/in") for part in written(out)[1:]]


@pytest.mark.parametrize("inputs", [["s3://news/in/"], ["s3://news/in/a.jsonl", "s3://news/in/[bc]*"]])
def test_what_is_on_s3_is_tagged_as_the_same_files_here(model, of_files, tmp_path, inputs):
    summary = run(model, inputs, tmp_path / "out")
    assert list(written(tmp_path / "out")[1:]) == of_files
    assert summary.counts.records == 260


def test_parquet_on_s3_is_read_by_its_groups_of_rows(model, server, tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed")
    import pyarrow

    table = pyarrow.table({"id": [str(i) for i in range(100)], "text": ["wheat harvest"] * 100})
    parquet.write_table(table, tmp_path / "a.parquet", row_group_size=10)
    server.put("tables/a.parquet", (tmp_path / "a.parquet").read_bytes())
    run(model, ["s3://news/tables/a.parquet"], tmp_path / "out")
    rows = [json.loads(line) for line in written(tmp_path / "out")[1].splitlines()]
    assert [row["id"] for row in rows] == [str(i) for i in range(100)]


def test_the_command_reads_s3_in_a_process_of_its_own(model, local, of_files, tmp_path):
    command = [*COMMAND, "tag", str(model), "s3://news/in", "--out", "out"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, env=environment())
    assert (done.returncode, done.stderr) == (3, "")
    assert list(written(tmp_path / "out")[1:]) == of_files


class Broken(BaseException):
    pass


@pytest.mark.parametrize("after", [180, 240])
def test_a_run_over_s3_that_was_interrupted_resumes(model, of_files, tmp_path, after):
    def interrupt(progress):
        if progress.records > after:
            raise Broken

    with pytest.raises(Broken):
        run(model, ["s3://news/in"], tmp_path / "out", progress=interrupt)
    summary = run(model, ["s3://news/in"], tmp_path / "out")
    assert summary.before.counts.records < summary.counts.records == 260
    assert list(written(tmp_path / "out")[1:]) == of_files


@pytest.fixture
def goes(server):
    """Returns what is called with the progress of a run, and lets the server be gone from its first call on."""
    yield lambda progress: setattr(server, "is_gone", True)
    server.is_gone = False


def test_a_server_that_is_gone_midway_is_named_and_the_run_resumes(model, server, tmp_path, goes):
    for letter in "abc":
        server.put(f"whole/{letter}.jsonl", b"".join(b'{"text": "wheat harvest %d"}\n' % i for i in range(600)))
    run(model, ["s3://news/whole"], tmp_path / "undisturbed")
    with pytest.raises(TextcatError) as error:
        run(model, ["s3://news/whole"], tmp_path / "out", strict=True, progress=goes)
    assert re.match(
        r"s3://news/whole/[bc].jsonl: The file.* cannot be read \(ConnectionClosedError: ", str(error.value)
    )
    with pytest.raises(
        TextcatError, match=r"^s3://news/whole cannot be read \(Connection was closed.*\): check the addr"
    ):
        run(model, ["s3://news/whole"], tmp_path / "out", strict=True)
    server.is_gone = False
    summary = run(model, ["s3://news/whole"], tmp_path / "out", strict=True)
    assert 0 < summary.before.counts.records < summary.counts.records == 1800
    assert written(tmp_path / "out") == written(tmp_path / "undisturbed")


def test_what_a_server_does_not_give_midway_is_rejected_with_its_place(model, server, of_files, tmp_path, goes):
    summary = run(model, ["s3://news/in"], tmp_path / "out", progress=goes)
    server.is_gone = False
    faults = [json.loads(line) for line in written(tmp_path / "out")[2].splitlines()]
    lost = {fault["source"]: fault["reason"] for fault in faults if fault["source"] != "s3://news/in/a.jsonl"}
    assert set(lost) == {"s3://news/in/b.jsonl.gz", "s3://news/in/c.zip"}
    assert "cannot be read (ConnectionClosedError: Connection was closed" in lost["s3://news/in/b.jsonl.gz"]
    assert summary.counts.records == 122
    run(model, ["s3://news/in"], tmp_path / "out", restart=True)
    assert list(written(tmp_path / "out")[1:]) == of_files


@pytest.mark.parametrize("argument", ["s3://news/changing", "s3://news/changing/a.jsonl"])
def test_an_object_that_has_changed_is_tagged_again(model, server, tmp_path, argument):
    server.put("changing/a.jsonl", b'{"text": "wheat"}\n' * 20)
    run(model, [argument], tmp_path / "out")
    server.put("changing/a.jsonl", b'{"text": "maize"}\n' * 20)
    summary = run(model, [argument], tmp_path / "out")
    assert [name.rpartition("/")[2] for name in summary.growth.changed] == ["a.jsonl"]
    assert summary.counts.records == 20
    again = run(model, [argument], tmp_path / "undisturbed")
    assert summary.counts.topics == +again.counts.topics
    assert sorted(rows(tmp_path / "out")) == sorted(rows(tmp_path / "undisturbed"))


def test_what_is_not_on_s3_is_told_in_a_sentence(model, tmp_path, monkeypatch):
    import s3fs
    from s3_server import KEYS

    for url, sentence in {
        "s3://news/absent.jsonl": r"^s3://news/absent\.jsonl does not exist: check the address\.$",
        "s3://nowhere/a.jsonl": r"^s3://nowhere/a\.jsonl (does not exist|cannot be read \(.*\)): check the address",
        "s3://news/absent/*.jsonl": r"^No file matches s3://news/absent/\*\.jsonl: check the pattern\.$",
    }.items():
        with pytest.raises(TextcatError, match=sentence):
            run(model, [url], tmp_path / "out")
    for name in KEYS:
        monkeypatch.delenv(name)
    s3fs.S3FileSystem.clear_instance_cache()
    with pytest.raises(
        TextcatError, match=r"^s3://news/in cannot be read \(.*redentials.*\): check the address and your"
    ):
        run(model, ["s3://news/in"], tmp_path / "out")
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{free_port()}")
    for name in KEYS:
        monkeypatch.setenv(name, "x")
    s3fs.S3FileSystem.clear_instance_cache()
    with pytest.raises(TextcatError, match=r"^s3://news/in cannot be read \(.*onnect.*\): check the address"):
        run(model, ["s3://news/in"], tmp_path / "out")
