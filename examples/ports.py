"""Ports for servers that have to be told one before they start.

A port of the system's own choice is free, but not for long: the system gives it to the next program that asks, or that
connects to somewhere, while the server is still on its way. What the system never chooses stays free. So these come
from below the ports that it chooses from, by lot, so that two who ask at once do not get the same one.
"""

from __future__ import annotations

import contextlib
import random
import socket

LOOPBACK = "127.0.0.1"
PORTS = range(20_000, 32_768)
"""Linux chooses ports from 32,768 on (``net.ipv4.ip_local_port_range``), macOS and Windows from 49,152 on."""
_LOT = random.SystemRandom()
"""Not the common one: tests set its seed, and then all of them would draw the same ports."""


def free_ports(count: int) -> list[int]:
    """As many different ports of 127.0.0.1 at which nobody listens."""
    with contextlib.ExitStack() as opened:
        probes: list[socket.socket] = []
        while len(probes) < count:
            probe = opened.enter_context(socket.socket())
            with contextlib.suppress(OSError):
                probe.bind((LOOPBACK, _LOT.choice(PORTS)))
                probes.append(probe)
        return [probe.getsockname()[1] for probe in probes]


def free_port() -> int:
    """One of them."""
    (port,) = free_ports(1)
    return port
