"""What lies below a topic's location, as a listing has it: who looks at it need not open the table."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from keptlog.storage.files import StoredFile
from keptlog.table.io.files import TableFiles, local_path
from keptlog.table.io.local_files import lost_links
from keptlog.table.metadata.metadata_files import METADATA_ENDINGS, own_metadata
from keptlog.table.metadata.references import by_comparable_form, comparable_forms
from keptlog.table.removal.hidden import HiddenFiles
from keptlog.table.removal.journal import erasures_folder, journal_folder, receipt_folder
from keptlog.whole_file import is_unfinished

if TYPE_CHECKING:
    from pyiceberg.table import Table

_CHECKSUM = ".crc"


@dataclass(frozen=True, slots=True)
class Storage:
    """What lies below a topic's location."""

    location: str
    files: Mapping[str, StoredFile]
    """What is listed, by comparable path."""
    hidden: HiddenFiles

    @classmethod
    def of(cls, location: str, listed: Sequence[StoredFile], hidden: HiddenFiles) -> Storage:
        """From a listing of all files."""
        return cls(location, by_comparable_form(listed), hidden)

    def is_own(self, file: StoredFile) -> bool:
        """Whether it is keptlog's own, and no orphan whatever its age."""
        return file.path.startswith(_own_places(self.location)) and not is_unfinished(file.path)

    def with_listed_bytes(self, bytes_of: Mapping[str, int]) -> dict[str, int]:
        """Path to size of the same files, with those of which the table does not say it as they are listed."""
        forms = comparable_forms(path for path, size_bytes in bytes_of.items() if not size_bytes)
        listed = {path: self.files[form].size_bytes for path, form in forms.items() if form in self.files}
        return {**bytes_of, **listed}

    @property
    def waits(self) -> bool:
        """Whether there are journals to be carried out, or drafts to be sealed."""
        paths = [file.path for file in self.files.values()]
        has_journals = any(path.startswith(journal_folder(self.location)) for path in paths)
        return has_journals or bool(drafts_among(self.location, paths))


def without_let_go(
    stored: Mapping[str, StoredFile], files: TableFiles, befores: Iterable[Table], now: Table
) -> dict[str, StoredFile]:
    """What was listed, by comparable path, but for the metadata that commits since then have deleted.

    Each commit deletes what leaves a table's history, once that is full. What it was not allowed to is still there.
    ``befores`` are the table as it was before and after it was listed: meanwhile others commit too.
    """
    named = set(own_metadata(now))
    left = comparable_forms(path for each in befores for path in own_metadata(each) if path not in named)
    gone = {form for path, form in left.items() if form in stored and not files.exists(path)}
    return {form: file for form, file in stored.items() if form not in gone}


def drafts_among(location: str, paths: Iterable[str]) -> list[str]:
    """Where the drafts lie, of the paths of a listing, sorted; what lies in folders below theirs is none."""
    folder = receipt_folder(location)
    there = (path for path in set(paths) if path.startswith(folder) and "/" not in path.removeprefix(folder))
    return sorted(path for path in there if not is_unfinished(path))


def lost_links_below(location: str) -> Iterator[StoredFile]:
    """Links that lead nowhere now, which no listing has: a disk that is not mounted may have their bytes."""
    local = local_path(location)
    if local is not None:
        yield from (StoredFile(path, 0, 0) for path in lost_links(location, local))


def left_behind(location: str, paths: Iterable[str]) -> list[str]:
    """What an earlier topic has left in a folder, of the paths of a listing, sorted.

    What a creation that failed has left is no harm. Nor is what keptlog keeps beside a table: what a purge remembers, a
    reader's position. Who was killed as his topic was deleted may leave such a file. No record is in it, and a later
    topic in the folder reads it over, or takes it over if it is the draft of a receipt.

    A view of another engine is metadata alone, too. A folder with a view and with records tells the records.

    A journal is something left: maybe nobody else tells what it names, and is gone. So is what is to be erased.
    """
    own, tells = _own_places(location), tells_alone(location)
    left = {path for path in paths if not _checked(path).endswith(METADATA_ENDINGS)}
    return sorted(path for path in left if tells(path) or not path.startswith(own))


def tells_alone(location: str) -> Callable[[str], bool]:
    """Whether a path is that of a journal, or of what is to be erased."""
    folders = journal_folder(location), erasures_folder(location)
    return lambda path: path.startswith(folders) and not is_unfinished(path)


def _checked(path: str) -> str:
    """The file that a path is about: Java puts ``.NAME.crc`` beside each ``NAME`` that it writes to a local disk."""
    folder, slash, name = path.rpartition("/")
    if name.startswith(".") and name.endswith(_CHECKSUM):
        return f"{folder}{slash}{name[1 : -len(_CHECKSUM)]}"
    return path


def _own_places(location: str) -> tuple[str, ...]:
    """Below which folders lies what keptlog alone writes, and no engine reads."""
    return journal_folder(location), receipt_folder(location)
