"""What a purge, or the deletion of a topic, shows of what is gone and of what is still there."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from keptlog.cli.output import print_json, tell_wrong
from keptlog.errors import KeptlogError, UnknownTopic
from keptlog.log.segment import total_bytes
from keptlog.log.words.counted import counted, some_of
from keptlog.log.words.harmless import harmless
from keptlog.log.words.units import size
from keptlog.table.metadata.state import read_open_erasures

if TYPE_CHECKING:
    from keptlog.passes.purge import PurgePreviews
    from keptlog.table.purging.purge_receipt import PurgeReceipt
    from keptlog.table.removal.drafts import Sealing
    from keptlog.table.removal.journal import EndedErasure
    from keptlog.table.removal.removal import NotDeleted
    from keptlog.table.removal.topic_deletion import TopicDeletion
    from keptlog.table.store import LogStore

_SHOWN = 10
_AGAIN = "ask for their keys again if a topic gets these records again"


def tell_previews(previews: PurgePreviews, *, is_answer: bool, as_json: bool) -> None:
    """What a purge would delete: the answer of a dry run, else on stderr before somebody is asked."""
    if is_answer and as_json:
        topics = {
            each.topic: {name: number for name, number in asdict(each).items() if name not in {"topic", "is_whole"}}
            for each in previews.topics
        }
        print_json({"is_dry_run": True, "topics": topics, "deletions": list(previews.deletions)}, previews.failed)
        return
    for each in previews.topics:
        if is_answer or each.deletes_anything or not each.is_whole:
            click.echo(harmless(str(each)), err=not is_answer)
    for name in previews.deletions:
        click.echo(f"{harmless(name)}: its deletion would be finished, all its files go", err=not is_answer)
    for name, error in previews.untold.items() if not is_answer else ():
        tell_wrong(f"{name}: {error}")


def purge_numbers(receipt: PurgeReceipt) -> dict[str, int]:
    """How much is gone."""
    return {
        "expired_snapshots": len(receipt.expired_snapshots),
        "deleted_files": len(receipt.deleted_files),
        "deleted_metadata_files": len(receipt.deleted_metadata),
        "deleted_orphans": len(receipt.deleted_orphans),
        "deleted_bytes": receipt.deleted_bytes,
    }


def purge_rest(receipt: PurgeReceipt) -> dict[str, object]:
    """The tags and branches that are gone, what may still hold values, what was left or gone past, and the receipts."""
    return {
        "dropped_refs": [asdict(each) for each in receipt.dropped_refs],
        "held_files": [asdict(file) for file in receipt.held],
        "not_deleted": [file.told for file in receipt.not_deleted],
        "unreadable": list(receipt.unreadable),
        "not_looked_at": list(receipt.not_looked_at),
    } | _receipts(receipt.receipts, receipt.sealing)


def purge_lines(receipt: PurgeReceipt) -> list[str]:
    """The same for people."""
    from keptlog.table.removal.held import held_lines  # noqa: PLC0415  # it is there: a purge was made with it

    return [
        *(f"dropped {each}" for each in receipt.dropped_refs),
        *held_lines(receipt.held),
        *_not_deleted(receipt.not_deleted),
        *(f"could not be read: {what}" for what in receipt.unreadable),
        *(f"not looked at: {what}" for what in receipt.not_looked_at),
        *_sealing(receipt.sealing),
    ]


def deletion_numbers(deletion: TopicDeletion) -> dict[str, object]:
    """What the deletion of a topic did."""
    return {
        "deleted_files": len(deletion.deleted_files),
        "not_deleted": [file.told for file in deletion.not_deleted],
        "is_over": deletion.is_over and not deletion.not_deleted,
        "ended_erasures": None if deletion.ended is None else [each.request for each in deletion.ended],
    } | _receipts(deletion.receipts, deletion.sealing)


def print_deletion(deletion: TopicDeletion) -> None:
    """The same for people."""
    begun = "deleted" if deletion.is_over else "not wholly deleted"
    click.echo(f"{begun} {deletion.topic}: {counted(len(deletion.deleted_files), 'file')}")
    for line in (*_ended(deletion.ended), *_not_deleted(deletion.not_deleted), *_sealing(deletion.sealing)):
        click.echo(harmless(f"{deletion.topic}: {line}"))


def tell_what_goes(store: LogStore, topics: Iterable[str]) -> None:
    """What goes with topics that are about to be deleted, on stderr, before somebody is asked."""
    for name in topics:
        try:
            count = read_open_erasures(name, store.load_table(name).properties).count
        except UnknownTopic:  # its deletion was begun, and they ended with that
            continue
        except KeptlogError as error:
            tell_wrong(f"{name}: open erasures would end with it, and nobody can tell whether there are any: {error}")
            continue
        click.echo(harmless(f"{name}: {_records_of(store, name)} would go"), err=True)
        if count:
            click.echo(harmless(f"{name}: {counted(count, 'open erasure')} would end with it; {_AGAIN}"), err=True)


def _records_of(store: LogStore, name: str) -> str:
    """How much a topic has. What can't be read may be deleted all the same."""
    try:
        logs = store.logs(name)
    except KeptlogError as error:
        return f"records of which nobody can tell how many they are ({error})"
    segments = [segment for log in logs for segment in log.segments]
    records = counted(sum(segment.record_count for segment in segments), "record")
    return f"{records} in {counted(len(logs), 'log')} ({size(total_bytes(segments))})"


def _ended(erasures: Sequence[EndedErasure] | None) -> list[str]:
    if erasures is None:
        return [f"its erasures could not be read: open ones have ended with it, and no receipt names them; {_AGAIN}"]
    if not erasures:
        return []
    ids = some_of([each.request for each in erasures], _SHOWN)
    return [f"{counted(len(erasures), 'open erasure')} ended with it: {ids}; {_AGAIN}"]


def _receipts(written: Iterable[str], sealing: Sealing) -> dict[str, object]:
    return {"receipts": list(written), "receipts_waiting": list(sealing.waiting)}


def _not_deleted(files: Iterable[NotDeleted]) -> list[str]:
    return [f"not deleted: {file.path}: {file.reason}" for file in files]


def _sealing(sealing: Sealing) -> list[str]:
    sealed = [f"receipt {name}" for name in sealing.sealed]
    waiting = [f"receipt {name} waits to be sealed: {sealing.why}" for name in sealing.waiting]
    return sealed + waiting
