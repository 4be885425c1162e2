"""Addresses of brokers, as people and files write them: whether they are any, and which of them are the same."""

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
    return not set(addresses(bootstrap)).isdisjoint(addresses(other))


def addresses(bootstrap: str) -> list[tuple[str, int]]:
    """Hosts, an IPv6 address in brackets, and ports: each of a list once, however it is written there."""
    found = (_ADDRESS.fullmatch(part.strip()) for part in bootstrap.split(","))
    return list(dict.fromkeys((each["host"].lower(), int(each["port"] or _DEFAULT_PORT)) for each in found if each))
