"""``keptlog ingest kafka``, against librdkafka's mock cluster."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer

from keptlog.cli.output import exit_if_failed
from keptlog.errors import InvalidRecord
from keptlog.ingest.kafka_brokers import topics_from_brokers
from keptlog.table.store import LogStore
from tests.cli.conftest import Run

TIMEOUT_SECONDS = 60.0


@pytest.fixture
def bootstrap() -> Iterator[str]:
    """A cluster whose topic ``users`` has two records."""
    cluster = Producer({"test.mock.num.brokers": 1, "log_level": 0})
    [broker] = cluster.list_topics(timeout=TIMEOUT_SECONDS).brokers.values()
    produce(f"{broker.host}:{broker.port}", b"ada", b"bob")
    yield f"{broker.host}:{broker.port}"
    del cluster


def produce(bootstrap: str, *keys: bytes) -> None:
    producer = Producer({"bootstrap.servers": bootstrap})
    for key in keys:
        producer.produce("users", key=key, value=b"v", partition=0)
    assert not producer.flush(TIMEOUT_SECONDS)


def keys(keptlog: Run, topic: str) -> list[str]:
    return [record["key"] for record in keptlog("read", topic).json_lines]


@pytest.mark.usefixtures("spark")
def test_a_topic_comes_in_and_later_what_is_new(keptlog: Run, bootstrap: str) -> None:
    first = keptlog("ingest", "kafka", "--bootstrap", bootstrap, "--topic", "users", "--into", "people")
    assert first.code == 0, first.err
    assert "created people with cleanup.policy=compact" in first.out
    produce(bootstrap, b"eve")
    again = keptlog("ingest", "kafka", "--json", "--quiet").json
    assert [(row["topic_partition"], row["from_offset"], row["end_offset"]) for row in again["committed"]] == [
        ("people-0", 2, 3)
    ]
    assert keys(keptlog, "people") == ["ada", "bob", "eve"]
    nothing = keptlog("ingest", "kafka", "--config", "retention.ms=1")
    assert (nothing.code, nothing.out) == (0, "nothing new\n")
    assert "--config is for new topics; people stay as they are" in nothing.err


@pytest.mark.usefixtures("spark")
def test_a_remembered_topic_that_its_broker_does_not_have_stops_no_other(
    keptlog: Run, bootstrap: str, tmp_path: Path
) -> None:
    declared = tmp_path / "topics.yaml"
    declared.write_text(f"topics: {{gone: {{source: {{bootstrap: '{bootstrap}'}}}}}}\n")
    assert keptlog("topic", "apply", str(declared)).code == 0
    assert keptlog("ingest", "kafka", "--bootstrap", bootstrap, "--topic", "users").code == 0
    produce(bootstrap, b"eve")
    for names in ((), ("--bootstrap", bootstrap, "--topic", "gone", "--topic", "users")):
        ran = keptlog("ingest", "kafka", *names)
        assert ran.code == 1, ran.err
        assert "gone: " in ran.err
        assert "has no topic 'gone'" in ran.err
        assert keys(keptlog, "users") == ["ada", "bob", "eve"]


@pytest.mark.usefixtures("spark")
def test_a_topic_that_is_deleted_here_and_there_while_all_are_planned_stops_no_other(
    keptlog: Run, bootstrap: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "topics.yaml").write_text(
        f"topics: {{gone: {{source: {{bootstrap: '{bootstrap}'}}}}, users: {{source: {{bootstrap: '{bootstrap}'}}}}}}\n"
    )
    keptlog("topic", "apply", str(tmp_path / "topics.yaml"))

    def then_deleted(store: LogStore) -> dict[str, str]:
        known = topics_from_brokers(store)
        assert keptlog("topic", "delete", "gone", "--yes").code == 0
        return known

    monkeypatch.setattr("keptlog.cli.ingest.topics_from_brokers", then_deleted)
    ran = keptlog("ingest", "kafka", "--bootstrap", bootstrap)
    assert ran.code == 1, ran.err
    assert "has no topic 'gone'" in ran.err
    assert keys(keptlog, "users") == ["ada", "bob"]


def test_a_topic_with_records_of_its_own_takes_no_others(keptlog: Run, bootstrap: str, tmp_path: Path) -> None:
    keptlog("topic", "create", "users")
    (tmp_path / "records").write_text('{"key": "x", "value": "1"}\n')
    keptlog("append", "users", "--file", str(tmp_path / "records"))
    refused = keptlog("ingest", "kafka", "--bootstrap", bootstrap, "--topic", "users")
    assert refused.code == 2
    assert "topic users has records of its own" in refused.err
    assert keys(keptlog, "users") == ["x"]


def test_bad_input_is_refused_in_one_line_and_nothing_is_created(keptlog: Run, bootstrap: str, tmp_path: Path) -> None:
    (tmp_path / "client").write_text("group.id=mine\n")
    (tmp_path / "typo").write_text(f"bootstrap.servers={bootstrap}\nfetch.min.byte=1\n")
    for arguments, told in (
        ((), "no topic here remembers a broker yet"),
        (("--topic", "users"), "no broker is named"),
        (("--bootstrap", bootstrap, "--topic", "users", "--topic", "user"), "did you mean users"),
        (("--bootstrap", bootstrap, "--topic", "users", "--config", "retention=1"), "there is no setting 'retention'"),
        (("--topic", "a", "--topic", "b", "--into", "c"), "--into c takes one topic"),
        (("--topic", "users", "--client-config", "client"), "group.id (client) is not yours to make"),
        (("--topic", "users", "--client-config", "typo"), 'No such configuration property: "fetch.min.byte"'),
        (("--topic", "users", "--client-config", "missing"), "missing can't be read: No such file"),
    ):
        refused = keptlog("ingest", "kafka", *arguments)
        assert told in refused.err
        assert (refused.code, refused.out, len(refused.err.splitlines())) == (2, "", 1), refused.err
    assert not (tmp_path / "home").exists()


def test_a_reason_that_begins_with_its_topic_partition_does_not_name_it_twice(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit):
        exit_if_failed({"a-0": InvalidRecord("a-0: the record\nis odd"), "a-1": InvalidRecord("a-0: the other")})
    assert capsys.readouterr().err.splitlines() == ["keptlog: a-0: the record is odd", "keptlog: a-1: a-0: the other"]
