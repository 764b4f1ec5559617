"""API keys: the file holds the name and the SHA-256 of each key, never the key."""

import hashlib
import hmac
import re
import secrets
from pathlib import Path

from textcat.errors import TextcatError, similar_files

_LINE = re.compile(r"([A-Za-z0-9._-]{1,64})\s+sha256:([0-9a-f]{64})")
_PREFIX = "tc_"


class Keys:
    """The keys of a file: lines of a name, a space and `sha256:` with the hash of a key; `#` begins a comment."""

    def __init__(self, path: Path | None = None) -> None:
        self._sums: list[tuple[str, bytes]] = []
        if path is None:
            return
        try:
            lines = Path(path).expanduser().read_text(encoding="utf-8").splitlines()
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
            raise TextcatError(
                f"Cannot read the keys {path}: {reason}; `textcat serve --new-key NAME` makes a key and its line."
                f"{similar_files(Path(path))}"
            ) from error
        for number, line in enumerate(lines, start=1):
            content = line.partition("#")[0].strip()
            match = _LINE.fullmatch(content)
            if content and not match:
                # The line itself is not shown: it may be a key that was written there by mistake.
                raise TextcatError(
                    f"Line {number} of the keys {path} is not a name and sha256:…: "
                    "make it with `textcat serve --new-key NAME`."
                )
            if match:
                self._sums.append((match[1], bytes.fromhex(match[2])))
        if not self._sums:
            raise TextcatError(f"The file of keys {path} has no key: make one with `textcat serve --new-key NAME`.")

    def __bool__(self) -> bool:
        return bool(self._sums)

    def name_of(self, key: bytes) -> str | None:
        """Return the name of a key, or None; the time taken does not depend on the key."""
        key_sum, owner = hashlib.sha256(key).digest(), None
        for name, named_sum in self._sums:
            if hmac.compare_digest(key_sum, named_sum):
                owner = name
        return owner


def new_key(name: str) -> tuple[str, str]:
    """Return a new key of 256 random bits, and its line for the file of keys."""
    if not re.fullmatch(r"[A-Za-z0-9._-]{1,64}", name):
        raise TextcatError(
            f"A key cannot be named {name!r}: use up to 64 letters, digits, dots, dashes and underscores."
        )
    key = _PREFIX + secrets.token_urlsafe(32)  # so random that a fast hash is safe
    return key, f"{name} sha256:{hashlib.sha256(key.encode()).hexdigest()}"
