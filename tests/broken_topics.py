"""Every way in which one topic of a home can be broken, whatever the others are like: what is done to it, what is said.

The last word on a topic is its table's metadata file, named by the catalog; it names the manifest list, and so on down.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from pyiceberg.schema import Schema
from pyiceberg.types import LongType, NestedField

from keptlog.table.commits.loading import load_topic_table
from keptlog.table.store import LogStore


@dataclass(frozen=True)
class Breakage:
    """One way; ``said`` is what whoever looks at the topic is told, and what it names if it is a file."""

    id: str
    do: Callable[[LogStore, str], object]
    said: str

    def __call__(self, store: LogStore, topic: str) -> None:
        """Break the topic, which has records."""
        self.do(store, topic)


def _file(location: str) -> Path:
    return Path(location.removeprefix("file://"))


def cut_in_half(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def metadata_file(store: LogStore, topic: str) -> Path:
    return _file(store.metadata_locations()[topic])


def manifest_list(store: LogStore, topic: str) -> Path:
    snapshot = load_topic_table(store._catalog, topic).current_snapshot()
    assert snapshot
    return _file(snapshot.manifest_list)


def first_manifest(store: LogStore, topic: str) -> Path:
    table = load_topic_table(store._catalog, topic)
    snapshot = table.current_snapshot()
    assert snapshot
    return _file(snapshot.manifests(table.io)[0].manifest_path)


def _with_property(name: str, value: str) -> Callable[[LogStore, str], None]:
    def set_it(store: LogStore, topic: str) -> None:
        load_topic_table(store._catalog, topic).transaction().set_properties({name: value}).commit_transaction()

    return set_it


def _without_property(name: str) -> Callable[[LogStore, str], None]:
    def remove_it(store: LogStore, topic: str) -> None:
        load_topic_table(store._catalog, topic).transaction().remove_properties(name).commit_transaction()

    return remove_it


def _with_a_pipe(file_of: Callable[[LogStore, str], Path]) -> Callable[[LogStore, str], None]:
    def put_it(store: LogStore, topic: str) -> None:
        (file := file_of(store, topic)).unlink()
        os.mkfifo(file)

    return put_it


def _with_a_folder(file_of: Callable[[LogStore, str], Path]) -> Callable[[LogStore, str], None]:
    def put_it(store: LogStore, topic: str) -> None:
        (file := file_of(store, topic)).unlink()
        file.mkdir()

    return put_it


def foreign_table(store: LogStore, topic: str) -> None:
    """Another program's table takes the topic's place."""
    store._catalog.drop_table(("keptlog", topic))
    schema = Schema(NestedField(1, "id", LongType()))
    store._catalog.create_table(("keptlog", topic), schema)


def _not_json(store: LogStore, topic: str) -> None:
    metadata_file(store, topic).write_bytes(b'{"format-version": 2}')


def _other_bytes(store: LogStore, topic: str) -> None:
    metadata_file(store, topic).write_bytes(b"\xff\xfe\x00garbage")


def _nested(store: LogStore, topic: str) -> None:
    """Deeper than Python's own reader of JSON goes down."""
    metadata_file(store, topic).write_text("[" * 100_000)


def _main_elsewhere(store: LogStore, topic: str) -> None:
    """As no program of Iceberg's leaves it: the current snapshot is another one than the main branch's."""
    file = metadata_file(store, topic)
    stored = json.loads(file.read_text())
    file.write_text(json.dumps(stored | {"refs": {"main": {"snapshot-id": 1, "type": "branch"}}}))


BREAKAGES = (
    Breakage("the metadata file is cut off", lambda s, t: cut_in_half(metadata_file(s, t)), ".metadata.json"),
    Breakage("the metadata file is of nothing", lambda s, t: metadata_file(s, t).write_bytes(b""), ".metadata.json"),
    Breakage("the metadata file is of other bytes", _other_bytes, ".metadata.json"),
    Breakage("the metadata file is nested", _nested, ".metadata.json"),
    Breakage("the metadata file lacks fields", _not_json, ".metadata.json"),
    Breakage("main is not the current snapshot", _main_elsewhere, ".metadata.json"),
    Breakage("the metadata file is gone", lambda s, t: metadata_file(s, t).unlink(), ".metadata.json"),
    Breakage("the manifest list is cut off", lambda s, t: cut_in_half(manifest_list(s, t)), "snap-"),
    Breakage("the manifest list is gone", lambda s, t: manifest_list(s, t).unlink(), "snap-"),
    Breakage("a manifest is cut off", lambda s, t: cut_in_half(first_manifest(s, t)), "-m0.avro"),
    Breakage("a manifest is gone", lambda s, t: first_manifest(s, t).unlink(), "-m0.avro"),
    Breakage("the metadata file is a pipe", _with_a_pipe(metadata_file), "it is a named pipe"),
    Breakage("the manifest list is a pipe", _with_a_pipe(manifest_list), "it is a named pipe"),
    Breakage("a manifest is a folder", _with_a_folder(first_manifest), "it is a folder"),
    Breakage("it is a foreign table", foreign_table, "keptlog did not create it"),
    Breakage("a foreign setting", _with_property("kafka.compression.codec.of.mine", "x"), "of.mine"),
    Breakage("a foreign value of a setting", _with_property("kafka.cleanup.policy", "shred"), "shred"),
    Breakage("a damaged property", _with_property("log.p0.log-end-offset", "many"), "log.p0.log-end-offset"),
    Breakage("a damaged number of partitions", _with_property("log.partitions", "many"), "log.partitions"),
    Breakage("a billion partitions", _with_property("log.partitions", "999999999"), "log.partitions"),
    Breakage("no number of partitions", _without_property("log.partitions"), "property log.partitions is gone"),
    Breakage("a newer format", _with_property("keptlog.format-version", "2.0"), "upgrade keptlog"),
)
