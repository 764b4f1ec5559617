"""API keys, read from a file that has the name and the SHA-256 of each key, but not the key itself."""

import hashlib
import hmac
import re
import secrets
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from textcat.errors import TextcatError, similar_files
from textcat.folders import open_regular

_LINE = re.compile(r"([A-Za-z0-9._-]{1,64})\s+sha256:([0-9a-f]{64})")


class Keys:
    """The keys in a file, which has a line ``NAME sha256:HASH`` for each key; `#` begins a comment."""

    def __init__(self, path: Path | None = None) -> None:
        self._path = None if path is None else Path(path).expanduser().absolute()
        self._is_regular = self._path is not None and self._path.is_file()  # a pipe can be read only once
        self._seen = self._identity()
        self._sums = [] if self._path is None else _sums_in(self._path, lambda path: path.open("rb"))

    def __len__(self) -> int:
        return len(self._sums)

    def refresh(self) -> bool:
        """Read the file again if it has changed; return True if the file has been read again.

        If the file is damaged, or no regular file any more, keep the former keys, and raise TextcatError. If the path
        was no regular file at the start, but a pipe, for example, it is not read again.
        """
        if self._path is None or not self._is_regular or (identity := self._identity()) == self._seen:
            return False
        self._seen = identity
        self._sums = _sums_in(self._path, open_regular)
        return True

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


def _sums_in(path: Path, open_file: Callable[[Path], BinaryIO]) -> list[tuple[str, bytes]]:
    """Return the name and the hash of each key in a file; raise TextcatError if it has no key, or a wrong line."""
    try:
        with open_file(path) as file:
            lines = file.read().decode("utf-8").splitlines()
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise TextcatError(
            f"Cannot read the keys {path}: {reason}; `textcat serve --new-key NAME` makes a key and its line."
            f"{similar_files(path)}"
        ) from error
    sums = []
    for number, line in enumerate(lines, start=1):
        content = line.partition("#")[0].strip()
        match = _LINE.fullmatch(content)
        if match:
            sums.append((match[1], bytes.fromhex(match[2])))
        elif content:
            # The line itself is not shown: it may be a key that was written there by mistake.
            raise TextcatError(
                f"Line {number} of the keys {path} is not a name and sha256:…: "
                "make it with `textcat serve --new-key NAME`."
            )
    if not sums:
        raise TextcatError(f"The file of keys {path} has no key: make one with `textcat serve --new-key NAME`.")
    return sums


def new_key(name: str) -> tuple[str, str]:
    """Return a new key of 256 random bits, and its line for the file of keys; raise TextcatError for a wrong name."""
    if not re.fullmatch(r"[A-Za-z0-9._-]{1,64}", name):
        raise TextcatError(
            f"A key cannot be named {name!r}: use up to 64 letters, digits, dots, dashes and underscores."
        )
    key = "tc_" + secrets.token_urlsafe(32)  # so random that a fast hash is safe
    return key, f"{name} sha256:{hashlib.sha256(key.encode()).hexdigest()}"
