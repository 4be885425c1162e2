"""The settings of a Kafka client, under librdkafka's own names: ``security.protocol``, ``sasl.password`` and so on.

They are the user's, from a file and the environment, and go to librdkafka as they are, with what keptlog itself insists
on over them. Settings that would break what keptlog promises are refused with the reason.

Some are secret. They travel with the tasks to the executors, so nothing that shows these settings may show values:
``repr`` has names only, and ``hide`` takes secrets out of librdkafka's messages. librdkafka's log, which would go to
stderr, is off.
"""

from __future__ import annotations

import dataclasses
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from keptlog.errors import InvalidConfig

if TYPE_CHECKING:  # settings are text, and are read where no broker is asked
    from confluent_kafka import KafkaError

ErrorCallback = Callable[["KafkaError"], None]
ENVIRONMENT_PREFIX = "KEPTLOG_KAFKA_"
BOOTSTRAP = "bootstrap.servers"

_NAME = re.compile(r"[a-z0-9]+(\.[a-z0-9]+)*")
"""What can be a setting of librdkafka. Its Python binding takes others, with an underscore: they hold functions."""
_SECRET = re.compile(r"password|passphrase|secret|jaas|kinit|\.pem$|oauthbearer\.config")
_WORDS = "sasl.oauthbearer.config"
"""librdkafka's text ends with the rest of it, from the first word on that it does not know."""

_FILES = frozenset(
    {
        "https.ca.location",
        "sasl.kerberos.keytab",
        "sasl.oauthbearer.assertion.file",
        "sasl.oauthbearer.assertion.jwt.template.file",
        "sasl.oauthbearer.assertion.private.key.file",
        "ssl.ca.location",
        "ssl.certificate.location",
        "ssl.crl.location",
        "ssl.key.location",
        "ssl.keystore.location",
    }
)
_NO_FILE = frozenset({"", "probe"})
"""Librdkafka then looks for the machine's own certificates."""

_OWN_POSITION = "the position at the source is kept in the topic, where it moves with the records"
_READS_ALL = "every record is read once, from the position in the topic up to the last stable offset"
_WRITES_IN_ORDER = "records are written once and in their order"
_NO_LOG = "librdkafka's log is off, because it may show settings; use kcat to find out what is wrong with a connection"

REFUSED: Mapping[str, str] = {
    "allow.auto.create.topics": "a topic that does not exist is an error",
    "auto.commit.interval.ms": _OWN_POSITION,
    "auto.offset.reset": _READS_ALL,
    "debug": _NO_LOG,
    "default.topic.config": "topic settings stand beside the others",
    "enable.auto.commit": _OWN_POSITION,
    "enable.auto.offset.store": _OWN_POSITION,
    "enable.partition.eof": _READS_ALL,
    "group.id": _OWN_POSITION,
    "group.instance.id": _OWN_POSITION,
    "group.protocol": _OWN_POSITION,
    "isolation.level": _READS_ALL,
    "log.queue": _NO_LOG,
    "metadata.broker.list": f"it is called {BOOTSTRAP}",
    "acks": _WRITES_IN_ORDER,
    "enable.idempotence": _WRITES_IN_ORDER,
    "partitioner": "records are written to the partitions that they come from",
    "request.required.acks": _WRITES_IN_ORDER,
    "transactional.id": _WRITES_IN_ORDER,
}
"""Settings that nobody may make, each with the reason."""

_EVERY_CLIENT: Mapping[str, Any] = {"client.id": "keptlog", "log_level": 0}
_CONSUMER: Mapping[str, Any] = {
    # A consumer must have a group's name, but this one never joins or commits.
    "group.id": "keptlog",
    "enable.auto.commit": False,
    "enable.auto.offset.store": False,
    "auto.offset.reset": "error",
    "isolation.level": "read_committed",
    "enable.partition.eof": True,
    "allow.auto.create.topics": False,
}
_CONSUMER_DEFAULTS: Mapping[str, Any] = {
    "check.crcs": True,
    # What is fetched ahead of what is read. Without a bound of its own it may be 64 MiB a partition.
    "queued.max.messages.kbytes": 32_768,
    "max.partition.fetch.bytes": 4 * 2**20,
    # Once that is full it sleeps, a second by default, in which everything is read and then waited for: 0.2 instead of
    # 1.1 million records a second.
    "fetch.queue.backoff.ms": 10,
    # A part that is written slowly is no reason to leave a group that was never joined.
    "max.poll.interval.ms": 86_400_000,
}
_PRODUCER: Mapping[str, Any] = {"enable.idempotence": True, "allow.auto.create.topics": False}


def is_secret(name: str) -> bool:
    """Whether the value of a setting may be a secret, by its name."""
    return _SECRET.search(name) is not None


@dataclass(frozen=True, slots=True)
class ClientSettings:
    """The user's settings for all clients. Pickles whole; shows nothing but names."""

    names: tuple[str, ...]
    _values: Mapping[str, str] = field(repr=False)

    @classmethod
    def load(
        cls, settings: Mapping[str, str], environment: Mapping[str, str], where: str = "kafka.properties"
    ) -> ClientSettings:
        """Settings of a file, named by ``where``, and those of ``KEPTLOG_KAFKA_…`` variables over them.

        Raises:
            InvalidConfig: a setting is refused. Whether librdkafka knows the others it says when a client is made.
        """
        given = {
            name.removeprefix(ENVIRONMENT_PREFIX).lower().replace("_", "."): value
            for name, value in environment.items()
            if name.startswith(ENVIRONMENT_PREFIX)
        }
        values = {**settings, **given}
        for name in values:
            origin = f"{ENVIRONMENT_PREFIX}{name.upper().replace('.', '_')}" if name in given else where
            if name in REFUSED:
                raise InvalidConfig(f"Kafka client setting {name} ({origin}) is not yours to make: {REFUSED[name]}")
            if not _NAME.fullmatch(name):
                raise InvalidConfig(f"{name!r} ({origin}) is no setting of librdkafka: look at its CONFIGURATION.md")
        return cls(tuple(sorted(values)), {name: _whole(name, value) for name, value in values.items()})

    @property
    def bootstrap(self) -> str | None:
        """The brokers to ask first, ``HOST:PORT`` with commas between; null if nobody has named one."""
        return self._values.get(BOOTSTRAP)

    @property
    def unreadable_files(self) -> list[str]:
        """Of the settings that name files, those whose file this process can't read, with its path."""
        named = {name: value for name, value in self._values.items() if name in _FILES and value not in _NO_FILE}
        return [f"{name}={path}" for name, path in sorted(named.items()) if not os.access(path, os.R_OK)]

    @property
    def compresses(self) -> bool:
        """Whether what a producer sends is compressed."""
        return any(self._values.get(name, "none") != "none" for name in ("compression.type", "compression.codec"))

    def at(self, bootstrap: str | None) -> ClientSettings:
        """The same settings for other brokers, if some are named."""
        if not bootstrap:
            return self
        values = {**self._values, BOOTSTRAP: bootstrap}
        return dataclasses.replace(self, names=tuple(sorted(values)), _values=values)

    def for_admin(self, error_cb: ErrorCallback | None = None) -> dict[str, Any]:
        """What an AdminClient takes.

        Raises:
            InvalidConfig: nobody has named a broker.
        """
        return {**self._required(error_cb), **_EVERY_CLIENT, "allow.auto.create.topics": False}

    def for_consumer(self, error_cb: ErrorCallback | None = None) -> dict[str, Any]:
        """What a Consumer takes that reads committed records of partitions it is told, and commits no offsets.

        Raises:
            InvalidConfig: nobody has named a broker.
        """
        return {**_CONSUMER_DEFAULTS, **self._required(error_cb), **_EVERY_CLIENT, **_CONSUMER}

    def for_producer(self, error_cb: ErrorCallback | None = None) -> dict[str, Any]:
        """What a Producer takes that writes records once and in their order.

        Raises:
            InvalidConfig: nobody has named a broker.
        """
        return {**self._required(error_cb), **_EVERY_CLIENT, **_PRODUCER}

    def hide(self, text: str) -> str:
        """A text of librdkafka in one line, without the secrets among these settings, whatever spaces they have."""
        secrets = {" ".join(value.split()) for name, value in self._values.items() if is_secret(name)}
        text = " ".join(text.split())
        words = self._values.get(_WORDS, "").split()
        for first in range(len(words)):
            rest = " " + " ".join(words[first:])
            if text.endswith(rest):
                text = f"{text.removesuffix(rest)} [hidden]"
        for secret in sorted(secrets - {""}, key=len, reverse=True):
            text = text.replace(secret, "[hidden]")
        return text

    def _required(self, error_cb: ErrorCallback | None) -> dict[str, Any]:
        if not self.bootstrap:
            raise InvalidConfig(
                f"no broker is named: give it as bootstrap (--bootstrap HOST:PORT), or {BOOTSTRAP} in kafka.properties"
            )
        return {**self._values, **({"error_cb": error_cb} if error_cb else {})}


def _whole(name: str, value: str) -> str:
    """The value of a setting; a file's path from the root on: tasks read it too, whose processes stand elsewhere."""
    return str(Path(value).absolute()) if name in _FILES and value not in _NO_FILE else value
