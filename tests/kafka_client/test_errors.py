"""What goes wrong with brokers is told in one line that says what to do, and shows no secret."""

from __future__ import annotations

import re
import socket
from collections.abc import Mapping
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException
from confluent_kafka.admin import AdminClient

from keptlog.errors import InvalidConfig, KeptlogError, StorageUnavailable, UnknownTopic
from keptlog.kafka_client.errors import Trouble, ask, broker_errors, translated
from keptlog.kafka_client.settings import ClientSettings

PASSWORD = "hunter2hunter2"  # noqa: S105  # that is what it is about


def look(settings: ClientSettings, wait_seconds: float = 5) -> None:
    with broker_errors(settings, "topics can't be listed") as trouble:
        admin = AdminClient(settings.for_admin(error_cb=trouble))
        ask(admin, trouble, lambda seconds: admin.list_topics(timeout=seconds), wait_seconds)


def loaded(values: Mapping[str, str]) -> ClientSettings:
    return ClientSettings.load({"bootstrap.servers": "127.0.0.1:1", **values}, {})


def test_a_broker_that_is_not_there_is_named_with_the_reason(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(StorageUnavailable, match=r"no broker at 127.0.0.1:1 answers: .*Connection refused.*"):
        look(loaded({}))
    assert capfd.readouterr() == ("", "")


def test_a_certificate_that_is_not_there_is_named_with_its_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InvalidConfig, match=rf"\(ssl.ca.location={tmp_path}/ca.pem can't be read: each machine"):
        look(loaded({"security.protocol": "ssl", "ssl.ca.location": "ca.pem"}))


def test_where_every_connection_is_refused_nobody_is_asked_for_long() -> None:
    """A quarter of a minute is for a broker that is slow; here nobody listens."""
    asked: list[float] = []
    trouble = Trouble()
    admin = AdminClient(loaded({}).for_admin(error_cb=trouble))

    def question(seconds: float) -> object:
        asked.append(seconds)
        return admin.list_topics(timeout=seconds)

    with pytest.raises(KafkaException):
        ask(admin, trouble, question, 15)
    assert len(asked) <= 3


def test_a_host_that_does_not_exist_is_named() -> None:
    with pytest.raises(StorageUnavailable, match=r"no broker is at no.such.host.invalid:9092: .*Failed to resolve"):
        look(loaded({}).at("no.such.host.invalid:9092"))


def test_a_broker_that_accepts_and_says_nothing_is_not_waited_for_longer_than_asked() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        where = f"127.0.0.1:{silent.getsockname()[1]}"
        with pytest.raises(StorageUnavailable, match=f"no broker at {where} answers"):
            look(loaded({}).at(where))


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"fetch.min.byte": "1"}, 'No such configuration property: "fetch.min.byte"'),
        ({"fetch.min.bytes": "many"}, 'Invalid value for configuration property "fetch.min.bytes"'),
        ({"security.protocol": "SASL_SLL"}, 'Invalid value "SASL_SLL" for configuration property "security.protocol"'),
        ({"ssl.ca.location": "missing.pem", "security.protocol": "ssl"}, "ssl.ca.location failed"),
        ({"ssl.key.pem": PASSWORD, "security.protocol": "ssl"}, "ssl.key.pem failed"),
        ({"sasl.jaas.config": PASSWORD}, "Java JAAS configuration is not supported"),
    ],
)
@pytest.mark.parametrize("kind", [AdminClient, Consumer])
def test_a_wrong_setting_is_named_in_one_line(
    capfd: pytest.CaptureFixture[str], kind: type[AdminClient | Consumer], wrong: dict[str, str], told: str
) -> None:
    settings = loaded(wrong)
    own = settings.for_admin() if kind is AdminClient else settings.for_consumer()
    with pytest.raises(InvalidConfig, match=re.escape(told)) as refused, broker_errors(settings, "it failed"):
        kind(own)
    assert PASSWORD not in str(refused.value)
    assert "\n" not in str(refused.value)
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("code", "error"),
    [
        (KafkaError._AUTHENTICATION, InvalidConfig),
        (KafkaError.TOPIC_AUTHORIZATION_FAILED, InvalidConfig),
        (KafkaError.TOPIC_EXCEPTION, InvalidConfig),
        (KafkaError.POLICY_VIOLATION, InvalidConfig),
        (KafkaError.INVALID_CONFIG, InvalidConfig),
        (KafkaError.INVALID_TRANSACTION_TIMEOUT, InvalidConfig),
        (KafkaError.INVALID_PARTITIONS, InvalidConfig),
        (KafkaError.TOPIC_ALREADY_EXISTS, StorageUnavailable),
        (KafkaError.INVALID_REPLICATION_FACTOR, StorageUnavailable),
        (KafkaError.UNKNOWN_TOPIC_OR_PART, UnknownTopic),
        (KafkaError._TIMED_OUT, StorageUnavailable),
        (KafkaError.NOT_LEADER_FOR_PARTITION, StorageUnavailable),
    ],
)
def test_every_error_becomes_one_that_says_what_to_do(code: int, error: type[KeptlogError]) -> None:
    told = translated(KafkaError(code), loaded({}), "topic t can't be read")
    assert type(told) is error
    assert str(told).startswith("topic t can't be read: ")


def test_what_a_broker_refuses_for_good_is_not_to_be_tried_again() -> None:
    collides = KafkaError(KafkaError.TOPIC_EXCEPTION, "Topic 's_q1' collides with existing topic: s.q1")
    told = translated(collides, loaded({}), "topic s_q1 can't be created")
    assert str(told) == (
        "topic s_q1 can't be created: 127.0.0.1:1 refuses it: Topic 's_q1' collides with existing topic: s.q1"
    )


def test_a_transaction_timeout_that_a_broker_does_not_allow_is_a_wrong_client_setting() -> None:
    told = translated(KafkaError(KafkaError.INVALID_TRANSACTION_TIMEOUT, "too large"), loaded({}), "it failed")
    assert str(told) == (
        "it failed: a Kafka client setting is wrong: too large; look at kafka.properties or --client-config"
    )


def test_of_a_timeout_and_what_was_told_before_the_latter_is_shown() -> None:
    trouble = Trouble()
    for code in (KafkaError._TRANSPORT, KafkaError._AUTHENTICATION, KafkaError._ALL_BROKERS_DOWN):
        trouble(KafkaError(code, f"code {code}, {PASSWORD}"))
    settings = loaded({"sasl.password": PASSWORD})
    told = translated(KafkaError(KafkaError._TIMED_OUT), settings, "it failed", trouble)
    assert isinstance(told, InvalidConfig)
    assert f"code {KafkaError._AUTHENTICATION}, [hidden]" in str(told)
    assert "no such topic" in str(translated(KafkaError(KafkaError._UNKNOWN_TOPIC), settings, "it failed", trouble))


def test_why_one_address_is_out_of_reach_is_no_reason_why_a_broker_is_silent() -> None:
    trouble = Trouble()
    trouble(KafkaError(KafkaError._RESOLVE, "y.invalid:9092/bootstrap: Failed to resolve"))
    trouble(KafkaError(KafkaError._TRANSPORT, "127.0.0.1:2/bootstrap: Connect failed"))
    trouble(KafkaError(KafkaError._SSL, "ssl://127.0.0.1:4/3: handshake failed"))
    silence = KafkaError(KafkaError._TIMED_OUT)
    told = translated(silence, loaded({}), "it failed", trouble, 2)
    assert str(told) == (
        "it failed: broker 2 of the cluster at 127.0.0.1:1 does not answer: Local: Timed out; try again when it does"
    )
    trouble(KafkaError(KafkaError._TRANSPORT, "ssl://127.0.0.1:3/2: Disconnected"))
    assert "answer: ssl://127.0.0.1:3/2: Disconnected;" in str(translated(silence, loaded({}), "", trouble, 2))
    assert "127.0.0.1:3/2" not in str(translated(silence, loaded({}), "", trouble, 22))
    trouble(KafkaError(KafkaError._AUTHENTICATION, "127.0.0.1:3/bootstrap: wrong password"))
    assert "wrong password" in str(translated(silence, loaded({}), "", trouble, 2))


def test_the_error_of_librdkafka_does_not_travel_along() -> None:
    with pytest.raises(InvalidConfig) as refused, broker_errors(loaded({}), "it failed"):
        raise KafkaException(KafkaError(KafkaError._INVALID_ARG, PASSWORD))
    assert refused.value.__cause__ is None
    assert refused.value.__suppress_context__
