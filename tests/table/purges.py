"""What tests of purges share: a log with something to purge, and what is left of it on the disk."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from keptlog.receipts.receipt import Draft
from keptlog.table.catalogs.catalog import open_catalog
from keptlog.table.io.files import TableFiles
from keptlog.table.metadata.references import all_references, comparable
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
    """What purges have left as proof, and nobody has sealed."""
    drafts = [json.loads(path.read_text()) for path in (home / "warehouse").rglob("metadata/receipts/*.json")]
    return [draft["content"] | {"id": draft["id"], "kind": draft["kind"], "at_ms": draft["at_ms"]} for draft in drafts]


def sealing_into(folder: Path) -> Callable[[Sequence[Draft]], None]:
    """A chain of receipts as plain files, which takes each id once."""

    def seal(drafts: Sequence[Draft]) -> None:
        folder.mkdir(exist_ok=True)
        for draft in drafts:
            if not (folder / draft.id).exists():
                text = json.dumps({"kind": draft.kind, "at_ms": draft.at_ms, "content": draft.content})
                (folder / "half").write_text(text)
                (folder / "half").rename(folder / draft.id)

    return seal


def sealed(folder: Path) -> list[dict[str, Any]]:
    """What was sealed, with its id."""
    chain = [path for path in folder.glob("*") if path.name != "half"]
    return [json.loads(path.read_text()) | {"id": path.name} for path in sorted(chain)]


def files_sealed(folder: Path, why: str | None = None) -> list[str]:
    """The files that sealed receipts say are gone, for this reason or any, each as often as it is said, sorted."""
    files = [file for receipt in sealed(folder) for file in receipt["content"]["files"]]
    return sorted(file["path"] for file in files if why in {None, file["why"]})


def proved(home: Path, why: str = "retired") -> list[str]:
    """The segments that receipts say are gone for this reason, each as often as it is said, sorted."""
    files = [file for receipt in receipts(home) for file in receipt["files"]]
    return sorted(file["path"] for file in files if file["why"] == why and "/metadata/" not in file["path"])


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
