"""Host names that requests may use, and the addresses of clients behind a proxy."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Collection, Mapping

from textcat.serving.http.problems import Problem

_REMEMBERED = 100  # number of cached values of the header Host
# An element of the header Forwarded (RFC 7239): for=192.0.2.1, for="192.0.2.1:80" or for="[2001:db8::1]:80".
_FORWARDED_FOR = re.compile(r'(?i)(?:^|[;,\s])for="?([^;,"\s]+)')


class Hosts:
    """The host names that requests to a server may use, which protects the server from DNS rebinding.

    Another site can let its own name point to the server's address. A browser then allows pages of that site to read
    the server's answers, but it sends the site's name in the header Host. Addresses and `localhost` are always allowed.

    Parameters
    ----------
    names : collection of str
        Other allowed names; ``*`` allows all.
    option : str
        The option of the command line that adds a name.
    """

    def __init__(self, names: Collection[str] = (), option: str = "--allow-host") -> None:
        self._names, self._option = frozenset(map(_plain_name, names)), option
        self._allowed: set[str] = set()  # cache of checked values of the header

    def check(self, host: str) -> None:
        """Raise a Problem if the header Host has a name that is not allowed."""
        if host in self._allowed:
            return
        name = _plain_name(host)
        is_local = name == "localhost" or name.endswith(".localhost")
        if not (is_local or _address_of(name) or name in self._names or "*" in self._names):
            raise Problem(
                421, f"This server is not {host!r:.80}: use its address, or start it with {self._option} NAME."
            )
        if len(self._allowed) < _REMEMBERED:
            self._allowed.add(host)


def forwarded_address(head: Mapping[bytes, bytes]) -> str | None:
    """Return the client's address, as the nearest proxy names it; None if the proxy names no address.

    It is the last address in X-Forwarded-For or, without this header, in Forwarded; clients can write earlier addresses
    themselves.
    """
    values = head.get(b"x-forwarded-for", b"").decode("latin-1").split(",")
    if not values[-1].strip():
        values = _FORWARDED_FOR.findall(head.get(b"forwarded", b"").decode("latin-1"))
    return _address_of(_without_port(values[-1].strip())) if values else None


def _plain_name(host: str) -> str:
    return _without_port(host).casefold().rstrip(".")


def _without_port(host: str) -> str:
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host if host.count(":") > 1 else host.partition(":")[0]


def _address_of(name: str) -> str | None:
    try:
        return str(ipaddress.ip_address(name))
    except ValueError:
        return None
