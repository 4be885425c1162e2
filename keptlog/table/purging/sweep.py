"""Deletes what crashes and refused commits left behind, and keeps a late commit from landing on what is deleted.

Whoever commits looks whether its staged files are there, and then commits. A run that stops between the two, for longer
than the grace, would land on files that a purge has swept meanwhile. So before such files go there is a fence:

    run    stages x   looks: x is there          commits: refused      looks: x is condemned, gives up
    purge                                 fence                                        deletes x

1. The orphans are written to a journal, as all are that go.
2. The fence: a commit that moves no file, but makes a snapshot, and names the journal in ``log.condemned``. Whatever
   was prepared before it is refused by the catalog, and has to look again.
3. Whoever looks again refuses what a condemned journal names (``require_staged``).
4. The table is read again: what landed before the fence is referred to, and stays. The rest goes, then the journal.

A purge that is killed leaves the journal. The next one condemns it, unless that is done, and goes on with the fourth.
A journal that is gone may stay in the list until the next commit of a purge: nothing it named is left.

Metadata that was written before the current snapshot needs no fence: it was built on an older one, and the catalog
takes it no more. Most orphans are of that kind, what a lost race leaves, so most purges make no fence.

So it is with the files of erasures that others have replaced, or that did not land. They are no orphans by their age: a
backup may need one until a purge comes.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass

from pyiceberg.table import Table
from pyiceberg.table.update import RemovePropertiesUpdate, SetPropertiesUpdate, TableUpdate

from keptlog.errors import LogCorrupt
from keptlog.storage.files import StoredFile
from keptlog.table.commits.commit import Committer, Land
from keptlog.table.commits.topics import Topic
from keptlog.table.io.files import TableFiles
from keptlog.table.metadata.change import OPERATION, RUN_ID, Change
from keptlog.table.metadata.lineage import COMMIT_ID
from keptlog.table.metadata.manifests import FileChange
from keptlog.table.metadata.references import comparable
from keptlog.table.metadata.state import CONDEMNED, OPEN_ERASURES, read_condemned
from keptlog.table.removal.erasure_register import named_file, register_folder
from keptlog.table.removal.journal import SWEEP, DeletedFile, Journal, journal_folder, write_journal

PURGE_AGAIN = "purge again, which finishes what was begun"
"""What to do about a commit of a purge that got no answer."""


@dataclass(frozen=True)
class Fence:
    """What keeps commits of before from landing on files that are about to be swept."""

    topic: Topic
    committer: Committer
    files: TableFiles
    new_id: Callable[[], str]

    def write_down(self, orphans: tuple[DeletedFile, ...]) -> dict[str, Journal]:
        """Write orphans to a journal before they go; gives it by its path."""
        journal = Journal((), (), orphans, SWEEP, table_uuid=self.topic.id)
        path = f"{journal_folder(self.topic.location)}{self.new_id()}.json"
        write_journal(self.files, path, journal)
        return {path: journal}

    def condemn(self, journals: Iterable[str]) -> None:
        """From now on no commit brings in what these journals name; they are given by their paths.

        Raises:
            StalePlan, CommitStateUnknown: the commit lost every race, or got no answer; the next purge finishes it.
        """
        names = {_name(path) for path in journals}
        run_id = self.new_id()
        summary = {RUN_ID: run_id, COMMIT_ID: run_id, OPERATION: "sweep"}

        def prepare(table: Table) -> Land | None:
            condemned = set(self._still_there(table))
            if names <= condemned:
                return None
            change = FileChange(summary, {CONDEMNED: json.dumps(sorted(names | condemned))})
            return change.written(table)

        self.committer.commit(Change(self.topic.name, self.topic.id, run_id, remedy=PURGE_AGAIN), prepare)

    def lifted(self, table: Table) -> tuple[TableUpdate, ...]:
        """What takes journals that are gone off the list, to be committed with whatever is committed anyhow."""
        named = read_condemned(self.topic.name, table.properties)
        left = self._still_there(table)
        if len(left) == len(named):
            return ()
        if left:
            return (SetPropertiesUpdate(updates={CONDEMNED: json.dumps(sorted(left))}),)
        return (RemovePropertiesUpdate(removals=[CONDEMNED]),)

    def _still_there(self, table: Table) -> list[str]:
        named = read_condemned(self.topic.name, table.properties)
        folder = journal_folder(self.topic.location)
        return [name for name in named if self.files.exists(folder + name)]


def newest_list_of(table: Table, stored: Mapping[str, StoredFile]) -> StoredFile | None:
    """The current snapshot's manifest list, of what is stored by comparable path."""
    current = table.current_snapshot()
    return stored.get(comparable(current.manifest_list)) if current else None


def may_still_land(file: StoredFile, location: str, newest_list: StoredFile | None) -> bool:
    """Whether a commit of before could bring a file in; ``newest_list`` is the current snapshot's manifest list.

    Both times are the storage's own.
    """
    is_metadata = file.path.startswith(f"{location}/metadata/")
    return not is_metadata or newest_list is None or file.modified_ms >= newest_list.modified_ms


def left_registers(table: Table, stored: Mapping[str, StoredFile], spared: Collection[str] = ()) -> list[str]:
    """The files of a topic's erasures that its table does not name, and that no commit can bring in any more.

    ``spared`` is in comparable form what another catalog may need.
    """
    try:
        named = named_file(table)
    except LogCorrupt:  # Any of them may be the one.
        return []
    if not named and OPEN_ERASURES in table.properties:  # One was named, and by whom it was taken away is not known.
        return []
    folder, newest_list = register_folder(table), newest_list_of(table, stored)
    return [
        file.path
        for form, file in stored.items()
        if file.path.startswith(folder)
        and form not in spared
        and file.path.endswith(".json")
        and not (named and _name(file.path) == named.file)
        and not may_still_land(file, table.location(), newest_list)
    ]


def _name(path: str) -> str:
    return path.rpartition("/")[2]
