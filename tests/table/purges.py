"""What tests of purges share: a log with something to purge, and what is left of it on the disk."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

from keptlog.table.catalog import open_catalog
from keptlog.table.files import TableFiles
from keptlog.table.references import all_references, comparable
from keptlog.table.store import LogStore
from tests.table.stores import TOPIC, append_each, clean, create

MINUTE_MS = 60_000
DAY_MS = 24 * 60 * MINUTE_MS


def clock_ms() -> int:
    return time.time_ns() // 1_000_000


def live_paths(store: LogStore) -> set[str]:
    return {segment.path for log in store.logs(TOPIC) for segment in log.segments}


def paths_of_values(store: LogStore) -> set[str]:
    """All files below the topic's location that may hold values."""
    location = store.describe_topic(TOPIC).location
    return {file.path for file in store.files.list(location) if not file.path.startswith(f"{location}/metadata/")}


def receipts(home: Path) -> list[dict[str, Any]]:
    """What purges have left as proof."""
    return [json.loads(path.read_text()) for path in (home / "warehouse").rglob("metadata/receipts/*.json")]


def stored_paths(home: Path) -> set[str]:
    """Everything at the topic's location, receipts excepted."""
    files = TableFiles().list(f"file://{home}/warehouse/keptlog/{TOPIC}")
    return {file.path for file in files if "/metadata/receipts/" not in file.path}


def unreferenced(home: Path) -> set[str]:
    referenced = all_references(open_catalog(home).load_table(("keptlog", TOPIC))).keys()
    return {path for path in stored_paths(home) if comparable(path) not in referenced}


def cleaned(home: Path) -> LogStore:
    """A log of which three segments were replaced by one."""
    store = create(home)
    append_each(store, [("a", "1")], [("a", "2")], [("b", "3"), ("a", "4")])
    clean(store)
    return store
