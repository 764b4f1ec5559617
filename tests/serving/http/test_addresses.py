"""Host names that are allowed, and the addresses that a proxy names."""

import json
import os

import pytest
from cases import every
from serving_requests import assert_problem, get

from textcat.serving.http.addresses import Hosts, forwarded_address
from textcat.serving.http.log import Log
from textcat.serving.http.problems import Problem
from textcat.serving.tagging import Service


def is_allowed(hosts, host):
    try:
        hosts.check(host)
    except Problem:
        return False
    return True


def test_addresses_localhost_and_the_names_given_are_allowed():
    hosts = Hosts(("Server.example.org",))
    for host in ("localhost", "LOCALHOST:80", "a.localhost", "127.0.0.1:8000", "[::1]:8000", "server.example.org."):
        assert is_allowed(hosts, host), host
    for host in ("evil.com", "localhost.evil.com", "127.0.0.1.evil.com", "", "evil.com:127", "[evil.com]", "x" * 999):
        assert not is_allowed(hosts, host), host
    assert is_allowed(Hosts(("*",)), "evil.com")


def test_a_page_of_another_name_reads_nothing(store):
    service = Service(store, log=Log(None))
    for path in ("/api/v1/models", "/", "/openapi.json", "/metrics"):
        answer = get(service, path, headers={"host": "evil.com"})
        assert_problem(answer, 421, "'evil.com'", "--allow-host")


@every(
    "head, address",
    [
        ({}, None),
        ({b"x-forwarded-for": b"192.0.2.1"}, "192.0.2.1"),
        ({b"x-forwarded-for": b"10.0.0.1, 192.0.2.1:80"}, "192.0.2.1"),
        ({b"x-forwarded-for": b"[2001:db8::1]:80"}, "2001:db8::1"),
        ({b"x-forwarded-for": b"2001:db8::1"}, "2001:db8::1"),
        ({b"x-forwarded-for": b"192.0.2.1, <script>"}, None),
        ({b"forwarded": b"for=10.0.0.1;proto=http, for=192.0.2.1;by=x"}, "192.0.2.1"),
        ({b"forwarded": b'proto=https;For="[2001:db8::1]:80"'}, "2001:db8::1"),
        ({b"forwarded": b"for=unknown"}, None),
        ({b"forwarded": b"for=10.0.0.1", b"x-forwarded-for": b"192.0.2.1"}, "192.0.2.1"),
    ],
)
def test_the_last_address_counts_which_the_nearest_proxy_wrote(head, address):
    assert forwarded_address(head) == address


@pytest.mark.parametrize(("trusted", "expected"), [(True, "192.0.2.1"), (False, "127.0.0.1")])
def test_the_log_names_the_client_behind_a_trusted_proxy(store, trusted, expected):
    read, write = os.pipe()
    service = Service(store, log=Log(write), trust_proxy=trusted)
    get(service, "/v2", headers={"x-forwarded-for": "192.0.2.1"})
    os.close(write)
    with os.fdopen(read) as lines:
        assert json.loads(lines.readline())["client"] == expected
