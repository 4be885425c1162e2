"""A folder that is taken back by who could write nothing in it is made again by who writes at the same moment."""

from __future__ import annotations

from pathlib import Path

import pytest

from keptlog.table.io import file_io
from keptlog.table.io.file_io import DurableFileIO
from keptlog.whole_file import make_folder


def test_a_metadata_file_is_written_though_its_folder_goes_before_it_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two make the first topics of a home, and one may open no more files: what it takes back is empty yet."""
    file, taken_back = tmp_path / "warehouse/users/metadata/00000-a.metadata.json", list[Path]()

    def make(folder: Path) -> None:
        make_folder(folder)
        if not taken_back:
            for each in (folder, *folder.parents[:2]):
                each.rmdir()
                taken_back.append(each)

    monkeypatch.setattr(file_io, "make_folder", make)
    with DurableFileIO().new_output(f"file://{file}").create() as sink:
        sink.write(b"{}")
    assert len(taken_back) == 3
    assert file.exists()


def test_where_its_folder_can_never_be_made_that_is_said(tmp_path: Path) -> None:
    (tmp_path / "users").symlink_to("nowhere")
    sink = DurableFileIO().new_output(f"file://{tmp_path}/users/00000-a.metadata.json").create()
    sink.write(b"{}")
    with pytest.raises(FileNotFoundError):
        sink.close()
