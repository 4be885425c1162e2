"""What lies in folders of a disk of this machine.

A folder that is not there has nothing in it. One that can't be listed is an error: Python's own walks and globs leave
it out without a word, and whoever takes records, receipts or topics from what they find would call a part the whole.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from pathlib import Path

NOT_THERE = (FileNotFoundError, NotADirectoryError)
"""All that says for sure that nothing is there."""


def is_not_there(error: OSError, path: str | Path) -> bool:
    """Whether an error says that nothing is at a path; where a link that leads to itself is, nothing is, either.

    What lies below a folder that is such a link can't be told.
    """
    return isinstance(error, NOT_THERE) or (error.errno == errno.ELOOP and os.path.islink(path))  # noqa: PTH114


def folders_below(folder: str) -> Iterator[tuple[str, list[str]]]:
    """A folder and all below it, each with the names of its files; one that vanishes meanwhile has none.

    Raises:
        OSError: one can't be listed.
    """
    for parent, _, names in _walked(folder, _any):
        yield parent, names


def listed_or_not(folder: Path) -> list[Path]:
    """A folder and all below it, sorted, also each that can't be listed: for who asks which those are."""
    unlisted: list[str] = []
    found = [each for each, _, _ in os.walk(folder, onerror=lambda error: unlisted.append(error.filename))]
    return sorted(map(Path, {*found, *unlisted}))


def _any(_name: str) -> bool:
    return True


def entries_below(folder: str, is_entered: Callable[[str], bool] = _any) -> Iterator[tuple[str, list[str]]]:
    """As ``folders_below``, with links to folders among the names: they are not entered, and nobody may miss them.

    ``is_entered`` says by its name whether a folder is looked into.
    """
    for parent, folders, names in _walked(folder, is_entered):
        yield parent, [*names, *(name for name in folders if Path(parent, name).is_symlink())]


def files_below(folder: Path) -> list[Path]:
    """The files in a folder and below it, sorted; raises as ``folders_below``, also if one can't be looked at."""
    paths = (Path(parent, name) for parent, names in folders_below(str(folder)) for name in names)
    return sorted(path for path in paths if path.is_file())


def names_in(folder: Path) -> list[str]:
    """The names of all that is in a folder, sorted.

    Raises:
        OSError: it can't be listed.
    """
    try:
        return sorted(each.name for each in folder.iterdir())
    except NOT_THERE:
        return []


def _walked(folder: str, is_entered: Callable[[str], bool]) -> Iterator[tuple[str, list[str], list[str]]]:
    """Each folder with the names of the folders in it that are entered, links among them, and of its files."""
    for parent, folders, names in os.walk(folder, onerror=_require_gone):
        folders[:] = filter(is_entered, folders)
        yield parent, folders, names


def _require_gone(error: OSError) -> None:
    # Unless it is told so, a walk leaves out whatever it can't list.
    if not isinstance(error, NOT_THERE):
        raise error
