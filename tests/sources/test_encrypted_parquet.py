"""An encrypted Parquet file is refused as that; a column that is not asked for may be encrypted."""

from __future__ import annotations

import base64
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.parquet.encryption as pe
import pytest

from tests.test_style import ROOT

READ = """
import sys
from keptlog.errors import InvalidRecord
from keptlog.sources.files import FileSet, Reading
try:
    print(len(list(FileSet(sys.argv[1:], Reading(0)).records())))
except InvalidRecord as error:
    print(error)
"""


class Keys(pe.KmsClient):  # type: ignore[misc]
    """Keeps the keys of a file in the file, readable."""

    def wrap_key(self, key_bytes: bytes, _name: str) -> bytes:
        return base64.b64encode(key_bytes)


def encrypted(path: Path, column: str, rows: int, *, plaintext_footer: bool) -> Path:
    configuration = pe.EncryptionConfiguration(
        footer_key="f", column_keys={"c": [column]}, plaintext_footer=plaintext_footer
    )
    keys = pe.CryptoFactory(lambda _config: Keys())
    how = keys.file_encryption_properties(pe.KmsConnectionConfig(), configuration)
    table = pa.table({name: pa.array(["x"] * rows, pa.string()) for name in ("key", "value", "other")})
    with pq.ParquetWriter(path, table.schema, encryption_properties=how) as writer:
        writer.write_table(table, row_group_size=3)
    return path


def said(path: Path) -> str:
    """Read by another process, which Arrow may abort."""
    read = subprocess.run([sys.executable, "-c", READ, str(path)], cwd=ROOT, capture_output=True, text=True, check=True)
    return read.stdout


@pytest.mark.parametrize("plaintext_footer", [True, False])
@pytest.mark.parametrize("rows", [0, 5])
def test_an_encrypted_file_is_refused_as_that(tmp_path: Path, rows: int, *, plaintext_footer: bool) -> None:
    path = encrypted(tmp_path / "a.parquet", "value", rows, plaintext_footer=plaintext_footer)
    assert said(path) == "it is encrypted: write it without encryption; nothing was appended\n"


def test_an_encrypted_column_that_is_not_asked_for_is_left_out(tmp_path: Path) -> None:
    assert said(encrypted(tmp_path / "a.parquet", "other", 5, plaintext_footer=True)) == "5\n"
