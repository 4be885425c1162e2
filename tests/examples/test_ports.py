"""A port that a server will be told stays free until it listens there."""

from __future__ import annotations

import random
import re
import socket
from pathlib import Path

import pytest

from examples.ports import LOOPBACK, PORTS, free_ports
from tests.test_style import places

_SYSTEM = Path("/proc/sys/net/ipv4/ip_local_port_range")


def test_ports_are_different_and_nobody_listens_there() -> None:
    ports = free_ports(50)
    assert len(set(ports)) == 50
    for port in ports:
        with socket.socket() as server:
            server.bind((LOOPBACK, port))


def test_a_port_that_somebody_has_is_not_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    free, taken = sorted(free_ports(2))
    monkeypatch.setattr("examples.ports.PORTS", [free, taken])
    with socket.create_server((LOOPBACK, taken)):
        assert {port for _ in range(20) for port in free_ports(1)} == {free}


@pytest.mark.skipif(not _SYSTEM.exists(), reason="not Linux, which tells from where it chooses ports")
def test_the_system_gives_them_to_nobody() -> None:
    """Else the next program that connects to somewhere may have one before the server listens."""
    first, last = map(int, _SYSTEM.read_text().split())
    if first < PORTS.stop:
        pytest.skip(f"this machine was set to choose ports from {first} to {last}")
    assert all(port in PORTS for port in free_ports(50))


def test_programs_that_have_the_same_seed_draw_other_ports() -> None:
    drawn = []
    for _ in range(2):
        random.seed(0)
        drawn.append(free_ports(5))
    assert drawn[0] != drawn[1]


def test_nothing_else_asks_for_a_port_that_it_does_not_hold() -> None:
    asks = places(re.compile(r"\.bind\(\("))
    holds_it = "tests/spark/test_taken_port.py"
    assert {place.split(":")[0] for place in asks} <= {"examples/ports.py", "tests/examples/test_ports.py", holds_it}
