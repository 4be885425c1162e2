"""The newest state of a table that its storage has, where the catalog knows an older one, or none.

    catalog   00012                              put back from a backup; or lost, and it has no such table any more
    storage   00012  00013  00014  00014'  00015

A catalog is lost, or put back, and the files are not: all that was acknowledged since lies in them. Each metadata file
tells which ones it was built on. So the newest state is the file of the highest number, if all others lead to it, and
the catalog's own. What leads nowhere, as 00014', is an attempt whose commit another one came before.

    two files of the highest number            only one has landed, and nobody can tell which: a person names it
    an end besides, of two commits or more     two homes went on, each its own way                      refused
    the catalog's state leads there not        the same                                                 refused
    of two tables                              a topic of that name was made anew                       refused
    one that is younger leads there not        another program has begun the count of the names anew    refused

A table keeps the names of its last 20 files or so. What two homes did before that is told by snapshots: no table gives
two of them one sequence number, but an attempt that did not land may have one. So two such files in a row have landed.

The newest one may itself be an attempt whose process died before the catalog took it. Whoever made it was told nothing,
or that nobody knows: it counts as landed then, as where a catalog's answer was lost.

The catalog takes it in one step, and only if it still names what it named: a commit that comes between is not lost.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from pyiceberg.catalog import Catalog
from pyiceberg.catalog.sql import IcebergTables, SqlCatalog
from pyiceberg.exceptions import TableAlreadyExistsError
from pyiceberg.io import FileIO
from pyiceberg.table.metadata import TableMetadata
from sqlalchemy import update
from sqlalchemy.orm import Session

from keptlog.errors import Action, InvalidConfig, LogCorrupt, StalePlan
from keptlog.log.words.counted import some_of
from keptlog.table.catalogs.catalog import make_namespace
from keptlog.table.metadata.metadata_files import METADATA_ENDINGS
from keptlog.table.metadata.metadata_json import is_of_a_view
from keptlog.table.metadata.metadata_reading import metadata_or_why, unreadable_of
from keptlog.table.metadata.references import comparable, comparable_forms
from keptlog.table.namespaces import RECEIPTS
from keptlog.table.removal.known_states import base_of, contradict, number

_NAMED = 3
_CHOOSE = "Name the state that is to count with --metadata; what only the other one has is lost to readers then"


@dataclass(frozen=True, slots=True)
class StoredState:
    """One metadata file of a table."""

    path: str
    form: str
    """The same, as paths are compared."""
    number: int | None
    """How many commits there were before it, as its name tells; null where another program has given the name."""
    metadata: TableMetadata

    @property
    def table_id(self) -> str:
        """Whose it is."""
        return str(self.metadata.table_uuid)


@dataclass(frozen=True, slots=True)
class StoredStates:
    """Those of a table that can be read, and what may be one and can't be."""

    what: str
    """What the table is, in words: ``topic users``."""
    states: tuple[StoredState, ...]
    unread: Mapping[str, LogCorrupt] = field(default_factory=dict)
    """Why, by path."""
    todo: str = _CHOOSE
    """What to do where nobody can tell which state is the newest."""

    @classmethod
    def read(cls, what: str, stored: Iterable[str], io: FileIO, todo: str = _CHOOSE) -> StoredStates:
        """Those among some files: what whoever commits has named."""
        states, unread = list[StoredState](), dict[str, LogCorrupt]()
        for path, form in sorted(comparable_forms(each for each in stored if each.endswith(METADATA_ENDINGS)).items()):
            metadata = metadata_or_why(io, path)
            if not isinstance(metadata, Exception):
                states.append(StoredState(path, form, number(path), metadata))
            elif not _is_of_a_view(io, path):
                unread[path] = unreadable_of(what, f"metadata file {path}", metadata)
        return cls(what, tuple(states), unread, todo)

    @property
    def why_none(self) -> LogCorrupt | None:
        """Why none of its files can be read; null if there is no file."""
        newest_last = sorted(self.unread, key=lambda path: (number(path) or 0, path))
        return self.unread[newest_last[-1]] if newest_last and not self.states else None

    def newest(self, known: str | None, table_id: str | None) -> StoredState:
        """The one that all others lead to.

        ``known`` is what the catalog names, and ``table_id`` its table's id if that can be read: null if it has none.

        Raises:
            LogCorrupt: nobody can tell which it is; says why, and what can be done.
        """
        if why := self.why_none:
            raise why
        states = [each for each in self.states if table_id in {None, each.table_id}]
        if not states:
            raise LogCorrupt(f"{self.what}: there is no metadata file of it. Put it back from a copy. {self.todo}")
        ids = sorted({each.table_id for each in states})
        if len(ids) > 1:
            raise self._undecided(f"its folder has the metadata of {len(ids)} tables ({', '.join(ids)})", states)
        last = max((each.number for each in states if each.number is not None), default=None)
        if last is None:
            raise self._undecided("the names of its metadata files don't tell which of them is the newest", states)
        newest = [each for each in states if each.number == last]
        if len(newest) > 1:
            raise self._undecided("two commits have the highest number, and one of them has not landed", newest)
        if ahead := [path for path in self.unread if (number(path) or 0) >= last]:
            for path in ahead:
                if self.unread[path].action is Action.FIX_CONFIG:
                    raise self.unread[path]  # nothing is wrong with it: only a newer program reads it
            raise LogCorrupt(
                f"{self.what}: {some_of(ahead, _NAMED)} may be newer than all that can be read of it, and "
                f"can't be read itself. Nothing was changed. Put it back from a copy. {self.todo}"
            )
        self._require_one_way(newest[0], states, known)
        return newest[0]

    def named(self, name: str) -> StoredState:
        """The one with this path, or name.

        Raises:
            InvalidConfig: there is none.
            LogCorrupt: it can't be read; says why.
        """
        form = comparable(name)

        def is_meant(path: str) -> bool:
            return name == path.rpartition("/")[2] or form == comparable(path)

        found = [each for each in self.states if is_meant(each.path)]
        for path in self.unread:
            if not found and is_meant(path):
                raise self.unread[path]
        if not found:
            raise InvalidConfig(f"--metadata {name}: {self.what} has no metadata file of that name that can be read")
        return found[0]

    def _require_one_way(self, newest: StoredState, states: Collection[StoredState], known: str | None) -> None:
        """Refuse where two homes went on from one state, each its own way."""
        led = self._led_from(newest, states)
        on_way = [each for each in states if each.form in led and each.number is not None]
        oldest = min(on_way, key=lambda each: each.number or 0)
        besides = {each.form: each for each in states if each.form not in led}
        contradicting = {form for form, each in besides.items() if contradict(newest.metadata, each.metadata)}
        if known and (form := comparable(known)) not in led:
            is_before = _is_before(number(known), besides.get(form), oldest)
            if not is_before or form in contradicting:
                name = known.rpartition("/")[2]
                if form not in besides and (number(known) or 0) > (newest.number or 0):
                    raise LogCorrupt(
                        f"{self.what}: the catalog's {name} is gone, and is newer than all that is left of it: "
                        f"{newest.path}. Nothing was changed. Put it back from a copy. {self.todo}"
                    )
                raise self._undecided(f"the catalog's {name} does not lead to the newest one", [newest])
        for form, each in besides.items():
            base = base_of(each.metadata)
            if comparable(base) == newest.form:
                raise self._undecided("the one of the highest number is not the newest", [newest, each])
            if base and comparable(base) in led:
                continue  # an attempt, or a copy of a state that has landed
            is_before = _is_before(number(base) if base else each.number, each, oldest)
            if not is_before or {form, comparable(base)} <= contradicting:
                raise self._undecided("two homes went on with it, each its own way", [newest, each])

    def _led_from(self, newest: StoredState, states: Collection[StoredState]) -> set[str]:
        """What a state was built on, as far as files tell, and itself; in comparable form."""
        by_form = {each.form: each for each in states}
        led, open_forms = set[str](), [newest.form]
        while open_forms:
            form = open_forms.pop()
            if form in led:
                continue
            led.add(form)
            if form in by_form:
                open_forms += [comparable(each.metadata_file) for each in by_form[form].metadata.metadata_log]
        return led

    def _undecided(self, why: str, states: Iterable[StoredState]) -> LogCorrupt:
        return LogCorrupt(
            f"{self.what}: {why}: {some_of([each.path for each in states], _NAMED)}. Nothing was changed. {self.todo}"
        )


def _is_of_a_view(io: FileIO, path: str) -> bool:
    """Whether a file is another engine's view's, which are named as a table's are, and may lie in a topic's folder."""
    try:
        with io.new_input(path).open() as file:
            return is_of_a_view(file.read())
    except (LogCorrupt, ValueError, FileNotFoundError):
        return False


def _is_before(counted: int | None, state: StoredState | None, oldest: StoredState) -> bool:
    """Whether a state is of before the oldest that the newest one tells of: null if nothing of it can be read.

    ``counted`` is its number, or that of what it was built on. A number alone may be of a count that began anew.
    """
    is_younger = state is not None and state.metadata.last_updated_ms > oldest.metadata.last_updated_ms
    return counted is not None and counted < (oldest.number or 0) and not is_younger


def database_of(catalog: Catalog, table: tuple[str, str], state: StoredState) -> SqlCatalog:
    """The same catalog, if it can take another state of a table that it knows in one step.

    Raises:
        InvalidConfig: this kind of catalog can't; says what to do by hand.
    """
    if isinstance(catalog, SqlCatalog):
        return catalog
    # The option is of a topic; and where receipts lie that it does not know, nobody could tell then.
    again = (
        f"have it name the newer state with catalog.register_table({table!r}, {state.path!r})"
        if table[0] == RECEIPTS
        else f"repeat this command with --metadata {state.path}"
    )
    raise InvalidConfig(
        f"the table {'.'.join(table)}: a catalog of this kind can't take another state of one in one step. Stop "
        f"everything that writes to it, take it out of the catalog with PyIceberg's catalog.drop_table({table!r}), "
        f"which leaves its files, and {again}"
    )


def register(catalog: Catalog, table: tuple[str, str], before: str | None, state: StoredState) -> None:
    """Let a catalog name a table's state, if it still names what was ``before``: null is no table.

    Raises:
        StalePlan: it names something else by now.
        InvalidConfig: this kind of catalog can't do it in one step.
    """
    name = ".".join(table)
    if before is None:
        make_namespace(catalog, table[0])
        try:
            catalog.register_table(table, state.path)
        except TableAlreadyExistsError:
            raise StalePlan(f"the table {name} is there by now; nothing was changed") from None
        return
    database = database_of(catalog, table, state)
    row = (
        IcebergTables.catalog_name == database.name,
        IcebergTables.table_namespace == table[0],
        IcebergTables.table_name == table[1],
        IcebergTables.metadata_location == before,
    )
    with Session(database.engine) as session:
        named = {"metadata_location": state.path, "previous_metadata_location": before}
        changed = session.execute(update(IcebergTables).where(*row).values(named))
        session.commit()
    if changed.rowcount == 0:  # type: ignore[attr-defined]  # what an update gives has one
        raise StalePlan(f"the table {name}: something else was committed meanwhile; nothing was changed, try again")
