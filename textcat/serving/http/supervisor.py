"""The supervisor of the serving processes: it starts them, replaces those that die, and ends them."""

from __future__ import annotations

import contextlib
import gc
import os
import select
import signal
import socket
import sys
import threading
import time
import traceback
from collections.abc import Callable
from types import FrameType
from typing import NamedTuple

from textcat.serving.http.log import Log

_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGALRM) if hasattr(os, "fork") else ()
_SHORT = 5.0  # a process that dies after fewer seconds is replaced only after a pause,
_PAUSE, _LONGEST = 1.0, 30.0  # whose seconds double while such deaths follow each other
_NOTICE_SECONDS = 5.0  # for systemd to take a notice
_MORE = 5.0  # seconds that processes have to end, in addition to those of running requests


class _Process(NamedTuple):
    slot: int  # index of the process
    begun: float


class Replacements:
    """Plan when processes that have died are replaced; `clock` returns the time in seconds.

    Each process has a number, which the process that replaces it inherits. A process that lived long is replaced at
    once. If a process and those that replace it die soon after their start, again and again, the pauses before the next
    process is started grow: 1, 2, 4 … up to 30 seconds.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._pauses: dict[int, float] = {}  # the last pause for each index
        self._due: dict[int, float] = {}  # when to start processes, by index

    def add(self, slot: int, begun: float) -> None:
        """Plan to replace a process that has just died, given its number (`slot`) and when it was started."""
        now = self._clock()
        pause = min(max(2 * self._pauses.get(slot, 0), _PAUSE), _LONGEST) if now - begun < _SHORT else 0.0
        self._pauses[slot], self._due[slot] = pause, now + pause

    def take(self) -> list[int]:
        """Return the numbers of the processes that are to be started now, and forget these plans."""
        now = self._clock()
        slots = [slot for slot, due in self._due.items() if due <= now]
        for slot in slots:
            del self._due[slot]
        return slots

    def seconds(self) -> float | None:
        """Return the seconds until the next process is to be started; None if none is."""
        return max(0.0, min(self._due.values()) - self._clock()) if self._due else None


class Supervisor:
    """Fork the processes that serve, replace those that die, and end them at a signal.

    Forked processes share the memory of the models; with uvicorn's own supervisor, each process would load the models.
    The processes end when this process, the supervisor, ends, even if it is killed.

    Parameters
    ----------
    work : function of int and bool
        Serves in a new process. It gets the number of the process, and whether the process replaces another one.
    n : int
        Number of processes.
    on_stop : function
        Called when a signal is to end the processes, before they get the signal.
    on_orphaned : function
        Called in a process that ends because this process was killed.
    stop_seconds : float
        Seconds in which running requests must end.
    clock : function
        Returns the time in seconds, for the pauses before processes are replaced.
    """

    def __init__(
        self,
        work: Callable[[int, bool], object],
        n: int,
        on_stop: Callable[[], object],
        on_orphaned: Callable[[], object],
        stop_seconds: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._work, self._n, self._on_stop, self._on_orphaned = work, n, on_stop, on_orphaned
        self._seconds = stop_seconds + _MORE
        self._started: dict[int, _Process] = {}
        self._clock, self._replacements = clock, Replacements(clock)
        self._stop, self._process = 0, os.getpid()
        self._log = Log()
        self._has_terminal = sys.stderr is not None and sys.stderr.isatty()

    def run(self) -> int:
        """Serve until a signal ends the processes; return the signal's number."""
        handlers = (self._end, self._end, self._reload, self._kill)
        before = {number: signal.signal(number, function) for number, function in zip(_SIGNALS, handlers, strict=True)}
        alive, self._living = os.pipe()  # closed when this process ends, however it ends
        self._alive = alive
        self._signals, self._written = os.pipe()  # gets a byte at each signal
        os.set_blocking(self._signals, False)
        os.set_blocking(self._written, False)
        before[signal.SIGCHLD] = signal.signal(signal.SIGCHLD, lambda number, frame: None)
        former = signal.set_wakeup_fd(self._written, warn_on_full_buffer=False)
        gc.collect()
        gc.freeze()
        try:
            for slot in range(self._n):
                self._start(slot, replaces=False)
            _notify_systemd()
            self._wait()
        finally:
            signal.alarm(0)
            signal.set_wakeup_fd(former)
            for number, handler in before.items():
                signal.signal(number, handler)
            for descriptor in (alive, self._living, self._signals, self._written):
                os.close(descriptor)
        return self._stop

    def _start(self, slot: int, *, replaces: bool) -> None:
        sys.stdout.flush()
        sys.stderr.flush()
        # Block signals: one that arrives before the new process sets its handlers would be lost.
        signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
        process = 0 if self._stop else os.fork()
        if process or self._stop:
            if process:
                self._started[process] = _Process(slot, self._clock())
            signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
            return
        code = 1
        try:
            self._become_worker()
            self._work(slot, replaces)
            code = 0
        except BaseException:
            self._log.write("error", error="A process of the server failed.", traceback=traceback.format_exc())
        finally:
            if os.getppid() != self._process:
                self._on_orphaned()
            os._exit(code)

    def _become_worker(self) -> None:
        signal.set_wakeup_fd(-1)
        for number in (signal.SIGTERM, signal.SIGALRM, signal.SIGCHLD):
            signal.signal(number, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        # Block SIGHUP until the worker can reload: `capture_signals` of its server unblocks it.
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {*_SIGNALS} - {signal.SIGHUP})
        for descriptor in (self._living, self._signals, self._written):
            os.close(descriptor)
        os.setpgid(0, 0)  # a new process group, so that only the supervisor gets Ctrl-C from a terminal
        _end_with(self._alive, self._seconds)

    def _wait(self) -> None:
        """Replace the processes that die, until all have ended because a signal ended them."""
        while self._started or not self._stop:
            self._bury()
            for slot in [] if self._stop else self._replacements.take():
                self._start(slot, replaces=True)
            if self._started or not self._stop:
                # Signals (a death sends one, too) end the wait, even if they arrived before it began.
                select.select([self._signals], [], [], None if self._stop else self._replacements.seconds())
                with contextlib.suppress(BlockingIOError):
                    os.read(self._signals, 4096)

    def _bury(self) -> None:
        """Log the serving processes that have died, and plan to replace them; do not wait for other child processes."""
        for process in list(self._started):
            ended, status = os.waitpid(process, os.WNOHANG)
            if not ended:
                continue
            died = self._started.pop(process)
            if self._stop:
                continue
            self._tell(process, os.waitstatus_to_exitcode(status))
            with contextlib.suppress(ImportError, OSError):
                from prometheus_client.multiprocess import mark_process_dead

                mark_process_dead(process)
            self._replacements.add(died.slot, died.begun)

    def _tell(self, process: int, code: int) -> None:
        reasons = {
            -int(signal.SIGBUS): "A file of a model was shortened in place while it was mapped: replace folders whole.",
            -int(signal.SIGKILL): "It was killed from outside, perhaps as the machine has too little memory.",
        }
        reason = {"reason": reasons[code]} if code in reasons else {}
        self._log.write("process_died", process=process, status=code, **reason)

    # --- signals ---

    def _end(self, number: int, frame: FrameType | None) -> None:
        if not self._stop:
            self._stop = number
            self._on_stop()
            signal.alarm(max(1, round(self._seconds)))
        self._send(signal.SIGTERM)

    def _reload(self, number: int, frame: FrameType | None) -> None:
        if self._has_terminal and not sys.stderr.isatty():  # the terminal was closed
            self._end(signal.SIGTERM, frame)
        else:
            self._send(signal.SIGHUP)

    def _kill(self, number: int, frame: FrameType | None) -> None:
        """Kill the processes that have not ended by themselves."""
        self._log.write("processes_killed", processes=[*self._started])
        self._send(signal.SIGKILL)

    def _send(self, number: int) -> None:
        for process in list(self._started):
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, number)


def _notify_systemd() -> None:
    """Tell systemd that the server is ready, if systemd waits for that: a unit with Type=notify (see sd_notify(3)).

    Call it only when signal handlers are set: before that, even SIGHUP (reload) would end the server.
    """
    address = os.environ.pop("NOTIFY_SOCKET", "")
    if address:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notice, contextlib.suppress(OSError):
            notice.settimeout(_NOTICE_SECONDS)
            notice.sendto(b"READY=1", address.replace("@", "\0", 1) if address.startswith("@") else address)


def _end_with(alive: int, seconds: float) -> None:
    """End this process when the supervisor ends, even if the supervisor is killed.

    `alive` is the reading end of a pipe, which the supervisor holds open. When the pipe is closed, this process gets
    SIGTERM and, if it has not ended after some seconds, SIGKILL.
    """

    def wait() -> None:
        os.read(alive, 1)
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(seconds)
        os.kill(os.getpid(), signal.SIGKILL)

    threading.Thread(target=wait, daemon=True).start()
