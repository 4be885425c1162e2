"""Addresses of brokers, as people and files write them: whether they are any, and whether two are of one cluster."""

from __future__ import annotations

import re

from keptlog.errors import InvalidConfig
from keptlog.log.given import given

_ADDRESS = re.compile(r"([A-Za-z_]+://)?(?P<host>\[[0-9A-Fa-f:.%]+\]|[^\s:/\[\]]+)(:(?P<port>[0-9]{1,9}))?")
_LARGEST_PORT = 65_535
_DEFAULT_PORT = 9092
"""librdkafka's."""


def valid_bootstrap(text: str) -> str:
    """Addresses of brokers as Kafka's clients take them: HOST or HOST:PORT, several with commas between them.

    Raises:
        InvalidConfig: one of them is none.
    """
    text = given.text(text, "bootstrap")
    for part in text.split(","):
        address = _ADDRESS.fullmatch(part.strip())
        if address is None or not 1 <= int(address["port"] or 1) <= _LARGEST_PORT:
            raise InvalidConfig(
                f"bootstrap {text!r} is no address of a broker: write HOST:PORT, with a port from 1 to "
                f"{_LARGEST_PORT}, and commas between several"
            )
    return text


def share_a_broker(bootstrap: str, other: str) -> bool:
    """Whether two lists of addresses have one in common, however it is written: then they are of one cluster.

    Without one they may still be.
    """
    return not _addresses(bootstrap).isdisjoint(_addresses(other))


def _addresses(bootstrap: str) -> set[tuple[str, int]]:
    """Hosts and ports."""
    found = (_ADDRESS.fullmatch(part.strip()) for part in bootstrap.split(","))
    return {(address["host"].lower(), int(address["port"] or _DEFAULT_PORT)) for address in found if address}
