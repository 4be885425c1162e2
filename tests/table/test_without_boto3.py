"""Without boto3 nothing follows from what a store on S3 answers: Arrow takes a page for whatever it asked for."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.table.buckets import ABucket

WITHOUT_BOTO3 = """
import sys
from importlib.abc import MetaPathFinder

class Missing(MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("boto3", "botocore"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Missing())
from keptlog.table.io.files import TableFiles
files, folder = TableFiles(eval(sys.argv[1])), sys.argv[2]
try:
    print(eval(sys.argv[3]))
except OSError as error:
    print(type(error).__name__, error)
"""
NEEDED = "boto3 is not installed, and without it a page would pass for the store's answer (NoBoto3); "
REFUSED = {
    "written": "files.write_bytes(folder + '/x', b'1')",
    "deleted": "files.delete(folder + '/x')",
    "looked for": "files.exists(folder + '/x')",
    "listed": "list(files.list(folder))",
}


def said(bucket: ABucket, code: str) -> str:
    """What comes of it in a Python that has no boto3."""
    folder = f"s3://{bucket.name}/topic"
    command = [sys.executable, "-c", WITHOUT_BOTO3, repr(bucket.properties), folder, code]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.replace(folder, "FOLDER")


@pytest.mark.parametrize(("done", "code"), REFUSED.items(), ids=REFUSED)
def test_what_a_page_would_make_false_is_refused_and_the_extra_is_named(bucket: ABucket, done: str, code: str) -> None:
    bucket.put("topic/x")
    path = "FOLDER" if done == "listed" else "FOLDER/x"
    assert said(bucket, code) == f"StoreRefused {path} can't be {done}: {NEEDED}pip install 'keptlog[s3]'\n"
    assert len(bucket.versions(f"s3://{bucket.name}/topic/x")) == 1


def test_versions_are_not_looked_at_and_the_extra_is_named(bucket: ABucket) -> None:
    assert said(bucket, "files.versions_below(folder).not_looked_at") == (
        "versions and open uploads of FOLDER are not looked at: this needs botocore: pip install 'keptlog[s3]'\n"
    )


def test_a_file_is_read(bucket: ABucket) -> None:
    bucket.put("topic/x", b"content")
    assert said(bucket, "files.read_bytes(folder + '/x')") == "b'content'\n"
