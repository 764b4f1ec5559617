"""Connections: heads, trailers, bodies and answers beyond their limits, and clients that close one half."""

import asyncio
import contextlib
import json
import re
import socket
import struct

import pytest
from serving_requests import TAG

uvicorn = pytest.importorskip("uvicorn", reason="uvicorn is not installed")

from textcat.serving.http import protocol  # noqa: E402
from textcat.serving.http.limits import Limits  # noqa: E402
from textcat.serving.http.log import Log  # noqa: E402
from textcat.serving.http.protocol import Protocol  # noqa: E402
from textcat.serving.tagging import Service  # noqa: E402

HEAD_BYTES = 1 << 16
BODY = b'{"text": "Wheat exports rose."}'
POST = b"POST %b HTTP/1.1\r\nhost: localhost\r\n" % TAG.encode()
WHOLE = POST + b"content-length: %d\r\n\r\n" % len(BODY) + BODY
CHUNKED = POST + b"transfer-encoding: chunked\r\n\r\n%x\r\n%b\r\n0\r\n" % (len(BODY), BODY)


@pytest.fixture
def short(store):
    """A service with small limits."""
    return Service(store, log=Log(None), limits=Limits(max_bytes=20_000, timeout=0.5))


@contextlib.asynccontextmanager
async def connected(app, limits):
    """A connection to an application, as a reader and a writer, and the connections that the server has."""
    config = uvicorn.Config(app, http=Protocol, lifespan="off", log_config=None)
    config.load()
    state, loop = uvicorn.server.ServerState(), asyncio.get_running_loop()
    Protocol.limits = limits
    server = await loop.create_server(lambda: Protocol(config, state, {}, loop), "127.0.0.1", 0)
    reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname()[:2], limit=1)
    try:
        yield reader, writer, state.connections
    finally:
        writer.close()
        server.close()
        Protocol.limits = Limits()


def converse(service, *pieces, eof=False):
    """All that the server sends until it closes the connection, while pieces are sent one after the other."""

    async def talk():
        async with connected(service, service.front.limits) as (reader, writer, _):
            for piece in pieces:
                writer.write(piece)
                await asyncio.sleep(0.01)
            if eof:
                writer.write_eof()
            return await asyncio.wait_for(reader.read(), 60)

    return asyncio.run(talk())


def statuses(data):
    return [int(status) for status in re.findall(rb"HTTP/1\.1 (\d+)", data)]


def head_of(length):
    """A request whose line and fields have this many bytes."""
    head = b"GET /v2 HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\nx: %b\r\n\r\n"
    return head % (b"a" * (length - len(head % b"")))


@pytest.mark.parametrize("pieces", [1, 3])
def test_a_head_may_have_exactly_the_bytes_of_the_limit(service, pieces):
    for length, status in ((HEAD_BYTES, 200), (HEAD_BYTES + 1, 431), (3 * HEAD_BYTES, 431)):
        head = head_of(length)
        step = -(-len(head) // pieces)
        assert statuses(converse(service, *(head[i : i + step] for i in range(0, len(head), step)))) == [status]


def test_a_second_head_in_the_same_piece_has_the_same_limit(service):
    first = head_of(1000).replace(b"connection: close\r\n", b"")
    assert statuses(converse(service, first + head_of(HEAD_BYTES))) == [200, 200]
    assert statuses(converse(service, first, head_of(HEAD_BYTES + 1)))[0] == 200


def test_trailers_are_counted_like_a_head(service):
    end = b"connection: close\r\n"
    few, many = b"x: y\r\n" * 10, b"x: y\r\n" * HEAD_BYTES
    whole = CHUNKED.replace(b"host:", end + b"host:") + few + b"\r\n"
    assert statuses(converse(service, whole)) == [200]
    assert statuses(converse(service, CHUNKED, *([many[: HEAD_BYTES // 2]] * 3))) == [431]
    assert statuses(converse(service, CHUNKED, b"x: ", *([b"y" * (HEAD_BYTES // 2)] * 3))) == [431]


def test_trailers_after_an_early_answer_end_the_connection(short):
    """Without a limit, a client without a key could send them for ever."""
    refused = CHUNKED.replace(TAG.encode(), b"/absent")
    assert statuses(converse(short, refused, *([b"x: y\r\n" * 5000] * 4))) == [404]
    assert statuses(converse(short, refused, b"x: ")) == [404]  # after the seconds of the limit


def test_a_client_that_closes_its_half_gets_its_answers(service):
    assert statuses(converse(service, WHOLE, eof=True)) == [200]
    assert statuses(converse(service, WHOLE + WHOLE + WHOLE, eof=True)) == [200, 200, 200]
    assert statuses(converse(service, WHOLE[:-5], eof=True)) == []
    assert statuses(converse(service, WHOLE[:20], eof=True)) == []


@pytest.mark.parametrize("step", [1 << 16, 7])
def test_a_request_for_an_upgrade_is_answered_as_one_without(service, step):
    """Java's client asks for HTTP/2 with its first request."""
    h2c = b"host: localhost\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAEAA\r\n"
    websocket = h2c.replace(b"h2c", b"websocket")
    sent = b"".join(one.replace(b"host: localhost\r\n", h2c) for one in (WHOLE, CHUNKED + b"\r\n", WHOLE))
    sent += WHOLE + WHOLE.replace(b"host: localhost\r\n", websocket)
    sent += b"GET /v2 HTTP/1.1\r\n" + websocket + b"\r\n" + b"CONNECT localhost:1 HTTP/1.1\r\nhost: localhost\r\n\r\n"
    data = converse(service, *(sent[i : i + step] for i in range(0, len(sent), step)), eof=True)
    assert statuses(data)[:6] == [200] * 6
    assert data.count(b'"topic":"wheat"') == 5


def test_of_many_requests_at_once_the_first_are_answered(service):
    answers = statuses(converse(service, b"GET /v2 HTTP/1.1\r\nhost: localhost\r\n\r\n" * 1000))
    assert set(answers) == {200}
    assert 100 <= len(answers) < 1000


def test_a_request_names_one_host(service):
    def ask(head):
        data = converse(service, b"GET /v2 HTTP/1.%b\r\nconnection: close\r\n%b\r\n" % head)
        return statuses(data), json.loads(data.partition(b"\r\n\r\n")[2])

    assert ask((b"1", b"host: localhost\r\n"))[0] == [200]
    assert ask((b"0", b""))[0] == [200]
    for head, n in (((b"1", b""), 0), ((b"1", b"host: localhost\r\n" * 2), 2), ((b"0", b"host: localhost\r\n" * 2), 2)):
        status, problem = ask(head)
        assert status == [400]
        assert f"{n} Host headers" in problem["detail"]


def test_what_a_stopping_server_is_still_asked_is_answered(service):
    Protocol.ending = True
    try:
        answers = converse(service, WHOLE + WHOLE)
    finally:
        Protocol.ending = False
    assert statuses(answers) == [200, 200]
    assert answers.count(b"connection: close") == 1
    Protocol.ending = True
    try:
        assert converse(service) == b""  # an idle connection is closed
    finally:
        Protocol.ending = False


def test_a_client_that_does_not_read_is_cut_off():
    async def app(scope, receive, send):
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": bytes(50_000_000)})

    async def talk(reads):
        async with connected(app, Limits(timeout=1)) as (reader, writer, connections):
            writer.write(b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n")
            for _ in range(80 if reads else 3000):
                await asyncio.sleep(0.02)
                for _ in range(8 * reads):
                    await reader.read(1 << 16)
                if not connections:
                    break
            return len(connections)

    assert asyncio.run(talk(reads=False)) == 0
    assert asyncio.run(talk(reads=True)) == 1


def test_of_all_that_is_not_read_the_largest_answer_is_cut_off(monkeypatch):
    monkeypatch.setattr(protocol, "UNREAD_BYTES", 60_000_000)

    async def app(scope, receive, send):
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": bytes(int(scope["path"][1:]) * 1_000_000)})

    async def talk():
        async with connected(app, Limits()) as (_, first, connections):
            address = first.get_extra_info("peername")
            _, second = await asyncio.open_connection(*address)
            for writer, size in ((first, b"50"), (second, b"30")):
                writer.write(b"GET /%b HTTP/1.1\r\nhost: localhost\r\n\r\n" % size)
                await asyncio.sleep(0.2)
            return [connection.cycle.scope["path"] for connection in connections]

    assert asyncio.run(talk()) == ["/30"]


def test_a_head_and_trailers_may_have_a_number_of_fields(service):
    """Short fields take twenty times their bytes."""
    some, many = b"x: y\r\n" * 198, b"x: y\r\n" * 199
    end = b"host: localhost\r\nconnection: close\r\n"
    assert statuses(converse(service, b"GET /v2 HTTP/1.1\r\n" + end + some + b"\r\n")) == [200]
    assert statuses(converse(service, b"GET /v2 HTTP/1.1\r\n" + end + many + b"\r\n")) == [431]
    whole = CHUNKED.replace(b"host:", b"connection: close\r\nhost:")
    assert statuses(converse(service, whole + b"x: y\r\n" + many + b"\r\n")) == [200]
    assert statuses(converse(service, whole + b"x: y\r\n" * 3 + many)) == [431]


@pytest.mark.parametrize(("size", "status"), [(1, 400), (5, 200), (1000, 200)])
def test_chunks_have_no_more_framing_than_content_but_for_the_bytes_of_a_head(store, size, status):
    service = Service(store, log=Log(None))
    body = json.dumps({"text": "a" * 100_000}).encode()
    chunks = b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in map(bytes, split(body, size)))
    head = POST + b"connection: close\r\ntransfer-encoding: chunked\r\n\r\n"
    assert statuses(converse(service, head + chunks + b"0\r\n\r\n")) == [status]


def split(data, size):
    """Pieces of this many bytes."""
    return [data[i : i + size] for i in range(0, len(data), size)]


def test_chunks_of_a_byte_are_put_together_to_bodies(service):
    chunks = b"".join(b"1\r\n%c\r\n" % byte for byte in BODY)
    head = POST + b"transfer-encoding: chunked\r\n\r\n"
    both = (head + chunks + b"0\r\n\r\n") * 2
    assert statuses(converse(service, both + WHOLE.replace(b"host:", b"connection: close\r\nhost:"))) == [200] * 3


@pytest.mark.parametrize("field", [b"gzip, chunked", b"gzip\r\ntransfer-encoding: chunked"])
def test_a_body_in_another_transfer_coding_is_refused(service, field):
    assert statuses(converse(service, CHUNKED.replace(b"chunked", field))) == [501]


@pytest.mark.parametrize(("target", "status"), [("localhost", 200), ("127.0.0.1:80", 200), ("evil.example", 421)])
def test_the_host_of_a_whole_url_counts_in_place_of_the_header(service, target, status):
    request = WHOLE.replace(TAG.encode(), f"http://{target}{TAG}".encode())
    for host in (b"localhost", b"evil.example"):
        own = request.replace(b"host: localhost", b"connection: close\r\nhost: " + host)
        assert statuses(converse(service, own)) == [status]


def test_bodies_of_requests_that_wait_are_not_read_ahead():
    """Nobody counts what they hold."""
    n, size = 300, 20_000
    release, held = asyncio.Event(), []

    async def app(scope, receive, send):
        body = await receive()
        await release.wait()
        while body.get("more_body"):
            body = await receive()
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"0")]})
        await send({"type": "http.response.body", "body": b""})

    async def talk():
        async with connected(app, Limits()) as (reader, writer, connections):
            writer.write((b"POST / HTTP/1.1\r\ncontent-length: %d\r\n\r\n" % size + b"a" * size) * n)
            await asyncio.sleep(0.3)
            (connection,) = connections
            held.append(sum(len(cycle.body) for cycle, _ in connection.pipeline))
            release.set()
            data = b""
            while data.count(b"HTTP/1.1 200") < n:
                data += await asyncio.wait_for(reader.read(1 << 16), 60)

    asyncio.run(talk())
    assert 0 < held[0] < 600_000 < n * size


def test_a_request_is_told_that_its_client_has_gone():
    gone = []

    async def app(scope, receive, send):
        is_gone = scope["extensions"][protocol.GONE]
        gone.append(is_gone())
        for _ in range(100):
            await asyncio.sleep(0.01)
            if is_gone():
                break
        gone.append(is_gone())

    async def talk():
        async with connected(app, Limits()) as (_, writer, _connections):
            writer.write(b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n")
            await asyncio.sleep(0.1)
            reset(writer)
            while len(gone) < 2:
                await asyncio.sleep(0.01)

    asyncio.run(talk())
    assert gone == [False, True]


def reset(writer):
    """Break a connection off; closed in the ordinary way, the server would only learn that nothing more is sent."""
    linger = struct.pack("ii", 1, 0)
    writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
    writer.transport.abort()


def test_nothing_stays_of_an_idle_connection_that_is_broken_off(service):
    async def talk():
        async with connected(service, Limits()) as (reader, writer, connections):
            writer.write(WHOLE)
            answer = b""
            while not answer.endswith(b"]}"):
                answer += await reader.read(1 << 16)
            (connection,) = connections
            assert connection.timeout_keep_alive_task is not None
            reset(writer)
            while connections:
                await asyncio.sleep(0.01)
            return connection.timeout_keep_alive_task

    assert asyncio.run(talk()) is None


@pytest.mark.parametrize(("size", "answered"), [(100, True), (200_000, False)])
def test_a_large_body_of_a_client_that_has_gone_is_not_worked_on(store, size, answered):
    service = Service(store, log=Log(None))
    body = json.dumps({"text": "a" * size}).encode()
    sent = []

    async def receive():
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message):
        sent.append(message)

    scope = {"type": "http", "method": "POST", "path": TAG, "query_string": b"", "headers": [(b"host", b"localhost")]}
    asyncio.run(service({**scope, "extensions": {protocol.GONE: lambda: True}}, receive, send))
    assert bool(sent) is answered
