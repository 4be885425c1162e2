"""Topic names are Kafka's, and a topic-partition is written so that it can be read back."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keptlog.errors import InvalidConfig
from keptlog.log.topic_partition import TopicPartition, valid_topic_name


@pytest.mark.parametrize("name", ["a", "server.schema.table", "a-b", "a_b", "...", "0", "-", "a" * 249])
def test_kafkas_names_are_accepted(name: str) -> None:
    assert valid_topic_name(name) == name


@pytest.mark.parametrize("name", ["", ".", "..", "a" * 250, "a b", "a/b", "ä", "a\n", "a:b"])
def test_other_names_are_refused(name: str) -> None:
    with pytest.raises(InvalidConfig, match="is not allowed: use 1 to 249 letters"):
        valid_topic_name(name)


@pytest.mark.parametrize(
    "text", ["orders", "orders-", "orders-x", "-0", "or ders-0", "", "orders--1x", "orders-00", "orders-" + "1" * 5000]
)
def test_text_that_is_no_topic_partition_is_refused(text: str) -> None:
    with pytest.raises(InvalidConfig):
        TopicPartition.parse(text)


def test_only_the_last_hyphen_separates_the_partition() -> None:
    assert TopicPartition.parse("my-topic.v1-12") == TopicPartition("my-topic.v1", 12)


@given(
    st.from_regex(r"[A-Za-z0-9._-]{1,249}", fullmatch=True).filter(lambda name: name not in {".", ".."}),
    st.integers(0, 2**63 - 1),
)
def test_what_is_written_is_read_back(topic: str, partition: int) -> None:
    topic_partition = TopicPartition(topic, partition)
    assert TopicPartition.parse(str(topic_partition)) == topic_partition


def test_topic_partitions_are_ordered_by_number_not_by_text() -> None:
    names = ["t-10", "t-9", "s-11"]
    assert [str(each) for each in sorted(map(TopicPartition.parse, names))] == ["s-11", "t-9", "t-10"]
