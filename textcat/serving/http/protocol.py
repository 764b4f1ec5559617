"""HTTP/1.1 with limits on what a client may send, and on the answers that it leaves unread."""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import Callable
from http import HTTPStatus
from typing import Any, ClassVar

import httptools
import numpy as np
from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from textcat.serving.http.limits import Limits
from textcat.serving.http.problems import GONE, TYPE, Problem

_HEAD_BYTES = 1 << 16  # maximum bytes of a request's line and headers, and of the trailers after a chunked body
_FIELDS = 200  # maximum number of header fields, and of trailers: each takes some 150 bytes, even if 6 were sent
_CONNECTIONS = 4096  # maximum number of connections of a process
_PIPELINED = 100  # maximum number of requests of a connection that wait for the answers to earlier ones
_DISCARDED = 1 << 26  # maximum bytes of a body that are read after the answer
UNREAD_BYTES = 1 << 26  # maximum bytes of answers that all clients of a process have not read yet
_GRACE = 0.5  # seconds until a refused client is cut off, or a client that is idle when the process stops


class _Flow(FlowControl):
    """Stops reading from a connection while requests of the connection wait for their turn.

    The limit on the memory of all requests does not count the bodies of waiting requests.
    """

    def __init__(self, transport: Any, waiting: deque[Any]) -> None:
        super().__init__(transport)
        self._waiting = waiting

    def resume_reading(self) -> None:
        """Go on reading, unless requests of the connection are waiting."""
        if not self._waiting:
            super().resume_reading()


class Protocol(HttpToolsProtocol):
    """Extend uvicorn's protocol by limits on the bytes that a client may send, and that it may leave unread."""

    limits = Limits()
    shares = np.zeros(1, np.int64)  # number of connections of each process
    slot = 0  # index of this process in `shares`
    ending = False  # whether the process is stopping: each connection gets one more answer
    _unread: ClassVar[dict[Protocol, int]] = {}  # unsent bytes of answers, by connection

    _timer: asyncio.TimerHandle | None = None  # timer for a head, or for a body after its answer
    _reader_timer: asyncio.TimerHandle | None = None  # timer for unread answers
    _in_head = True
    _upgrades = False  # whether the head that was read last asks for an upgrade
    _head = 0  # bytes of the head so far
    _fields = 0  # number of fields in the head or the trailers so far
    _silent = 0  # bytes since the last content of the body: trailers, and the framing of chunks
    _framing = 0  # bytes by which the framing of chunks exceeds the content and the allowance
    _discarded = 0  # bytes of a body after its answer
    _deaf = False  # True: ignore whatever the client still sends

    def connection_made(self, transport: Any) -> None:
        """Wait for the head of a request, or refuse the connection if there are too many."""
        super().connection_made(transport)
        self.flow = _Flow(transport, self.pipeline)
        self._parts: list[bytes] = []  # parts of the body in the data being parsed
        self._in_piece = 0  # bytes of the body in these data
        if len(self.connections) > _CONNECTIONS:
            self._refuse(503, "There are too many connections: try again in a second.")
        elif self.ending:
            self.shutdown()
        else:
            self._start_timer(self._late)

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the timers, and end the request that is being answered."""
        self.shares[self.slot] -= 1
        self._stop_timer()
        self._stop_reader_timer()
        self._stop_keep_alive_timer()  # uvicorn ends it only if the client closed the connection properly
        super().connection_lost(exc)

    def _stop_keep_alive_timer(self) -> None:
        if self.timeout_keep_alive_task is not None:
            self.timeout_keep_alive_task.cancel()
            self.timeout_keep_alive_task = None

    # --- what the client sends ---

    def data_received(self, data: bytes) -> None:
        """Pass received data to the parser, limited to the maximum size of a head while a head is parsed."""
        while data and not self._deaf and not self.transport.is_closing():
            length = _HEAD_BYTES - self._head if self._in_head else len(data)
            piece, data = data[:length], data[length:]
            if self._in_head:
                if self._timer is None and not self._head:
                    self._start_timer(self._late)
                self._head += len(piece)
            self._in_piece = 0
            self._stop_keep_alive_timer()
            self._parse(piece)
            self._pass_body_on()
            self._check_sizes(len(piece))

    def _parse(self, data: bytes) -> None:
        """Pass data to the parser; a request for an upgrade to another protocol is read as one without it."""
        while data:
            try:
                self.parser.feed_data(data)
                return
            except httptools.HttpParserUpgrade as upgrade:  # the parser takes what follows for the other protocol
                data = self._head_without_upgrade() + data[upgrade.args[0] :] if self._upgrades else b""
            except httptools.HttpParserError:
                self.send_400_response("")
                return

    def _head_without_upgrade(self) -> bytes:
        """Return the head that was read last, without the fields that ask for an upgrade, for a new parser."""
        first = b"%s %s HTTP/%s\r\n" % (self.parser.get_method(), self.url, self.parser.get_http_version().encode())
        fields = [b"%s: %s\r\n" % field for field in self.headers if field[0] not in (b"upgrade", b"connection")]
        closes = b"" if self.parser.should_keep_alive() else b"connection: close\r\n"
        self.parser = httptools.HttpRequestParser(self)
        with contextlib.suppress(AttributeError):  # as uvicorn does, if httptools can
            self.parser.set_dangerous_leniencies(lenient_data_after_close=True)
        self._upgrades, self._fields = False, 0
        return b"".join([first, *fields, closes, b"\r\n"])

    def _check_sizes(self, length: int) -> None:
        if self._deaf or self.transport.is_closing():
            return
        if self._in_head:
            if self._head >= _HEAD_BYTES:
                self._refuse_head("header")
            return
        self._silent = 0 if self._in_piece else self._silent + length
        self._framing += length - 2 * self._in_piece
        if self._silent > _HEAD_BYTES:
            self._refuse_head("trailer")
        elif self._framing > 0:
            self._refuse(400, "The chunks of the body have more framing than content: send larger ones.")
        elif self.cycle.response_complete:
            self._discarded += length
            if self._discarded > _DISCARDED:
                self.transport.close()

    def on_header(self, name: bytes, value: bytes) -> None:
        """Add a field to the head; fields of trailers are dropped."""
        self._fields += 1
        if self._deaf:
            return
        if self._fields > _FIELDS:
            part = "header" if self._in_head else "trailer"
            self._refuse(431, f"The {part} of the request has more than {_FIELDS} fields: send fewer.")
        elif self._in_head:
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """Start to answer the request, or let it wait until earlier requests are answered."""
        if self._deaf or self.transport.is_closing():
            return
        if self.parser.should_upgrade() and self.parser.get_method() != b"CONNECT":
            self._upgrades = True
            return
        waiting = self.cycle if self.cycle is not None and not self.cycle.response_complete else None
        if len(self.pipeline) >= _PIPELINED:
            self._hear_no_more()
            return
        # Reset, because the data may hold the end of another request before this head.
        names_and_values = sum(len(name) + len(value) + 4 for name, value in self.headers)
        if len(self.url) + names_and_values + len(self.parser.get_method()) + 14 > _HEAD_BYTES:
            self._refuse_head("header")
            return
        codings = b",".join(value for name, value in self.headers if name == b"transfer-encoding")
        if codings.strip().lower() not in (b"", b"chunked"):
            self._refuse(501, "The body has a transfer coding other than chunked: send it without, or chunked.")
            return
        if not self.url.startswith(b"/"):
            self._take_host_of_url()
        self._in_head, self._head, self._fields, self._silent, self._discarded = False, 0, 0, 0, 0
        self._framing = -2 * _HEAD_BYTES  # allow as much again, because the data include the end of the head
        self._stop_timer()
        self.scope["extensions"] = {GONE: self.transport.is_closing}  # type: ignore[dict-item]
        super().on_headers_complete()
        if self.ending:
            self.cycle.keep_alive = False
            if waiting is not None:
                waiting.keep_alive = True  # otherwise, the connection would end before the last answer

    def _take_host_of_url(self) -> None:
        """If the request line has a whole URL, replace the header Host by the URL's host, which takes precedence."""
        if host := httptools.parse_url(self.url).host:
            self.headers[:] = [(name, host if name == b"host" else value) for name, value in self.headers]

    def on_body(self, body: bytes) -> None:
        """Collect a part of a request's body; parts received at one time are passed on together.

        There are many such parts if the client sends tiny chunks.
        """
        self._parts.append(body)

    def _pass_body_on(self) -> None:
        if not self._parts:
            return
        body = b"".join(self._parts)
        self._parts.clear()
        self._in_piece += len(body)
        if not self._deaf and not self.transport.is_closing():
            super().on_body(body)

    def on_message_complete(self) -> None:
        """End the body, and expect the head of another request."""
        if self._upgrades:
            return
        self._pass_body_on()
        self._fields = 0
        if self._deaf or self.transport.is_closing():
            return
        super().on_message_complete()
        self._in_head = True
        if self.cycle.response_complete:  # answered before the body was complete
            self._stop_timer()
            self.timeout_keep_alive_task = self.loop.call_later(
                self.timeout_keep_alive, self.timeout_keep_alive_handler
            )

    def on_response_complete(self) -> None:
        """Answer the next request of the connection.

        If the request was answered before all of its body had arrived, limit the time in which the rest may arrive.
        """
        super().on_response_complete()
        if not self._in_head and self.cycle.response_complete and not self.transport.is_closing():
            self._start_timer(self.transport.close)  # the rest of the body is read, so that the client sees the answer

    def eof_received(self) -> bool:  # type: ignore[override]
        """Return True if a client that has finished sending still gets an answer: the connection stays open.

        Return False if no answer is due: asyncio then closes the connection.
        """
        if self.cycle is None or self.cycle.response_complete or not self._in_head:
            return False
        self._hear_no_more()
        return True

    def _hear_no_more(self) -> None:
        """Ignore all further input from the client, and close the connection after the last answer."""
        self._deaf, self.cycle.keep_alive = True, False
        self._stop_timer()

    # --- refusals ---

    def send_400_response(self, msg: str) -> None:
        """Refuse a request that the parser cannot read."""
        self._refuse(400, "The request is not valid HTTP/1.1.")

    def _refuse_head(self, part: str) -> None:
        self._refuse(431, f"The {part} of the request has more than {_HEAD_BYTES:,} bytes: send a shorter one.")

    def _late(self) -> None:
        self._timer = None
        if not self.transport.is_closing():
            self._refuse(408, f"The header of the request did not arrive within {self.limits.timeout:g} seconds.")

    def _refuse(self, status: int, detail: str) -> None:
        """Send an error and close the connection, or only close it if no error can be sent now."""
        if self.transport.is_closing() or self._deaf:
            return
        cycle = self.cycle
        if self._in_head and cycle is not None and not cycle.response_complete:
            self._hear_no_more()  # answers to earlier requests come first
            return
        if self._in_head or not cycle.response_started:
            body = Problem(status, detail).as_json("")
            head = f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\ncontent-type: {TYPE.decode()}\r\n"
            self.transport.write(f"{head}content-length: {len(body)}\r\nconnection: close\r\n\r\n".encode() + body)
        self._deaf = True
        self._stop_timer()
        self.transport.write_eof()
        # immediate closing might prevent the client from reading the answer
        self.loop.call_later(_GRACE, self.transport.close)

    def _start_timer(self, function: Callable[[], object]) -> None:
        self._stop_timer()
        self._timer = self.loop.call_later(self.limits.timeout, function)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    # --- what the client does not read ---

    def pause_writing(self) -> None:
        """Watch a client that does not read its answer.

        If all clients together leave too many bytes unread, cut off the client that leaves most unread.
        """
        super().pause_writing()
        self._stop_reader_timer()
        self._unread[self] = self._unread_bytes()
        self._reader_timer = self.loop.call_later(self.limits.timeout, self._check_reader)
        if sum(self._unread.values()) > UNREAD_BYTES:
            max(self._unread, key=lambda protocol: self._unread[protocol]).transport.abort()

    def resume_writing(self) -> None:
        """Continue to send the answer, after the client has read enough of it."""
        self._stop_reader_timer()
        super().resume_writing()

    def _check_reader(self) -> None:
        """Cut off the connection if the client has read nothing since the last check."""
        unread = self._unread_bytes()
        if unread >= self._unread[self]:
            self.transport.abort()
            return
        self._unread[self] = unread
        self._reader_timer = self.loop.call_later(self.limits.timeout, self._check_reader)

    def _unread_bytes(self) -> int:
        return int(self.transport.get_write_buffer_size())

    def _stop_reader_timer(self) -> None:
        self._unread.pop(self, None)
        if self._reader_timer is not None:
            self._reader_timer.cancel()
            self._reader_timer = None

    # --- the end ---

    def shutdown(self) -> None:
        """Close the connection after its current answer.

        An idle connection is closed after a moment, or after the answer to a request that arrives by then.
        """
        if self.cycle is None or self.cycle.response_complete:
            self._stop_timer()
            self.loop.call_later(_GRACE, super().shutdown)
        else:
            self.cycle.keep_alive = False
