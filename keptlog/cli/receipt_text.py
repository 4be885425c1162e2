"""A receipt in people's words: when, what of which topic, how much, why, what is still there, what it does not cover.

What kinds of receipts have in common is told in sentences. Whatever else a receipt holds is told by its name and value,
so that a kind which this page does not know, of a newer keptlog for one, is shown whole too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from keptlog.log.words.counted import counted
from keptlog.log.words.iso_time import iso_time
from keptlog.log.words.units import size

if TYPE_CHECKING:
    from keptlog.receipts.receipt import Receipt

_SHOWN = 20
_TITLES = {"purge": "purge", "topic-delete": "deletion", "erasure": "erasure"}
_TOLD = {
    "topic",
    "topics",
    "table_uuid",
    "files",
    "deleted_files",
    "expired_snapshots",
    "held_files",
    "not_deleted",
    "not_covered",
}
_TOLD_OF_ERASURES = {"states", "offsets", "searched_files"}
"""What is told in sentences."""


def files_of(receipt: Receipt) -> list[Mapping[str, Any]]:
    """The files that it says are gone; some kinds have none."""
    files = receipt.content.get("files", receipt.content.get("deleted_files"))
    return _objects(files)


def tells_files(content: Mapping[str, Any]) -> bool:
    """Whether it says which files are gone, if only that none is."""
    return "files" in content or "deleted_files" in content


def bytes_of(files: Sequence[Mapping[str, Any]]) -> int:
    """How large they were; one whose size was not known counts as nothing."""
    return sum(each["bytes"] for each in files if isinstance(each.get("bytes"), int))


def lines_of(receipt: Receipt, *, is_checked: bool) -> Iterator[str]:
    """A receipt for a terminal; long lists are cut, ``--json`` has all of them.

    ``is_checked``: its signature was found true.
    """
    content = receipt.content
    title = _TITLES.get(receipt.kind, receipt.kind)
    topics = ", ".join(receipt.topics)
    yield f"receipt {receipt.sequence}: {title}" + (f" of topic {topics}" if topics else "")
    yield f"  done      {iso_time(receipt.at_ms)}"
    yield f"  id        {receipt.id}"
    known = "" if is_checked else " (not checked: this home has no such public key)"
    yield f"  signed    by key {receipt.key_id}{known}, with keptlog {receipt.keptlog_version}"
    if content.get("table_uuid"):
        yield f"  table     {content['table_uuid']}"
    yield from _gone(content, files_of(receipt))
    yield from _left(content)
    told = _TOLD
    if receipt.kind == "erasure":
        yield from _erasure(content)
        told = _TOLD | _TOLD_OF_ERASURES
    if receipt.kind == "topic-delete" and "erasures" in content:
        yield from _ended(content["erasures"])
        told = _TOLD | {"erasures"}
    for name, value in content.items():
        if name not in told:
            yield from _named(name, value, "  ")
    covered = content.get("not_covered")
    if isinstance(covered, list) and covered:
        yield "  not covered by this receipt:"
        yield from (f"    {each}" for each in covered)


def _gone(content: Mapping[str, Any], files: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    if tells_files(content):
        yield f"  deleted   {_amount(files)}"
        by_why: dict[str, list[Mapping[str, Any]]] = {}
        for each in files:
            by_why.setdefault(str(each.get("why", "")), []).append(each)
        for why, of_why in by_why.items():
            if why:
                yield f"    {_WHY.get(why, why)}: {_amount(of_why)}"
        yield from some_lines([_file(each) for each in files])
    snapshots = content.get("expired_snapshots")
    if isinstance(snapshots, list) and snapshots:
        yield f"  expired   {counted(len(snapshots), 'snapshot')}: {', '.join(map(str, snapshots[:_SHOWN]))}" + (
            " …" if len(snapshots) > _SHOWN else ""
        )


_WHY = {
    "retired": "replaced by a clean or a retention, and past their delay",
    "orphan": "left by runs that failed or were killed",
    "topic-delete": "the topic was deleted",
}


def _ended(erasures: Any) -> Iterator[str]:
    """The open erasures of a topic that was deleted."""
    if erasures is None:
        yield "  its erasures could not be read: which of them were open is not known"
    open_ones = _objects(erasures)
    if open_ones:
        yield f"  {counted(len(open_ones), 'open erasure')} ended with it:"
        yield from some_lines([_ended_one(each) for each in open_ones])


def _ended_one(erasure: Mapping[str, Any]) -> str:
    requested, deadline = ("-" if at is None else iso_time(at) for at in map(erasure.get, _TIMES))
    keys = counted(len(erasure.get("key_hashes") or ()), "key")
    told = (
        f"{erasure.get('request')} of {keys}, asked for {requested}, deadline {deadline}, then {erasure.get('state')}"
    )
    return f"{told}, reason: {erasure['reason']}" if erasure.get("reason") else told


_TIMES = ("requested_ms", "deadline_ms")


def _left(content: Mapping[str, Any]) -> Iterator[str]:
    """What was still there when it was written."""
    refused = _objects(content.get("not_deleted"))
    if refused:
        yield f"  NOT DELETED, still there: {_amount(refused)}"
        yield from some_lines([f"{_file(each)}: {each.get('reason', 'no reason is told')}" for each in refused])
    if "held_files" not in content:
        return
    if content["held_files"] is None:
        yield "  what else still held values was not looked at"
        return
    by_holder: dict[str, list[Mapping[str, Any]]] = {}
    for each in _objects(content["held_files"]):
        by_holder.setdefault(str(each.get("holder", "unknown")), []).append(each)
    if not by_holder:
        yield "  nothing else was known to hold values"
    for holder, held in by_holder.items():
        yield f"  still held then, {holder}: {_amount(held)}"
        yield from some_lines([_file(each) for each in held])


def _erasure(content: Mapping[str, Any]) -> Iterator[str]:
    """How far it came when, which records went, and what was looked through for them at the end."""
    for each in _objects(content.get("states")):
        yield f"  {each.get('state', '?'):<12}  {iso_time(each['at_ms']) if 'at_ms' in each else '-'}"
    fingerprint = content.get("secret_fingerprint")
    yield from some_lines([_bound(each, fingerprint) for each in _objects(content.get("offsets"))], "  ")
    files = _objects(content.get("searched_files"))
    if content.get("key_hashes") == []:
        yield f"  searched  {_amount(files)} FOR NO KEY: the erasure was made for none, so this proves nothing"
    else:
        yield f"  searched  {_amount(files)}: none has a record of these keys that was to go"
    yield from some_lines([_file(each) for each in files])


def _bound(offsets: Mapping[str, Any], fingerprint: Any) -> str:
    whose = f"key {fingerprint}:{offsets['key_hash']}" if offsets.get("key_hash") else "its keys"
    told = f"gone      all of {whose} in partition {offsets.get('partition')} below offset {offsets.get('end_offset')}"
    if offsets.get("first_tombstone_offset") is None:
        return told
    return f"{told}, tombstones {offsets['first_tombstone_offset']} to {offsets.get('last_tombstone_offset')} included"


def _file(file: Mapping[str, Any]) -> str:
    parts = [str(file.get("path", "?")), size(file.get("bytes") or 0)]
    if file.get("partition") is not None:
        parts.append(f"partition {file['partition']}")
    if file.get("first_offset") is not None:
        parts.append(f"offsets {file['first_offset']} to {file.get('last_offset')}")
    parts += [f"{name} {file[name]}" for name in ("crc32", "sha256", "version") if file.get(name)]
    return ", ".join(parts)


def _named(name: str, value: Any, indent: str) -> Iterator[str]:
    """Anything else, by its name."""
    words = name.removesuffix("_ms").removesuffix("_bytes").replace("_", " ")
    if isinstance(value, Mapping):
        yield f"{indent}{words}:"
        for inner, each in value.items():
            yield from _named(inner, each, f"{indent}  ")
    elif isinstance(value, list):
        yield f"{indent}{words}: {len(value) or 'none'}"
        yield from some_lines([_in_one_line(each) for each in value], f"{indent}  ")
    elif name.endswith("_ms") and isinstance(value, int):
        yield f"{indent}{words}: {iso_time(value)}"
    elif name.endswith("bytes") and isinstance(value, int):
        yield f"{indent}{words}: {size(value)}"
    else:
        yield f"{indent}{words}: {'-' if value is None else value}"


def _in_one_line(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {_in_one_line(each)}" for name, each in value.items() if each is not None)
    return ", ".join(map(_in_one_line, value)) if isinstance(value, list) else str(value)


def some_lines(lines: Sequence[str], indent: str = "    ") -> Iterator[str]:
    """The first of many lines, and how many more there are: a receipt, or a request, may be of 100,000 keys."""
    yield from (f"{indent}{line}" for line in lines[:_SHOWN])
    if len(lines) > _SHOWN:
        yield f"{indent}and {len(lines) - _SHOWN} more (all with --json)"


def _amount(files: Sequence[Mapping[str, Any]]) -> str:
    return f"{counted(len(files), 'file')}, {size(bytes_of(files))}"


def _objects(value: Any) -> list[Mapping[str, Any]]:
    return [each for each in value if isinstance(each, Mapping)] if isinstance(value, list) else []
