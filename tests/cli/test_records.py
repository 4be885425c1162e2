"""``keptlog append`` and ``keptlog read``: all of a file goes in, or nothing of it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.cli.conftest import Run

Lines = Callable[..., str]


@pytest.fixture
def users(keptlog: Run) -> str:
    keptlog("topic", "create", "users", "--partitions", "2", "--config", "cleanup.policy=compact")
    return "users"


def test_what_is_appended_is_read_back_by_partition_and_offset(keptlog: Run, users: str, lines: Lines) -> None:
    file = lines(
        {"key": "a", "value": "1", "timestamp": 5, "partition": 1},
        {"key": "b", "value": "", "timestamp": 6, "partition": 0, "headers": [{"key": "h", "value": None}]},
        {"key_base64": "/w==", "value": None, "timestamp": 7, "partition": 1},
    )
    assert keptlog("append", users, "--file", file).code == 0
    assert keptlog("read", users).json_lines == [
        {
            "partition": 0,
            "offset": 0,
            "timestamp": 6,
            "key": "b",
            "value": "",
            "headers": [{"key": "h", "value": None}],
        },
        {"partition": 1, "offset": 0, "timestamp": 5, "key": "a", "value": "1"},
        {"partition": 1, "offset": 1, "timestamp": 7, "key_base64": "/w==", "value": None},
    ]
    assert [each["offset"] for each in keptlog("read", users, "--partition", "1", "--from-offset", "1").json_lines] == [
        1
    ]


def test_latest_is_the_state_that_the_log_tells(keptlog: Run, users: str, lines: Lines) -> None:
    file = lines(
        {"key": "a", "value": "1"}, {"key": "b", "value": "1"}, {"key": "a", "value": "2"}, {"key": "b", "value": None}
    )
    keptlog("append", users, "--file", file)
    assert [(each["key"], each["value"]) for each in keptlog("read", users, "--latest").json_lines] == [("a", "2")]


def test_a_malformed_line_four_of_ten_appends_nothing_and_is_named(keptlog: Run, users: str, lines: Lines) -> None:
    good = [{"key": f"k{number}", "value": "v"} for number in range(9)]
    refused = keptlog("append", users, "--file", lines(*good[:3], '{"key": "x", "value": ', *good[3:]))
    assert refused.code == 2
    assert "records.jsonl: line 4: not JSON" in refused.err
    assert "nothing was appended" in refused.err
    assert keptlog("read", users).out == ""
    assert [log["log_end_offset"] for log in keptlog("topic", "describe", users, "--json").json["logs"]] == [0, 0]


@pytest.mark.parametrize(
    ("record", "message"),
    [
        ({"value": "v"}, "record 2 can't be appended: it has no key, but the topic is compacted"),
        ({"key": "k", "value": "v", "partition": 2}, "partition 2 does not exist: use 0 to 1"),
        ({"key": "k", "value": "v" * 1_048_588}, "above max.message.bytes=1048588"),
        ({"key": "k", "value": "v", "timestamp": -5}, "timestamp -5"),
    ],
)
def test_a_record_that_the_topic_refuses_takes_its_whole_batch_with_it(
    keptlog: Run, users: str, lines: Lines, record: dict[str, object], message: str
) -> None:
    refused = keptlog("append", users, "--file", lines({"key": "ok", "value": "v"}, record))
    assert refused.code == 2
    assert message in refused.err
    assert keptlog("read", users).out == ""


def test_a_file_or_topic_that_does_not_exist_is_bad_input(keptlog: Run, users: str, lines: Lines) -> None:
    assert keptlog("append", users, "--file", "missing.jsonl").code == 2
    assert keptlog("append", "missing", "--file", lines({"key": "a", "value": "1"})).code == 2
    assert keptlog("read", users, "--partition", "7").code == 2


def test_an_empty_file_appends_nothing(keptlog: Run, users: str, lines: Lines) -> None:
    result = keptlog("append", users, "--file", lines(), "--json")
    assert result.code == 0
    assert result.json["records"] == 0
