"""What a broker says of a topic to a user without DESCRIBE: among all nothing, by its name that it is not allowed.

So it says of one that is not there, too: such a user is not to learn which there are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import pytest
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    ResourcePatternType,
    ResourceType,
)

from examples.kafka_jars import kafka_jars
from keptlog.errors import InvalidConfig, UnknownTopic
from keptlog.ingest.kafka_brokers import KafkaBrokers
from keptlog.kafka_client.settings import ClientSettings
from keptlog.log.source import SourceIdentity, StoredSource
from keptlog.sources.kafka_broker.topics import BrokerTopics, look_at_ids, look_at_topics
from tests.broker.broker import DEADLINE_SECONDS, SASL_PASSWORD, SASL_USER, Broker, running_broker
from tests.kafka.jars import or_skip

NAMES = ["shown-gone", "hidden", "shown", "hidden-gone"]
_SETTINGS = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
    "auto.create.topics.enable": "true",
}
"""Whoever comes without a password may do everything."""


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    """A broker of its own, with an authorizer, which creates topics that somebody asks for."""
    or_skip(kafka_jars)
    with running_broker(_SETTINGS) as started:
        for topic in ("hidden", "shown"):
            started.create_topic(topic, 1, {})
        shown = AclBinding(
            ResourceType.TOPIC,
            "shown",
            ResourcePatternType.PREFIXED,
            f"User:{SASL_USER}",
            "*",
            AclOperation.DESCRIBE,
            AclPermissionType.ALLOW,
        )
        admin = started.admin
        admin.create_acls([shown])[shown].result(DEADLINE_SECONDS)
        yield started


def of_user(broker: Broker) -> ClientSettings:
    values = {
        "bootstrap.servers": broker.sasl_bootstrap,
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.username": SASL_USER,
        "sasl.password": SASL_PASSWORD,
    }
    return ClientSettings.load(values, {})


@pytest.mark.parametrize("look", [look_at_topics, look_at_ids])
def test_a_topic_without_describe_is_neither_there_nor_gone(
    broker: Broker, look: Callable[[ClientSettings, Sequence[str]], BrokerTopics]
) -> None:
    found = look(of_user(broker), NAMES)
    assert found.topics.keys() == {"shown"}
    assert found.topics["shown"].source.topic_id
    assert {name: type(error) for name, error in found.missing.items()} == {
        "hidden": InvalidConfig,
        "hidden-gone": InvalidConfig,
        "shown-gone": UnknownTopic,
    }
    assert "topic hidden: it can't be described, which takes DESCRIBE: the user has no perm" in str(
        found.missing["hidden"]
    )
    assert "has no topic 'shown-gone': did you mean shown?" in str(found.missing["shown-gone"])


@pytest.mark.parametrize("look", [look_at_topics, look_at_ids])
def test_a_name_that_no_broker_takes_is_not_asked_for_and_one_that_comes_twice_once(
    broker: Broker, look: Callable[[ClientSettings, Sequence[str]], BrokerTopics]
) -> None:
    found = look(of_user(broker), ["shown", "", "shown!", "??", "shown", "nul\0"])
    assert found.topics.keys() == {"shown"}
    assert {name: str(error).split("has ")[1] for name, error in found.missing.items()} == {
        "": "no topic '': it shows 1 topic",
        "shown!": "no topic 'shown!': did you mean shown?",
        "??": "no topic '??': it shows 1 topic",
        "nul\0": "no topic 'nul\\x00': it shows 1 topic",
    }
    assert {type(error) for error in found.missing.values()} == {UnknownTopic}


def test_a_topic_of_another_cluster_does_not_fail_where_its_name_may_not_be_described(broker: Broker) -> None:
    names = {"shown": "shown", "orders": "hidden-gone"}
    stored = {
        "shown": StoredSource(SourceIdentity("shown", None, broker.sasl_bootstrap), (0,)),
        "orders": StoredSource(SourceIdentity("hidden-gone", "id", "a-1:9092"), (0,)),
    }
    survey = KafkaBrokers(of_user(broker), names, broker.sasl_bootstrap).survey(stored)
    assert [each.topic for each in survey.topics] == ["shown"]
    assert not survey.failed
    [warning] = survey.warnings
    assert warning.startswith("orders left out: last at a-1:9092, and nothing shows that ")
    assert " has the same, as the user may not describe it there. " in warning


def test_who_may_do_everything_is_shown_them_and_asking_for_names_creates_none(broker: Broker) -> None:
    found = look_at_topics(ClientSettings.load({"bootstrap.servers": broker.bootstrap}, {}), NAMES)
    assert found.topics.keys() == {"hidden", "shown"}
    assert {type(error) for error in found.missing.values()} == {UnknownTopic}
    assert broker.admin.list_topics(timeout=DEADLINE_SECONDS).topics.keys() == {"hidden", "shown"}
