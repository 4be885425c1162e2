"""What goes wrong with brokers, as keptlog's errors: one line, without secrets, that says what to do.

librdkafka has errors in two places. A call fails, often with no more than "timed out" or "transport failure", and the
reason (connection refused, password wrong, certificate expired) has been handed to ``error_cb`` before. So both are
gathered, and the one that says most is told:

    with broker_errors(settings, "topic users can't be read") as trouble:
        admin = AdminClient(settings.for_admin(error_cb=trouble))
        ask(admin, trouble, lambda seconds: admin.list_topics(timeout=seconds))
"""

# ruff: noqa: SLF001  # the codes of librdkafka's own errors have such names

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TypeVar

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient

from keptlog.errors import InvalidConfig, KeptlogError, StorageUnavailable, UnknownTopic
from keptlog.kafka_client.leaders import LEADERLESS, UNKNOWN
from keptlog.kafka_client.settings import ClientSettings

_logger = logging.getLogger(__name__)

Answer = TypeVar("Answer")

WAIT_SECONDS = 15
"""Long enough for a broker that has just been started."""

AFTER_SILENCE_SECONDS = 3.0
"""Instead, of brokers that were waited for in vain just before: they are tried again, and cost others little."""

PARTITION_EOF = KafkaError._PARTITION_EOF
"""Not an error: the log ends here."""
OFFSET_OUT_OF_RANGE = KafkaError._AUTO_OFFSET_RESET
"""The log does not hold the offset that was asked for."""
_BROKEN_BATCH = {
    KafkaError._BAD_MSG,
    KafkaError._BAD_COMPRESSION,
    KafkaError._NOT_IMPLEMENTED,
    KafkaError.INVALID_MSG,
    KafkaError.UNSUPPORTED_COMPRESSION_TYPE,
}
"""What a consumer says of a batch that it was given, in place of its records."""
_TURN_SECONDS = 1.0
_REFUSED_TURNS = 2
"""So many follow once it is known that nobody listens: a broker may just be starting again."""
_REFUSED = "Connection refused"
_BROKER = re.compile(r"\S+/(\w+): ")
"""How the text of a broker's error begins: ``ssl://kafka:9093/2: …``, or ``…/bootstrap: …`` before its id is known."""
_NO_ID_YET = "bootstrap"


@dataclass(frozen=True, slots=True)
class _Kind:
    """Error codes about which one and the same thing is to be done."""

    codes: frozenset[int]
    error: type[KeptlogError]
    what: str
    """With ``where`` for the brokers and ``text`` for librdkafka's message."""


_AUTHENTICATION = _Kind(
    frozenset({KafkaError._AUTHENTICATION, KafkaError.SASL_AUTHENTICATION_FAILED}),
    InvalidConfig,
    "{where} refuses the user or the password: {text}; look at the sasl.* settings",
)
_TLS = _Kind(
    frozenset({KafkaError._SSL}), InvalidConfig, "no TLS connection to {where}: {text}; look at the ssl.* settings"
)
_SETTING = _Kind(
    frozenset(
        {
            KafkaError._INVALID_ARG,
            KafkaError.UNSUPPORTED_SASL_MECHANISM,
            KafkaError.ILLEGAL_SASL_STATE,
            KafkaError.INVALID_TRANSACTION_TIMEOUT,
        }
    ),
    InvalidConfig,
    "a Kafka client setting is wrong: {text}; look at kafka.properties or --client-config",
)
_AUTHORIZATION = _Kind(
    frozenset(
        {
            KafkaError.CLUSTER_AUTHORIZATION_FAILED,
            KafkaError.GROUP_AUTHORIZATION_FAILED,
            KafkaError.TOPIC_AUTHORIZATION_FAILED,
            KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        }
    ),
    InvalidConfig,
    "the user has no permission at {where}: {text}; have it granted",
)
_REFUSAL = _Kind(
    frozenset(
        {
            KafkaError.TOPIC_EXCEPTION,
            KafkaError.INVALID_CONFIG,
            KafkaError.INVALID_PARTITIONS,
            KafkaError.INVALID_REPLICA_ASSIGNMENT,
            KafkaError.POLICY_VIOLATION,
        }
    ),
    InvalidConfig,
    "{where} refuses it: {text}",
)
"""What was asked for, as it was asked for. A topic that exists already is none of these: the next try finds it. Nor is
a replication factor: it is also refused while brokers are down, or are being started."""
_UNKNOWN_TOPIC = _Kind(
    frozenset({KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC, KafkaError._UNKNOWN_PARTITION}),
    UnknownTopic,
    "{where} has no such topic or partition: {text}",
)
_NAME_LOOKUP = _Kind(
    frozenset({KafkaError._RESOLVE}), StorageUnavailable, "no broker is at {where}: {text}; is the name right?"
)
_CONNECTION = _Kind(
    frozenset({KafkaError._TRANSPORT, KafkaError.NETWORK_EXCEPTION}),
    StorageUnavailable,
    "no broker at {where} answers: {text}; is it running, are port and security.protocol right?",
)
_OTHER = _Kind(frozenset(), StorageUnavailable, "{where} says: {text}; try again")
_SILENCE = _Kind(
    frozenset(
        {KafkaError._ALL_BROKERS_DOWN, KafkaError._MSG_TIMED_OUT, KafkaError._TIMED_OUT, KafkaError._TIMED_OUT_QUEUE}
    ),
    StorageUnavailable,
    "no broker at {where} answers: {text}; try again when it does",
)
_KINDS = (
    _AUTHENTICATION,
    _TLS,
    _SETTING,
    _AUTHORIZATION,
    _REFUSAL,
    _UNKNOWN_TOPIC,
    _NAME_LOOKUP,
    _CONNECTION,
    _OTHER,
    _SILENCE,
)
"""Those that say most first."""

_PASSING = (_NAME_LOOKUP, _CONNECTION, _SILENCE)
"""What one broker has, and others may not; it may work a moment later."""
_OF_ONE = "broker {broker} of the cluster at {where}"
_SILENT_BROKER = f"{_OF_ONE} does not answer: {{text}}; try again when it does"
_NAMELESS_BROKER = f"{_OF_ONE} is not found: {{text}}; is the name right that it gives (advertised.listeners)?"
_SLOW_BROKER = (
    f"{_OF_ONE} has not taken it in time: {{text}}; does it answer, and has the partition as many in-sync replicas as "
    "its min.insync.replicas? Then try again"
)
"""Who is refused for lack of them tries again until time is up, and then librdkafka tells no more than that."""
_NO_LEADER = "at {where} nobody leads the partition: {text}; try again when a broker does"

_FINAL = (_AUTHENTICATION, _TLS, _SETTING, _AUTHORIZATION, _REFUSAL)
"""No waiting will mend these."""


@dataclass
class Trouble:
    """What a client's ``error_cb`` was told; of each broker the first of each kind, for librdkafka repeats itself."""

    errors: dict[tuple[int, str | None], KafkaError] = field(default_factory=dict)
    """By code, and by the broker that it is of."""
    asked: int | None = None
    """As ``broker`` of ``translated``, as long as nobody else is asked."""

    def __call__(self, error: KafkaError) -> None:
        self.errors.setdefault((error.code(), _whose(error)), error)

    def forget(self) -> None:
        """It works again."""
        self.errors.clear()

    def may_explain(self, broker: int | None) -> list[KafkaError]:
        """What may be why a broker does not answer; what another one has, or another address, is no reason.

        But a password or a certificate is one for all: of an address nobody knows yet whose it is.
        """

        def is_of_it(whose: str | None, error: KafkaError) -> bool:
            if broker in {None, UNKNOWN} or whose == str(broker):
                return True
            return broker != LEADERLESS and whose in {None, _NO_ID_YET} and _kind(error) not in _PASSING

        return [error for (_, whose), error in self.errors.items() if is_of_it(whose, error)]

    @property
    def is_final(self) -> bool:
        """Whether no waiting will mend it."""
        return self.is_final_for(None)

    def is_final_for(self, broker: int | None) -> bool:
        """Whether no waiting will mend what may be why a broker does not answer."""
        return any(_kind(error) in _FINAL for error in self.may_explain(broker))

    @property
    def is_refused(self) -> bool:
        """Whether no broker is left, and the connection was refused: nobody listens there."""
        first = {error.code(): error for error in reversed(self.errors.values())}
        transport = first.get(KafkaError._TRANSPORT)
        return KafkaError._ALL_BROKERS_DOWN in first and transport is not None and _REFUSED in transport.str()


@contextmanager
def broker_errors(settings: ClientSettings, doing: str) -> Iterator[Trouble]:
    """Around whatever uses a client; ``doing`` says what could not be done, such as "topic users can't be read".

    Raises:
        InvalidConfig: a setting, a password, a certificate or a permission is wrong, or the broker refuses it for good.
        UnknownTopic: no such topic or partition there.
        StorageUnavailable: no broker can be reached, or one has another problem.
    """
    trouble = Trouble()
    try:
        yield trouble
    except KafkaException as error:
        # The cause stays away: it shows librdkafka's own words, secrets and all.
        raise translated(error.args[0], settings, doing, trouble, trouble.asked) from None


@contextmanager
def asked_alone(admin: AdminClient, trouble: Trouble, broker: int | None) -> Iterator[None]:
    """Around what only one broker can tell, within ``broker_errors``; ``broker`` is that of ``translated``."""
    trouble.asked = broker
    try:
        yield
    except KafkaException:
        admin.poll(0)  # lets it tell ``trouble`` why that one does not answer
        raise
    trouble.asked = None


def no_answer() -> KafkaException:
    """Tells that one has waited long enough; ``broker_errors`` looks for the reason."""
    return KafkaException(KafkaError(KafkaError._TIMED_OUT))


def ask(
    admin: AdminClient, trouble: Trouble, question: Callable[[float], Answer], wait_seconds: float = WAIT_SECONDS
) -> Answer:
    """The answer to a question that takes a timeout in seconds, asked until it is answered or can't be.

    It is asked in turns, because librdkafka waits for the whole of a timeout even if the password is wrong. Where every
    connection is refused, few turns follow.

    Raises:
        KafkaException: there is none.
    """
    turns = max(1, round(wait_seconds / _TURN_SECONDS))
    while True:
        turns = min(turns, _REFUSED_TURNS if trouble.is_refused else turns) - 1
        try:
            return question(min(wait_seconds, _TURN_SECONDS))
        except KafkaException as error:
            admin.poll(0)  # lets it tell ``trouble``
            may_pass = _kind(error.args[0]) in _PASSING
            if not turns or not may_pass or trouble.is_final:
                raise
            _logger.debug("no broker answers yet (%s), %d more turns follow if need be", error.args[0].name(), turns)


def is_no_answer(error: KafkaError) -> bool:
    """Whether it says no more than that nothing came, or that nobody is there."""
    return _kind(error) in {_CONNECTION, _SILENCE}


def is_broken_batch(error: KafkaError) -> bool:
    """Whether a consumer says that a batch is damaged, or of a kind that it can't read: no waiting mends that."""
    return error.code() in _BROKEN_BATCH


def translated(
    error: KafkaError,
    settings: ClientSettings,
    doing: str,
    trouble: Trouble | None = None,
    broker: int | None = None,
) -> KeptlogError:
    """One error of a client as keptlog's. If it only says that nothing came, the reason is in ``trouble``.

    ``broker`` is the id of the one that was asked, where it is only one: others of its cluster may well answer. It is
    ``LEADERLESS`` or ``UNKNOWN`` where it should have been a leader's.
    """
    known = [*trouble.may_explain(broker), error] if trouble and is_no_answer(error) else [error]
    telling = min(known, key=lambda each: _KINDS.index(_kind(each)))
    kind, text = _kind(telling), settings.hide(telling.str())
    if kind is _SETTING and (unreadable := settings.unreadable_files):
        # Librdkafka says that a certificate can't be loaded, and not from where.
        text = f"{text} ({', '.join(unreadable)} can't be read: each machine that asks the broker needs it)"
    what = kind.what
    if broker == LEADERLESS and kind in _PASSING:
        what = _NO_LEADER
    elif broker not in {None, UNKNOWN} and telling.code() == KafkaError._MSG_TIMED_OUT:
        what = _SLOW_BROKER
    elif broker not in {None, UNKNOWN} and kind in _PASSING:
        what = _NAMELESS_BROKER if kind is _NAME_LOOKUP else _SILENT_BROKER
    return kind.error(f"{doing}: {what.format(where=settings.bootstrap, text=text, broker=broker)}")


def _whose(error: KafkaError) -> str | None:
    """The id of the broker that an error is of, or that it is of an address of the list; null if of no one's."""
    found = _BROKER.match(error.str())
    return found[1] if found else None


def _kind(error: KafkaError) -> _Kind:
    return next((kind for kind in _KINDS if error.code() in kind.codes), _OTHER)
