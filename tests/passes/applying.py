"""What tests of an apply have in common: a file of topics, and who applies it."""

from __future__ import annotations

from keptlog.home import new_id
from keptlog.passes.apply import Applied, Applier
from keptlog.table.store import LogStore
from keptlog.topics_file.reading import TopicsFile, read_topics
from tests.passes.conftest import NOW_MS


def file(*lines: str) -> TopicsFile:
    return read_topics("".join(["topics:\n", *lines]).encode(), "topics.yaml")


def applier(store: LogStore, at_once: int = 1) -> Applier:
    return Applier(store, new_id, at_once)


def applied(store: LogStore, *lines: str, delete: tuple[str, ...] = ()) -> Applied:
    each = applier(store)
    return each.carry_out(each.plan(file(*lines), delete), NOW_MS)
