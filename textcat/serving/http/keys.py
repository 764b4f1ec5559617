"""API keys, read from a file that has the name and the SHA-256 of each key, but not the key itself."""

import hashlib
import hmac
import re
import secrets
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from textcat.base.disk import expanded, open_regular
from textcat.base.errors import TextcatError, similar_files

_MOST_BYTES = 1 << 24  # maximum size of a file of keys: more than 100,000 keys
_LINE = re.compile(r"([A-Za-z0-9._-]{1,64})\s+sha256:([0-9a-f]{64})")


class Keys:
    """The keys in a file, which has a line ``NAME sha256:HASH`` for each key; `#` begins a comment.

    Without a file, no key is needed. With a file, only the keys that it has at present are accepted; while it is empty,
    missing or unreadable, no key is accepted.

    Raises
    ------
    TextcatError
        If the file cannot be read, has no key, or has a wrong line.
    """

    def __init__(self, path: Path | None = None) -> None:
        self._path = None if path is None else expanded(path).absolute()
        self._is_regular = self._path is not None and self._path.is_file()  # a pipe can be read only once
        self._seen = self._identity()
        self._sums: list[tuple[str, bytes]] = []
        self._fault: TextcatError | None = None  # the present error in the file
        if self._path is not None:
            self._sums, self._fault = _read_hashes(self._path, lambda path: path.open("rb"))
        if self._fault:
            raise self._fault

    @property
    def are_needed(self) -> bool:
        """Whether clients need a key, because a file of keys is used."""
        return self._path is not None

    @property
    def names(self) -> list[str]:
        """The names of the keys that are accepted now."""
        return [name for name, _ in self._sums]

    def refresh(self) -> bool:
        """Read the file again if it has changed or was faulty; return True if it has been read again.

        TextcatError is raised, once for each fault, if the file is faulty; of its keys, those in right lines are
        accepted. If the path was no regular file at the start, but a pipe, for example, it is not read again.
        """
        if self._path is None or not self._is_regular:
            return False
        identity = self._identity()
        if identity == self._seen and not self._fault:
            return False
        reported, self._seen = self._fault, identity
        self._sums, self._fault = _read_hashes(self._path, open_regular)
        if self._fault and str(self._fault) != str(reported):
            raise self._fault
        return not self._fault

    def _identity(self) -> tuple[int, ...]:
        """Return numbers that change when the file changes or is replaced; () if there is no file now, or no path."""
        if self._path is not None:
            with suppress(OSError):
                status = self._path.stat()
                return status.st_dev, status.st_ino, status.st_mtime_ns, status.st_ctime_ns, status.st_size
        return ()

    def name_of(self, key: bytes) -> str | None:
        """Return the name of a key, or None if the key is unknown; the time taken does not depend on the key."""
        key_sum, owner = hashlib.sha256(key).digest(), None
        for name, named_sum in self._sums:
            if hmac.compare_digest(key_sum, named_sum):
                owner = name
        return owner


def _read_hashes(
    path: Path, open_file: Callable[[Path], BinaryIO]
) -> tuple[list[tuple[str, bytes]], TextcatError | None]:
    """Return the names and hashes of the keys in a file, and the error if it is unreadable, empty or invalid."""
    try:
        with open_file(path) as file:
            lines = file.read(_MOST_BYTES).decode("utf-8-sig").splitlines()
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        remedy = f"`textcat serve --new-key NAME` makes a key and its line.{similar_files(path)}"
        return [], TextcatError(f"Cannot read the keys {path}: {reason}; {remedy}")
    sums: list[tuple[str, bytes]] = []
    fault = None
    for number, line in enumerate(lines, start=1):
        content = line.partition("#")[0].strip()
        match = _LINE.fullmatch(content)
        if match:
            sums.append((match[1], bytes.fromhex(match[2])))
        elif content and not fault:
            # The line itself is not shown: it may be a key that was written there by mistake.
            wrong = f"Line {number} of the keys {path} is not a name and sha256:…"
            fault = TextcatError(f"{wrong}: make it with `textcat serve --new-key NAME`.")
    if not sums and not fault:
        fault = TextcatError(f"The file of keys {path} has no key: make one with `textcat serve --new-key NAME`.")
    return sums, fault


def new_key(name: str) -> tuple[str, str]:
    """Return a new key of 256 random bits, and its line for the file of keys; raise TextcatError for a wrong name."""
    if not re.fullmatch(r"[A-Za-z0-9._-]{1,64}", name):
        raise TextcatError(
            f"A key cannot be named {name!r}: use up to 64 letters, digits, dots, dashes and underscores."
        )
    key = "tc_" + secrets.token_urlsafe(32)  # random enough that a fast hash is safe
    return key, f"{name} sha256:{hashlib.sha256(key.encode()).hexdigest()}"
