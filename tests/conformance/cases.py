"""Cases from a file: JSON with the cases under ``cases``, each of one kind.

Whatever a case says must be understood: a field, an operation or an expectation that nobody here knows is an error, for
a case that is only half understood proves nothing. Only text that stands beside a case's name may be anything: it tells
people about the case. An optional field that is null is not there.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from keptlog.log.config import NOT_APPLICABLE

Fields = Mapping[str, Any]

_DECISIONS = Path(__file__).parents[2] / "docs" / "adr"
_ABOUT = {"name", "kind", "source_test", "notes", "derived", "kafka_versions", "last_batch_rule"}
"""What a case says of itself. ``last_batch_rule`` says which empty batches stay in Kafka (``books``)."""

_MEANS_SOMETHING = {
    *("config", "steps", "batches", "records", "op", "base", "upper", "first_dirty", "max_keys", "expect", "policy"),
    *("log_start", "lso", "hw", "leo", "checkpoint", "uncleanable", "state", "segments", "logs", "now", "start", "end"),
    *("events", "ops", "memory", "hash", "threads", "load_factor", "max_size", "max_index", "first_uncleanable"),
    *("files", "swap_next_offset", "props", "level", "dialect", "active", "value", "key", "headers"),
}
"""Fields of a case of any kind. Text under such a name is no description, although this kind does not know it."""

_IF_GIVEN = {
    *("config", "expect", "upper", "base", "last", "records", "policy", "lso", "log_start", "checkpoint"),
    *("hash", "threads", "max_keys", "swap_next_offset", "ts", "size", "headers", "level", "dialect", "start"),
    *("mtime", "compression"),
}
"""Optional fields, which a case may also give as null. Of others null says something, or is a mistake to be told."""

_DECIDES_NOTHING = {*NOT_APPLICABLE, "producer.id.expiration.ms"}


class NotUnderstoodError(ValueError):
    """A case says something that this runner does not know."""


@dataclass(frozen=True)
class Difference:
    """What differs from Kafka on purpose in one case: a property of the case, and the decision that says why."""

    adr: int
    why: str

    def __post_init__(self) -> None:
        if not list(_DECISIONS.glob(f"{self.adr:04}-*.md")):
            raise NotUnderstoodError(f"there is no decision {self.adr} to explain: {self.why}")

    def __str__(self) -> str:
        return f"ADR {self.adr}: {self.why}"


def load(path: Path) -> list[Fields]:
    """The cases of a file, without optional fields that are null.

    Raises:
        NotUnderstoodError: it is no file of cases.
    """
    content = json.loads(path.read_text(encoding="utf-8"))
    if not isinstance(content, dict) or not isinstance(content.get("cases"), list):
        raise NotUnderstoodError(f"{path} has no list of cases under 'cases'")
    return [_given(case) for case in content["cases"]]


def _given(value: Any) -> Any:
    """The same without null in optional fields. What is to be validated as a configuration stays as it is."""
    if isinstance(value, list):
        return [_given(each) for each in value]
    if not isinstance(value, dict):
        return value
    return {
        name: each if name == "props" else _given(each)
        for name, each in value.items()
        if each is not None or name not in _IF_GIVEN
    }


def understood(fields: Fields, where: str, known: Collection[str], required: Collection[str] = ()) -> Fields:
    """The fields, if all of them are known and none is missing.

    Raises:
        NotUnderstoodError: naming those that are not.
    """
    unknown = sorted(set(fields) - set(known) - set(required))
    missing = sorted(set(required) - set(fields))
    if unknown or missing:
        raise NotUnderstoodError(f"{where}: unknown {unknown}, missing {missing}")
    return fields


def case_fields(case: Fields, known: Collection[str], required: Collection[str] = ()) -> Fields:
    """The same for a whole case, which may be described in any words."""
    described = {name for name, value in case.items() if name not in _MEANS_SOMETHING and _is_text(value)}
    return understood(case, str(case.get("name", case)), {*_ABOUT, *described, *known}, required)


def _is_text(value: object) -> bool:
    return isinstance(value, str) or (isinstance(value, list) and all(isinstance(each, str) for each in value))


def settings_of(config: Fields) -> dict[str, str]:
    """A case's configuration as the text that a topic is created with; sizes may be as small as one likes.

    Kafka's tests set what has no meaning here too, such as the sizes of indexes. No case's outcome hangs on that. What
    is null is not set.
    """
    given = {name: value for name, value in config.items() if value is not None and name not in _DECIDES_NOTHING}
    settings = {name: as_text(value) for name, value in given.items()}
    if "segment.bytes" in settings:
        settings["internal.segment.bytes"] = settings.pop("segment.bytes")
    return settings


def compacted(config: Fields) -> dict[str, str]:
    """The same for a log that a case cleans: Kafka's tests clean logs of any policy, keptlog only compacted ones."""
    settings = settings_of(config)
    policies = [each for each in settings.get("cleanup.policy", "").split(",") if each.strip()]
    return settings | {"cleanup.policy": ",".join(["compact", *policies])}


def as_text(value: Any) -> str:
    """A setting's value as Kafka's properties have it."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list):
        return ",".join(map(str, value))
    return str(value)
