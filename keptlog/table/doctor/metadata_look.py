"""Metadata files of folders without a topic are looked into, where one of them, or the whole store, may give nothing.

    who was asked says no, or that he can't     that folder alone is unread: its disk may be bad there
    no answer                                   no other file of the folder is waited for
    no answer, and others are had after it      the same: the file is at fault
    no answer, and no other is had              the store is silent: that is said, and nothing of any folder
    no answer twice, and others are had         no more is looked into, and each folder says so of itself

There may be hundreds of folders, and each silence is waited for: they are counted over all of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from keptlog.errors import Action, StorageUnavailable, first_line
from keptlog.table.metadata.metadata_json import metadata_json
from keptlog.table.waiting.reaching import is_out_of_reach

if TYPE_CHECKING:
    from keptlog.table.io.files import TableFiles

_MOST_WAITS = 2
"""One file may hang for itself; a second one ends it."""


@dataclass
class StoreSilence:
    """How often a file was waited for in vain, from one folder to the next."""

    files: TableFiles
    waits: int = 0
    _outage: StorageUnavailable | None = None
    """Why, until another file is had."""
    _answered: str | None = None
    """A file that was had, or of which somebody has said that it can't be."""

    @property
    def is_over(self) -> bool:
        """Whether it was waited so often that no more is looked into."""
        return self.waits >= _MOST_WAITS

    def ends(self, path: str) -> None:
        """Remember that somebody has answered."""
        self._answered, self._outage = path, None

    def met(self, outage: StorageUnavailable) -> None:
        """Remember that a file was waited for in vain.

        Raises:
            StorageUnavailable: not for the first time, and the store is silent.
        """
        self.waits += 1
        self._outage = outage
        if self.is_over:
            self.require_answer()

    def require_answer(self) -> None:
        """See whether the store is there, if the last file was waited for in vain: it has to give one that it gave.

        Raises:
            StorageUnavailable: it gives none, or never gave one.
        """
        outage, self._outage = self._outage, None
        if outage is None:
            return
        if self._answered is None:
            raise outage
        try:
            self.files.read_bytes(self._answered)
        except Exception as error:
            if _silence(self._answered, error):
                raise outage from error


@dataclass
class MetadataLook:
    """Metadata files of one folder that were looked into; one that can't be read counts as the topic's."""

    files: TableFiles
    silence: StoreSilence
    unread: str | None = None
    """One that could not be read, and why: the first, or that for which no more were looked into."""
    is_given_up: bool = False

    def is_of_a_view(self, path: str) -> bool:
        """Whether the file says so: a view's are named as a table's are, and another engine may put it there."""
        if self.is_given_up:
            return False
        if self.silence.is_over:
            self.is_given_up = True
            self.unread = self.unread or f"{path} was not looked into, for others gave no answer"
            return False
        try:
            is_view = "view-uuid" in metadata_json(self.files.read_bytes(path))
        except (FileNotFoundError, ValueError):
            is_view = False  # gone by now, or damaged: whoever registers it is told
        except Exception as error:  # noqa: BLE001  # whatever it is, it costs no other folder
            self._fails(path, error)
            return False
        self.silence.ends(path)
        return is_view

    def _fails(self, path: str, error: Exception) -> None:
        """Remember a file that can't be read. Whoever refuses one refuses the next one too, and that at once."""
        self.is_given_up = _outage(path, error) is not None
        if self.is_given_up or not self.unread:
            others = ", and no more of this folder was looked into" if self.is_given_up else ""
            self.unread = f"{path} can't be read ({first_line(error)}){others}"
        silence = _silence(path, error)
        if silence:
            self.silence.met(silence)
        else:
            self.silence.ends(path)


def _silence(path: str, error: Exception) -> StorageUnavailable | None:
    """Why a file can't be read now, if nobody has said it; null if somebody has."""
    outage = _outage(path, error)
    if outage is None:
        return None
    from keptlog.table.waiting.reach import has_answered  # noqa: PLC0415  # only once something has failed

    return None if has_answered(error) else outage


def _outage(path: str, error: Exception) -> StorageUnavailable | None:
    """Why a file can't be read now, if that may be no matter of this file; null if it surely is."""
    if not isinstance(error, StorageUnavailable):
        if not is_out_of_reach(error):
            return None
        from keptlog.table.waiting.reach import unavailable  # noqa: PLC0415  # as above

        error = unavailable(f"{path} can't be read", error)
    return error if error.action is Action.RETRY else None
