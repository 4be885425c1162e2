"""The chain of receipts of a home: a table of its own, which outlives every topic.

The table has no records. Its properties say how far the chain goes, and commits move them as they move a topic's
offsets, each on exactly the snapshot that it was built from (ADR 1):

    draft 5f2c     written to 000000000018-5f2c~a.json, naming the hash of 17     committed: chain.length 18
    draft 77aa     written to 000000000018-77aa~b.json, naming the hash of 17     refused: 18 is taken
                   written to 000000000019-77aa~c.json, naming the hash of 18     committed: chain.length 19

So of each id one receipt is sealed, whoever seals it, and how often: before each attempt it is looked whether the chain
has it by now. Killed between file and commit, a writer leaves a file that is none of the chain's (``receipt_files``).

Each commit also lets the oldest snapshots go, and deletes metadata and heads that are older than all that the table
still names: manifest lists of those snapshots, and what refused commits have left. What was built on an older snapshot
no catalog takes any more, so that needs no fence (``sweep``). What is younger may be of a catalog that went on, while
this one was put back to an older state: whoever puts that one back needs it.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from uuid import UUID

from pyiceberg.catalog import WAREHOUSE_LOCATION, Catalog, MetastoreCatalog
from pyiceberg.exceptions import TableAlreadyExistsError
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.table.snapshots import Snapshot
from pyiceberg.types import LongType, NestedField

from keptlog.errors import KeptlogError, LogCorrupt, UnknownTopic
from keptlog.receipts.chain import sealed, signed_head
from keptlog.receipts.receipt import Draft, Receipt
from keptlog.receipts.signing import SigningKey
from keptlog.storage.files import StoredFile
from keptlog.storage.leftover import discard
from keptlog.table.catalogs.catalog import make_namespace, usual_location
from keptlog.table.catalogs.emptied import emptied
from keptlog.table.chain.receipt_files import (
    HEAD_FILE,
    HEAD_SHA256,
    LENGTH,
    ChainEnd,
    ReceiptFiles,
    chain_folder,
    head_name,
    head_sequence,
    receipt_path,
)
from keptlog.table.chain.sealed_receipts import CHAIN, SealedReceipts
from keptlog.table.commits.commit import Committer, Land
from keptlog.table.commits.loading import load_topic_table
from keptlog.table.commits.staged import discarded_if_refused
from keptlog.table.io.files import TableFiles
from keptlog.table.io.read_only import require_writable
from keptlog.table.metadata.change import OPERATION, Change
from keptlog.table.metadata.format import CURRENT, FORMAT_VERSION
from keptlog.table.metadata.lineage import COMMIT_ID, summary_of
from keptlog.table.metadata.manifests import FileChange
from keptlog.table.metadata.metadata_files import METADATA_ENDINGS
from keptlog.table.metadata.metadata_reading import whole_metadata
from keptlog.table.metadata.references import comparable
from keptlog.table.metadata.schema import GENERAL_PROPERTIES
from keptlog.table.namespaces import RECEIPTS
from keptlog.table.waiting.reaching import one_line, reaching

_logger = logging.getLogger(__name__)

SEALED_AT_ONCE = 1_000
"""Drafts of one commit: what a lost race costs."""
KEPT_SNAPSHOTS = 100
"""More than others commit while one waits for an answer."""
_SCHEMA = Schema(NestedField(1, "sequence", LongType(), required=True))
_PROPERTIES = GENERAL_PROPERTIES | {
    FORMAT_VERSION: str(CURRENT),
    "comment": "Receipts of keptlog. They are no rows, but files below receipts/ of this location: see keptlog receipt",
}
ATTEMPT = "keptlog.attempt"
"""Snapshot summary property: which files have landed; several processes may write the same, byte for byte."""


@dataclass
class ReceiptChain(SealedReceipts):
    """Seals drafts into the chain of one catalog, and reads what was sealed."""

    committer: Committer
    key: Callable[[], SigningKey]
    """Called when something is sealed, not before."""
    new_id: Callable[[], str]
    version: str
    """Of this keptlog; every receipt says it."""
    _known: ReceiptFiles | None = None
    """What was listed by earlier calls."""

    @property
    def files(self) -> TableFiles:
        return self.committer.files

    def append(self, drafts: Iterable[Draft]) -> list[Receipt]:
        """Seal drafts in their order, those of one id once; gives the receipts, also those that were sealed before.

        Raises:
            InvalidConfig: the home is a copy, or was moved; or its signing key is not usable.
            StalePlan: others kept sealing first. What was sealed of the drafts stays so; append again.
            CommitStateUnknown: the catalog did not say whether it landed; append again, which finds out.
            StorageUnavailable: catalog, storage or key can't be reached, or made.
            LogCorrupt: what is stored of the chain contradicts itself.
        """
        require_writable(self.files.properties)
        unique = list({draft.id: draft for draft in drafts}.values())
        receipts: list[Receipt] = []
        for first in range(0, len(unique), SEALED_AT_ONCE):
            with reaching("receipts can't be sealed"):
                self._make_table()
                sealing = _Sealing(self, unique[first : first + SEALED_AT_ONCE], self.key())
                receipts += sealing.carry_out()
        return receipts

    def table(self) -> Table | None:
        """The table of the chain as it is now; null if nothing was ever sealed."""
        return chain_table(self.committer.catalog)

    def default_location(self) -> str | None:
        """Where the catalog puts the chain's table; null where only a server knows."""
        return chain_location(self.committer.catalog)

    def why_not_believed(self) -> KeptlogError | None:
        """Why a catalog without a chain is not believed; null if it is."""
        return emptied(self.committer.catalog)

    def known(self, table: Table) -> ReceiptFiles:
        """The files of the chain as a table says; only what came since the last look is listed."""
        end = ChainEnd.of(table.properties)
        folder = chain_folder(table)
        if self._known is None or self._known.folder != folder or not self._known.went_on_to(end):
            anew = ReceiptFiles(self.files, folder)
            anew.look(end)
            self._known = anew
        return self._known

    def _make_table(self) -> None:
        if self.table() is not None:
            return
        catalog = self.committer.catalog
        make_namespace(catalog, RECEIPTS)
        with contextlib.suppress(TableAlreadyExistsError):
            catalog.create_table((RECEIPTS, CHAIN), _SCHEMA, properties=_PROPERTIES)


def chain_table(catalog: Catalog) -> Table | None:
    """The table of a catalog's chain as it is now; null if nothing was ever sealed."""
    try:
        return load_topic_table(catalog, CHAIN, RECEIPTS)
    except UnknownTopic:
        return None


def chain_location(catalog: Catalog) -> str | None:
    """Where a catalog puts the chain's table; null where only a server knows."""
    if location := usual_location(catalog, RECEIPTS, CHAIN):
        return location
    # The namespace may have been dropped with the table.
    warehouse = catalog.properties.get(WAREHOUSE_LOCATION) if isinstance(catalog, MetastoreCatalog) else None
    return f"{warehouse.rstrip('/')}/{RECEIPTS}/{CHAIN}" if warehouse else None


@dataclass
class _Attempt:
    """Files that were written for a commit on one snapshot."""

    name: str
    table_id: str
    snapshot_id: int | None
    paths: list[str] = field(default_factory=list)
    receipts: Sequence[Receipt] = ()
    properties: dict[str, str] = field(default_factory=dict)
    """Of the table, once it has landed."""

    def is_on(self, table: Table) -> bool:
        return (self.table_id, self.snapshot_id) == (str(table.metadata.table_uuid), table.metadata.current_snapshot_id)

    def is_lost(self, table: Table) -> bool:
        """Whether it has not landed and never will: others have built on its snapshot, and it is not among them."""
        if self.is_on(table):
            return False
        seen = {snapshot.snapshot_id for snapshot in table.metadata.snapshots}
        is_known = self.snapshot_id is None or self.snapshot_id in seen
        return is_known and all(summary_of(each).get(ATTEMPT) != self.name for each in table.metadata.snapshots)


@dataclass
class _Sealing:
    """Drafts on their way into the chain, in one commit."""

    chain: ReceiptChain
    drafts: Sequence[Draft]
    key: SigningKey
    _attempts: list[_Attempt] = field(default_factory=list)

    def carry_out(self) -> list[Receipt]:
        ids = " ".join(sorted(draft.id for draft in self.drafts))
        commit_id = f"/{hashlib.sha256(ids.encode()).hexdigest()}"
        again = "the same again finds it if it did"
        change = Change(CHAIN, commit_id=commit_id, require_fit=_fits, remedy=again, namespace=RECEIPTS)
        summary = {COMMIT_ID: commit_id, OPERATION: "seal"}
        with discarded_if_refused(self.chain.files, self._staged):
            self.chain.committer.commit(change, lambda table: self._prepare(table, summary))
        table = load_topic_table(self.chain.committer.catalog, CHAIN, RECEIPTS)
        listed = self.chain.known(table)
        receipts = self._sealed(listed)
        self._drop_lost(table)
        _tidy(self.chain.files, table)
        return receipts

    def _sealed(self, listed: ReceiptFiles) -> list[Receipt]:
        """What the chain has of the drafts, each read again.

        Of those that were written here the one is given that shares its content with others: a thousand erasures that
        one search has proved have the list of all files in each.
        """
        own = {(each.sequence, each.id): each for attempt in self._attempts for each in attempt.receipts}
        found: list[Receipt] = []
        for draft in self.drafts:
            read = _of_id(listed, draft.id)
            written = own.get((read.sequence, read.id))
            found.append(written if written == read else read)
        return found

    def _prepare(self, table: Table, summary: dict[str, str]) -> Land | None:
        listed = self.chain.known(table)
        new = [draft for draft in self.drafts if listed.number_of(draft.id) is None]
        if not new:
            return None
        attempt = next((each for each in self._attempts if each.is_on(table)), None)
        if attempt is None:
            self._drop_lost(table)
            attempt = self._written(table, listed, new)
        return FileChange(
            summary | {ATTEMPT: attempt.name}, attempt.properties, expired_snapshots=_expired(table)
        ).written(table)

    def _written(self, table: Table, listed: ReceiptFiles, drafts: Sequence[Draft]) -> _Attempt:
        """Write receipts and head for a commit on exactly this table."""
        name = self.chain.new_id()
        attempt = _Attempt(name, str(table.metadata.table_uuid), table.metadata.current_snapshot_id)
        receipts = self._chained(listed.end, drafts)
        newest = receipts[-1]
        head_file = head_name(newest.sequence, name)
        by_path = {receipt_path(listed.folder, receipt, name): receipt for receipt in receipts}
        attempt.paths, attempt.receipts = [*by_path, listed.folder + head_file], receipts
        try:
            with self.chain.files.durable_at_end() as files:
                for path, receipt in by_path.items():
                    files.write_bytes(path, receipt.to_bytes())
                files.write_bytes(listed.folder + head_file, signed_head(newest, self.key).to_bytes())
        except BaseException:
            discard(self.chain.files, attempt.paths)
            raise
        attempt.properties = {LENGTH: str(newest.sequence), HEAD_SHA256: newest.sha256, HEAD_FILE: head_file}
        self._attempts.append(attempt)
        return attempt

    def _chained(self, end: ChainEnd, drafts: Sequence[Draft]) -> list[Receipt]:
        receipts: list[Receipt] = []
        previous_sha256 = end.sha256
        for number, draft in enumerate(drafts, end.length + 1):
            receipts.append(sealed(draft, number, previous_sha256, self.key, self.chain.version))
            previous_sha256 = receipts[-1].sha256
        return receipts

    def _staged(self) -> list[str]:
        return [path for attempt in self._attempts for path in attempt.paths]

    def _drop_lost(self, table: Table) -> None:
        """Delete what was written for attempts that have not landed, and never will."""
        for attempt in [each for each in self._attempts if each.is_lost(table)]:
            discard(self.chain.files, attempt.paths)
            self._attempts.remove(attempt)


def _fits(_: Table) -> None:
    """Whatever another program does to its snapshots, the chain is told by its properties and files alone."""


def _of_id(listed: ReceiptFiles, receipt_id: str) -> Receipt:
    number = listed.number_of(receipt_id)
    if number is None:
        raise LogCorrupt(f"receipt {receipt_id} was sealed, and its file is gone: keptlog receipt verify names what is")
    return listed.receipt(number)


def _expired(table: Table) -> list[int]:
    """The oldest snapshots, but for those that somebody has given a name."""
    named = {reference.snapshot_id for reference in table.metadata.refs.values()}
    oldest = _by_age(table)[:-KEPT_SNAPSHOTS]
    return [snapshot.snapshot_id for snapshot in oldest if snapshot.snapshot_id not in named]


def _by_age(table: Table) -> list[Snapshot]:
    return sorted(table.metadata.snapshots, key=lambda snapshot: snapshot.sequence_number or 0)


def _tidy(files: TableFiles, table: Table) -> None:
    """Delete what no snapshot needs any more; what can't be deleted now is left for the next time."""
    try:
        metadata = list(files.list(f"{table.location()}/metadata"))
        oldest_ms = _oldest_ms(metadata, table)
        discard(files, [*_old_heads(files, table, oldest_ms), *_old_metadata(metadata, table, oldest_ms)])
    except Exception as error:  # noqa: BLE001  # what was sealed is sealed
        _logger.info("old metadata of the chain of receipts is left for the next time: %s", one_line(error))


def _oldest_ms(metadata: Sequence[StoredFile], table: Table) -> int:
    """When the oldest metadata was written that the table names; what is kept only for its name does not count."""
    recent = _metadata_files(table) | _manifest_lists(_by_age(table)[-KEPT_SNAPSHOTS:])
    return min((file.modified_ms for file in metadata if comparable(file.path) in recent), default=0)


def _metadata_files(table: Table) -> set[str]:
    logged = {comparable(entry.metadata_file) for entry in table.metadata.metadata_log}
    return logged | {comparable(table.metadata_location)}


def _manifest_lists(snapshots: Iterable[Snapshot]) -> set[str]:
    return {comparable(snapshot.manifest_list) for snapshot in snapshots}


def _old_heads(files: TableFiles, table: Table, oldest_ms: int) -> list[str]:
    end = ChainEnd.of(table.properties)
    folder = chain_folder(table)
    return [
        file.path
        for file in files.list(f"{folder}heads")
        if file.modified_ms < oldest_ms
        and (number := head_sequence(file.path)) is not None
        and number <= end.length
        and file.path != f"{folder}{end.head_file}"
    ]


def _old_metadata(metadata: Sequence[StoredFile], table: Table, oldest_ms: int) -> list[str]:
    """Metadata that nothing refers to.

    Another catalog below the same warehouse has its chain in the same folder, and of its files none goes: nobody can
    tell whose a manifest list is, so there they all stay.
    """
    needed = _metadata_files(table) | _manifest_lists(table.metadata.snapshots)
    loose = [each for each in metadata if comparable(each.path) not in needed]
    old = [each for each in loose if each.modified_ms < oldest_ms and _is_of_a_commit(each.path.rpartition("/")[2])]
    if not old:
        return []
    uuids = {each.path: _uuid_in(table, each.path) for each in loose if each.path.endswith(METADATA_ENDINGS)}
    own = table.metadata.table_uuid
    if any(uuid not in {None, own} for uuid in uuids.values()):
        old = [each for each in old if uuids.get(each.path) == own]
    return [each.path for each in old]


def _uuid_in(table: Table, path: str) -> UUID | None:
    """Whose metadata a file has; null where that can't be read."""
    metadata = whole_metadata(table.io, path)
    return metadata.table_uuid if metadata else None


def _is_of_a_commit(name: str) -> bool:
    return name.endswith(".metadata.json") or (name.startswith("snap-") and name.endswith(".avro"))
