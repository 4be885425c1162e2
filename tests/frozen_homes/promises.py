"""What a home tells of format 1.2's promises, as JSON: erasures, readers, and what receipts prove."""

from __future__ import annotations

import dataclasses
import json
from functools import partial
from pathlib import Path
from typing import Any

from keptlog.home import open_home
from keptlog.receipts.receipt import sha256_of
from keptlog.table.removal.erasure_look import read_register
from tests.frozen_homes.command import keptlog


def promised(home: Path, now_ms: int) -> Any:
    """What is stored of them, and what the commands say; nothing is changed by the look."""
    store = open_home(home, {}).store
    registers = {topic: read_register(store.files, partial(store.load_table, topic)) for topic in store.topics()}
    told = {
        "erasures": {topic: [_as_json(each) for each in known] for topic, known in registers.items() if known},
        "readers": [_reader(row) for row in keptlog(home, now_ms, "reader", "list", "--json").json["readers"]],
        "receipts": receipts(home),
        "chain": keptlog(home, now_ms, "receipt", "verify").out,
    }
    return json.loads(json.dumps(told))


def _reader(row: dict[str, Any]) -> dict[str, Any]:
    """A row as the homes have it that were frozen before the command named logs in one word."""
    topic, _, partition = row["topic_partition"].rpartition("-")
    rest = {name: value for name, value in row.items() if name != "topic_partition"}
    return rest | {"topic": topic, "partition": int(partition)}


def receipts(home: Path) -> list[list[Any]]:
    """Number, kind, topics and hash of each, oldest first."""
    found = open_home(home, {}).receipts.list()
    return [[each.sequence, each.kind, list(each.topics), sha256_of(each.to_bytes())] for each in found]


def _as_json(erasure: Any) -> Any:
    told = dataclasses.asdict(erasure)
    if not told["dropped_by"]:
        del told["dropped_by"]  # no home had it that was frozen before
    return told | {
        name: [list(each.values()) for each in told[name]] for name in ("bounds", "waiting", "looked", "reached")
    }
