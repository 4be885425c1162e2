"""The small kinds: ``config``, ``offset_map`` and ``grouping``."""

from __future__ import annotations

import hashlib

from keptlog.errors import InvalidConfig
from keptlog.log.broker import BROKER_NOT_APPLICABLE, BrokerConfig
from keptlog.log.config import NOT_APPLICABLE, SETTINGS, TopicConfig
from keptlog.log.groups import groups_to_rewrite
from keptlog.log.offset_map import SLOT_BYTES, keys_in, slots_in
from keptlog.log.segment import Segment
from tests.conformance.cases import Difference, Fields, as_text, case_fields, understood
from tests.conformance.kinds.foreign import OF_ANY_NUMBER, are_judged, are_kafkas

_OFFSET_BYTES = 8
_MOST_RELATIVE = 2**31 - 1
"""An index has offsets relative to its segment's base, in four bytes."""


def run_config(case: Fields) -> list[Difference]:
    """Whether a configuration is accepted, by ``TopicConfig`` or, for a broker's names, by ``BrokerConfig``."""
    fields = case_fields(case, {"level"}, {"props", "expect"})
    expect = understood(fields["expect"], "expect", set(), {"valid"})
    settings = {name: as_text(value) for name, value in fields["props"].items()}
    foreign = sorted(settings.keys() & (NOT_APPLICABLE.keys() | BROKER_NOT_APPLICABLE.keys()))
    is_valid = _is_accepted(settings)
    refused = [*foreign, *sorted(settings.keys() & set(OF_ANY_NUMBER))]
    others = {name: value for name, value in settings.items() if name not in refused}
    is_kafkas = are_kafkas(settings) and _is_accepted(others)
    if refused and not is_valid and (expect["valid"] or are_judged(refused)):
        assert is_kafkas is expect["valid"]
        return [Difference(18, f"{', '.join(refused)} is refused, for it would mean nothing")] if is_kafkas else []
    assert is_valid is expect["valid"]
    return []


def _is_accepted(settings: dict[str, str]) -> bool:
    of_topic = {setting.name for setting in SETTINGS} | NOT_APPLICABLE.keys()
    try:
        if settings.keys() <= of_topic:
            TopicConfig.of(settings)
        else:
            BrokerConfig.of(settings)
    except InvalidConfig:
        return False
    return True


def run_offset_map(case: Fields) -> list[Difference]:
    """How many keys an offset map takes."""
    fields = case_fields(case, {"hash", "threads"}, {"memory", "load_factor", "expect"})
    expect = understood(fields["expect"], "expect", {"bytes_per_entry", "slots", "max_keys"})
    digest = fields.get("hash", "MD5")
    slot_bytes = hashlib.new(digest.replace("-", "")).digest_size + _OFFSET_BYTES
    slots = slots_in(fields["memory"] // fields.get("threads", 1), slot_bytes)
    actual = {"bytes_per_entry": slot_bytes, "slots": slots, "max_keys": keys_in(slots, fields["load_factor"])}
    assert {name: actual[name] for name in expect} == expect
    if slot_bytes != SLOT_BYTES:
        return [Difference(12, f"keys are compared as keys; a slot counts {SLOT_BYTES} bytes, whatever the hash")]
    return []


def run_grouping(case: Fields) -> list[Difference]:
    """Which segments are rewritten together; all of them change."""
    fields = case_fields(case, set(), {"segments", "max_size", "max_index", "first_uncleanable", "expect"})
    expect = understood(fields["expect"], "expect", set(), {"groups"})
    _, *ends = *(each["base"] for each in fields["segments"]), fields["first_uncleanable"]
    segments = [_segment(each, end - 1) for each, end in zip(fields["segments"], ends, strict=True)]
    every = [True] * len(segments)
    groups = groups_to_rewrite(segments, every, every, fields["max_size"])
    found = [[segments[index].base_offset for index in group] for group in groups]
    kafkas = _kafkas_groups(fields)
    assert kafkas == expect["groups"], (kafkas, expect["groups"])
    if found == kafkas:
        return []
    assert len(found) == 1
    return [Difference(19, "neighbours that change are one group, and its output rolls; there are no indexes")]


def _kafkas_groups(fields: Fields) -> list[list[int]]:
    """``Cleaner.groupSegmentsBySize``: what a case may differ by on purpose is computed from the case."""
    segments, groups = fields["segments"], list[list[int]]()
    ends = [each["base"] for each in segments[1:]] + [fields["first_uncleanable"]]
    limits = {"size": fields["max_size"], "index": fields["max_index"], "time_index": fields["max_index"]}
    filled = dict.fromkeys(limits, 0)
    for each, end in zip(segments, ends, strict=False):
        sizes = {name: each.get(name) or 0 for name in limits}
        fits = all(filled[name] + sizes[name] <= limits[name] for name in limits)
        # An empty segment has no offset that could be too far from the first one's base.
        if groups and fits and (not sizes["size"] or end - 1 - groups[-1][0] <= _MOST_RELATIVE):
            groups[-1].append(each["base"])
            filled = {name: filled[name] + sizes[name] for name in limits}
        else:
            groups.append([each["base"]])
            filled = sizes
    return groups


def _segment(fields: Fields, last_offset: int) -> Segment:
    understood(fields, "segment", {"index", "time_index", "last"}, {"base", "size"})
    return Segment(f"{fields['base']}.parquet", fields["base"], last_offset, 0, 0, 1, fields["size"])
