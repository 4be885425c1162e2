"""What a file declares, and what is said of one that can't be accepted: each problem with its line."""

from __future__ import annotations

from pathlib import Path

import pytest

from keptlog.errors import InvalidConfig
from keptlog.log.declared import About, DeclaredTopic
from keptlog.log.source import SourceIdentity
from keptlog.log.topic_partition import MAX_PARTITIONS
from keptlog.topics_file.nodes import FileProblem
from keptlog.topics_file.reading import TopicsFile, load_topics, read_topics

FULL = """\
x-hourly: &hourly
  cleanup.policy: [compact, delete]
  segment.ms: 3600000
topics:
  users:
    description: |
      Who they are.
      From the CRM.
    owners: [team:crm, ada@example.com]
    partitions: 4
    config:
      <<: *hourly
      segment.ms: "60000"
  orders:
    source: {topic: shop.orders, bootstrap: "broker-1:9092,broker-2:9092"}
    owners: ada@example.com
    config: *hourly
  4711:
"""


def read(text: str) -> TopicsFile:
    return read_topics(text.encode(), "topics.yaml")


def problems(text: str | bytes) -> list[tuple[int, str]]:
    found = read_topics(text.encode() if isinstance(text, str) else text, "topics.yaml").problems
    return [(each.line, each.text) for each in found]


def of_topic(*lines: str) -> list[tuple[int, str]]:
    """The problems of a topic, the first of these lines being line 3; without its name."""
    text = "topics:\n  t:\n" + "".join(f"    {line}\n" for line in lines)
    return [(line, said.removeprefix("topic t: ")) for line, said in problems(text)]


def test_a_file_declares_topics_with_everything() -> None:
    file = read(FULL)
    hourly = {"cleanup.policy": "compact,delete", "segment.ms": "3600000"}
    about = About("Who they are.\nFrom the CRM.", ("team:crm", "ada@example.com"))
    source = SourceIdentity("shop.orders", None, "broker-1:9092,broker-2:9092")
    assert file.problems == ()
    assert [entry.topic for entry in file.entries] == [
        DeclaredTopic("users", 4, hourly | {"segment.ms": "60000"}, about),
        DeclaredTopic("orders", None, hourly, About(owners=("ada@example.com",)), source),
        DeclaredTopic("4711"),
    ]
    assert file.lines == {"users": 5, "orders": 14, "4711": 18}


def test_a_source_has_the_topics_name_unless_it_says_otherwise() -> None:
    [entry] = read("topics:\n  users:\n    source:\n      bootstrap: broker:9092\n").entries
    assert entry.topic.source == SourceIdentity("users", None, "broker:9092")


@pytest.mark.parametrize("text", ["topics: {}\n", "topics:\n", '{"topics": {}}', "\ufefftopics: {}", "topics: {}\r\n"])
def test_a_file_may_declare_no_topic(text: str) -> None:
    assert (read(text).entries, read(text).problems) == ((), ())


def test_json_may_be_indented_with_tabs() -> None:
    file = read('{\n\t"topics": {\n\t\t"a": {"description": "b\\tc", "partitions":\t2},\n\t\t"e f": {}\n\t}\n}\n')
    assert [entry.topic for entry in file.entries] == [DeclaredTopic("a", 2, {}, About("b\tc"))]
    assert [each.line for each in file.problems] == [4]


def test_what_yaml_takes_for_something_else_stays_as_it_is_written() -> None:
    [entry] = read("topics:\n  on:\n    description: no\n    config: {min.cleanable.dirty.ratio: 5e-1}\n").entries
    assert (entry.topic.name, entry.topic.about.description) == ("on", "no")
    assert entry.topic.config == {"min.cleanable.dirty.ratio": "5e-1"}


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        ("", 1, "the file is empty: write topics:"),
        ("# nothing\n", 1, "the file is empty"),
        ("users\n", 1, "the file is 'users': write NAME: VALUE, one a line"),
        ("- users\n", 1, "the file is a list"),
        ("users: {}\n", 1, "there is no key 'users' here"),
        ("topcs: {}\n", 1, "the file: there is no key 'topcs' here: did you mean topics?"),
        ("topics: [users]\n", 1, "topics is a list: write NAME: VALUE, one a line"),
        ("topics: users\n", 1, "topics is 'users'"),
        ("topics:\n  a b:\n", 2, "topic name 'a b' is not allowed"),
        ("topics:\n  ..:\n", 2, "topic name '..' is not allowed"),
        ("topics:\n  ? [a]\n  : {}\n", 2, "topics: a name can't be a list"),
        ("topics:\n  a: {}\n  b: {}\n  a: {}\n", 4, "topics: a stands here twice, first in line 2; keep one"),
        ("topics:\n  a: {}\n  A: {}\n", 3, "topic A: it differs from topic a only in capitals"),
        ("topics:\n  a: {\n", 3, "this is no YAML: "),
        ("topics:\n  a:\n    b: 1\n   c: d\n", 4, "this is no YAML: "),
        ("topics:\n\ta: {}\n", 2, "this is no YAML: "),
        ("topics: {}\n---\ntopics: {}\n", 2, "this is no YAML: but found another document"),
        ("topics:\n  a: *nowhere\n", 2, "this is no YAML: found undefined alias"),
        ("topics:\n  a: \x07\n", 2, "YAML has no place for the character U+0007"),
        ("topics: &t\n  <<: [a]\n", 2, "topics, what << names, is 'a'"),
        ("[" * 5_000, 1, "this is nested too deeply"),
    ],
)
def test_a_file_that_is_none_is_refused_with_the_line(text: str, line: int, said: str) -> None:
    [found] = [each for each in problems(text) if said in each[1]]
    assert found[0] == line
    assert "\n" not in found[1]


def test_a_file_that_is_no_text_is_refused_with_the_line() -> None:
    assert problems(b"topics:\n  a:\n    description: \xff\n") == [(3, "this is no text in UTF-8")]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("partition: 3", "there is no key 'partition' here: did you mean partitions?"),
        ("partitions: four", f"partitions is 'four': write a whole number from 1 to {MAX_PARTITIONS}"),
        ("partitions: '4'", f"partitions is '4': write a whole number from 1 to {MAX_PARTITIONS}"),
        ("partitions: 1.5", f"partitions is '1.5': write a whole number from 1 to {MAX_PARTITIONS}"),
        ("partitions: 0", f"partitions is '0': write a whole number from 1 to {MAX_PARTITIONS}"),
        ("partitions: -1", f"partitions is '-1': write a whole number from 1 to {MAX_PARTITIONS}"),
        ("partitions: 10001", f"partitions is '10001': write a whole number from 1 to {MAX_PARTITIONS}"),
        ("partitions:", f"partitions is empty: write a whole number from 1 to {MAX_PARTITIONS}"),
        (f"partitions: {'1' * 5000}", f"partitions is '{'1' * 5000}': write a whole number from 1 to {MAX_PARTITIONS}"),
        ("partitions: [4]", f"partitions is a list: write a whole number from 1 to {MAX_PARTITIONS}"),
        ("config: [a]", "config is a list: write NAME: VALUE, one a line"),
        ("config: {cleanup.polcy: compact}", "there is no setting 'cleanup.polcy': did you mean cleanup.policy?"),
        ("config: {cleanup.policy: compress}", "cleanup.policy='compress' is not known: use compact or delete"),
        ("config: {retention.ms: soon}", "retention.ms='soon' is not a whole number"),
        ("config: {retention.ms: 1_000}", "retention.ms='1_000' is not a whole number"),
        ("config: {segment.bytes: 5}", "segment.bytes=5 is out of range: it must lie in [1048576, 2147483647]"),
        ("config: {segment.ms: }", "segment.ms is empty: write a value, or leave it out"),
        ("config: {segment.ms: {a: 1}}", "segment.ms is a mapping: write a value, or leave it out"),
        ("config: {segment.ms: 1, segment.ms: 2}", "config: segment.ms stands here twice, first in line 3; keep one"),
        (
            "config: {min.insync.replicas: 2}",
            "min.insync.replicas has no meaning on a lake: the storage replicates, not keptlog; leave it out",
        ),
        ("owners: [me]", "owner 'me' is not known: write an email address, or team:NAME"),
        ("owners: {a: b}", "an owner is a mapping: write a value, or leave it out"),
        ('description: "\\ud83d"', "description has half a character: write it whole, or leave it out"),
        ("description: [a]", "description is a list: write a value, or leave it out"),
        (f"description: {'a' * 10_001}", "description has 10001 characters: 10000 are allowed"),
        ("source: users", "source is 'users': write NAME: VALUE, one a line"),
        ("source:", "source is empty: write bootstrap: HOST:PORT below it, or leave it out"),
        ("source: {boostrap: a}", "source: there is no key 'boostrap' here: did you mean bootstrap?"),
        ("source: {topic: a b}", "source: topic name 'a b' is not allowed"),
        ('source: {bootstrap: ""}', "source: bootstrap '' is no address of a broker: write HOST:PORT"),
        ("source: {bootstrap: 'a:99999'}", "source: bootstrap 'a:99999' is no address of a broker"),
        ("source: {bootstrap: no port}", "source: bootstrap 'no port' is no address of a broker"),
        ("source: {bootstrap: 'a:1,,b:2'}", "source: bootstrap 'a:1,,b:2' is no address of a broker"),
        ("source: {bootstrap: [a]}", "source.bootstrap is a list: write a value, or leave it out"),
    ],
)
def test_an_entry_that_cant_be_accepted_is_refused_with_the_line(line: str, said: str) -> None:
    [found] = of_topic(line)
    assert found[0] == 3
    assert found[1].startswith(said)


def test_each_line_that_is_wrong_is_told() -> None:
    assert [
        line for line, _ in of_topic("partitions: x", "owners:", "- me", "- you", "config:", "  a: 1", "  b: 1")
    ] == [
        3,
        5,
        6,
        8,
        9,
    ]


def test_partitions_beside_a_source_are_refused() -> None:
    said = [(3, "it has the partitions of its source; leave partitions out")]
    assert of_topic("partitions: 3", "source: {bootstrap: b}") == said


def test_a_mapping_that_merges_itself_or_much_is_read_once() -> None:
    assert read("topics: &t\n  <<: *t\n  a: {}\n").lines == {"a": 3}
    layers = "".join(f"x-{n + 1}: &l{n + 1}\n  <<: [{', '.join([f'*l{n}'] * 20)}]\n" for n in range(30))
    text = f"x-0: &l0\n  segment.ms: 5\n{layers}topics:\n  a:\n    config: *l30\n"
    assert read(text).entries[0].topic.config == {"segment.ms": "5"}


def test_a_file_that_cant_be_opened_is_one_line(tmp_path: Path) -> None:
    for path, why in ((tmp_path / "none.yaml", "No such file or directory"), (tmp_path, "Is a directory")):
        with pytest.raises(InvalidConfig) as told:
            load_topics(path)
        assert str(told.value) == f"{path} can't be read: {why}"


def test_problems_are_told_in_the_order_of_the_file() -> None:
    file = read("topics:\n  a:\n    config: {x: 1}\n  A:\n    partitions: x\n")
    assert list(file.problems) == sorted(file.problems, key=lambda each: (each.line, each.text))
    assert all(isinstance(each, FileProblem) for each in file.problems)
