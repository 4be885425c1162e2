"""The files of a folder that are taken for receipts: by who verifies it, and so by who exports into it."""

from __future__ import annotations

from pathlib import Path

from keptlog.disk import not_listed
from keptlog.errors import InvalidConfig
from keptlog.folders import files_below
from keptlog.receipts.chain import HEAD_FILE, is_of_a_chain


def taken_for_receipts(folder: Path) -> list[Path]:
    """All JSON files in a folder and below it, sorted.

    Raises:
        StorageUnavailable: one of the folders can't be listed.
    """
    try:
        return [each for each in files_below(folder) if each.suffix == ".json"]
    except OSError as error:
        raise not_listed(folder, error, "and receipts may lie there") from error


def require_receipts_alone(folder: Path) -> None:
    """Refuse to export into a folder with other JSON: whoever verifies the folder would be told of damage.

    The folder's own head may be damaged: an export writes it anew.

    Raises:
        InvalidConfig: it has other JSON.
        StorageUnavailable: it can't be listed.
    """
    for path in taken_for_receipts(folder):
        if path != folder / HEAD_FILE and not is_of_a_chain(path.name, path.read_bytes()):
            raise InvalidConfig(
                f"{path} is no receipt, and keptlog receipt verify would call it a damaged one: export into a folder "
                "that has nothing else"
            )
