"""Writes topics as the file that declares them: read again, it is no difference to what was there."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import yaml

from keptlog.errors import InvalidConfig
from keptlog.log.config import parse_setting
from keptlog.log.declared import DeclaredTopic
from keptlog.log.setting import as_text

_HEAD = "# keptlog topic apply brings topics to what stands here (docs/topics.md)\n"
_WIDTH = 120
_OTHER_BREAKS = "\x85\u2028\u2029"
"""Characters that YAML takes for line breaks, too, and reads as another one unless they are escaped."""


class _Dumper(yaml.SafeDumper):  # type: ignore[misc]  # PyYAML has no types
    """Writes text of several lines as such, if its lines end as lines do."""


def _as_written(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    style = "|" if "\n" in text else None
    if any(character in text for character in _OTHER_BREAKS):
        style = '"'
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _as_written)


def as_yaml(topics: Iterable[DeclaredTopic]) -> str:
    """The file of these topics."""
    text = yaml.dump(as_data(topics), Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=_WIDTH)
    return f"{_HEAD}{text}"


def as_data(topics: Iterable[DeclaredTopic]) -> dict[str, Any]:
    """The same as what JSON and YAML know."""
    return {"topics": {topic.name: _entry(topic) for topic in topics}}


def _entry(topic: DeclaredTopic) -> dict[str, Any]:
    source = {"topic": topic.source.topic, "bootstrap": topic.source.bootstrap} if topic.source else {}
    entry = {
        "description": topic.about.description,
        "owners": list(topic.about.owners),
        # A topic has as many as its source.
        "partitions": None if topic.source else topic.partitions,
        "source": {name: value for name, value in source.items() if value},
        "config": {name: _plain(name, text) for name, text in topic.config.items()},
    }
    return {name: value for name, value in entry.items() if value}


def _plain(name: str, text: str) -> str | int | float:
    """A number where the text is just that; else YAML would put it between quotation marks."""
    try:
        value = parse_setting(name, text)
    except InvalidConfig:
        return text
    return value if isinstance(value, int | float) and as_text(value) == text else text
