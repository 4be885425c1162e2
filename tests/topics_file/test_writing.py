"""What is written declares just what was there."""

from __future__ import annotations

import json

from hypothesis import example, given
from hypothesis import strategies as st

from keptlog.log.config import SETTINGS
from keptlog.log.declared import About, DeclaredTopic, change_to
from keptlog.log.setting import Setting
from keptlog.log.source import SourceIdentity
from keptlog.topics_file.reading import read_topics
from keptlog.topics_file.writing import as_data, as_yaml

NAMES = st.from_regex(r"[A-Za-z0-9._-]{1,20}", fullmatch=True).filter(lambda name: name not in {".", ".."})


def values(setting: Setting) -> st.SearchStrategy[str]:
    """Texts that a setting takes."""
    default = setting.default
    if setting.choices:
        several = [",".join(setting.choices)] if isinstance(default, tuple) else []
        return st.sampled_from([*map(str, setting.choices), *several])
    if isinstance(default, float):
        return st.floats(0, 1).map(str)
    if isinstance(default, int):
        return st.integers(int(setting.minimum or 0), int(setting.maximum or 2**63 - 1)).map(str)
    return st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"])).map(str.strip).filter(bool)


CONFIGS = st.fixed_dictionaries({}, optional={setting.name: values(setting) for setting in SETTINGS})
ABOUTS = st.builds(
    About,
    st.none()
    | st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), max_size=200)
    .map(str.strip)
    .map(lambda text: text or None),
    st.lists(st.sampled_from(["team:crm", "ada@example.com", "team:'\"#"]), unique=True).map(tuple),
)
SOURCES = st.builds(SourceIdentity, NAMES, st.none(), st.none() | st.sampled_from(["broker:9092", "[::1]:9092,b:1"]))
TOPICS = st.builds(DeclaredTopic, NAMES, st.integers(1, 10_000), CONFIGS, ABOUTS) | st.builds(
    DeclaredTopic, NAMES, st.none(), CONFIGS, ABOUTS, SOURCES
)


@example([DeclaredTopic("0", 1, {}, About("0\x850", ()))])
@example([DeclaredTopic("0", 1, {}, About("a\u2028b\nc\u2029d", ()))])
@given(st.lists(TOPICS, max_size=4, unique_by=lambda topic: topic.name.lower()))
def test_what_is_written_and_read_again_is_no_difference(topics: list[DeclaredTopic]) -> None:
    for text in (as_yaml(topics), json.dumps(as_data(topics), indent=2)):
        file = read_topics(text.encode(), "topics.yaml")
        assert file.problems == ()
        assert [entry.topic.name for entry in file.entries] == [topic.name for topic in topics]
        for topic, entry in zip(topics, file.entries, strict=True):
            # A number may be written otherwise; it means the same.
            change = change_to(topic, entry.topic, ())
            assert (change.to_set, change.unset, change.after.about, change.after.source) == (
                {},
                (),
                topic.about,
                topic.source,
            )
            assert entry.topic.partitions == (None if topic.source else topic.partitions)


def test_it_is_written_for_people() -> None:
    about = About("Users.\nFrom the CRM: all.", ("team:crm",))
    config = {"cleanup.policy": "compact,delete", "min.cleanable.dirty.ratio": "0.5", "segment.ms": "3600000"}
    assert (
        as_yaml([DeclaredTopic("on", 2, config, about), DeclaredTopic("b", source=SourceIdentity("c"))])
        == """\
# keptlog topic apply brings topics to what stands here (docs/topics.md)
topics:
  'on':
    description: |-
      Users.
      From the CRM: all.
    owners:
    - team:crm
    partitions: 2
    config:
      cleanup.policy: compact,delete
      min.cleanable.dirty.ratio: 0.5
      segment.ms: 3600000
  b:
    source:
      topic: c
"""
    )
