"""Turns the history of a git repository into a keyed changelog, one JSON line a record, for ``keptlog append``.

    python -m examples.git_history REPOSITORY > history.jsonl

A repository is a log-compacted topic that everybody has at hand: the key is a path, the value says which blob lies
there, a deleted file is a tombstone, and the commit gives the time. There are real updates and real deletions, and a
truth to check the cleaned topic against: its latest values are what ``git ls-tree -r HEAD`` lists.

    git log                              changelog
    A README.md                          README.md    {"blob": "5f3b…", "mode": "100644", "size": 120}
    M README.md                          README.md    {"blob": "9a01…", "mode": "100644", "size": 155}
    R README.md -> docs/README.md        README.md    null
                                         docs/README.md    {"blob": "9a01…", "mode": "100644", "size": 155}

The line of history is the first parent's: a merge is one commit that brings all that its branch changed. Three
complications. A path is bytes, in any encoding: one that is not UTF-8 is written as ``key_base64``. A submodule, and a
blob that a partial clone lacks, has no size. And commit times sometimes go backwards; they stay as they are.
"""

from __future__ import annotations

import argparse
import base64
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import IO

from examples.installed import git
from keptlog.errors import InvalidConfig
from keptlog.log.record import NewRecord

_SUBMODULE_MODE = b"160000"
_ASKED_AT_ONCE = 1000
"""Blob ids sent to git before its answers are read: few enough for them to fit into a pipe."""

_LOG = (
    *("-c", "log.showRoot=true", "log", "--first-parent", "-m", "--reverse", "--format=tformat:%ct"),
    *("--raw", "-z", "--no-abbrev", "--no-renames", "--no-ext-diff", "--no-show-signature", "--ignore-submodules=none"),
)


@dataclass(frozen=True, slots=True)
class Change:
    """What one commit did to one path; ``blob`` and ``mode`` are null if it deleted it."""

    path: bytes
    commit_time_ms: int
    blob: bytes | None
    mode: bytes | None


def git_history(repository: Path) -> Iterator[NewRecord]:
    """The changelog of a repository, oldest commit first; streamed, so that its length does not matter.

    Raises:
        InvalidConfig: this is no git repository, or one without a commit; or there is no git.
    """
    _git(repository, "rev-parse", "--verify", "--quiet", "HEAD^{commit}")
    with _stream(repository, *_LOG) as log, _blob_sizes(repository) as sizes_of:
        changes = _changes(_nul_terminated(log))
        while some := list(islice(changes, _ASKED_AT_ONCE)):
            sizes = sizes_of([change.blob for change in some if change.blob and change.mode != _SUBMODULE_MODE])
            for change in some:
                value = None
                if change.blob and change.mode:
                    value = _value(change.blob, change.mode, sizes.get(change.blob))
                yield NewRecord(change.path, value, change.commit_time_ms)


def git_tree(repository: Path) -> dict[bytes, bytes]:
    """What HEAD holds, path to value: the state that the latest records of the changelog must tell.

    Raises:
        InvalidConfig: this is no git repository, or one without a commit.
    """
    tree = {}
    for entry in _git(repository, "ls-tree", "-r", "-z", "-l", "--full-tree", "HEAD").split(b"\0")[:-1]:
        described, path = entry.split(b"\t", 1)
        mode, _, blob, size = described.split()
        tree[path] = _value(blob, mode, size if size.isdigit() else None)
    return tree


def commit_count(repository: Path) -> int:
    """Commits on the first-parent line of HEAD."""
    return int(_git(repository, "rev-list", "--count", "--first-parent", "HEAD"))


def is_shallow(repository: Path) -> bool:
    """Whether the clone lacks the older part of its history."""
    return _git(repository, "rev-parse", "--is-shallow-repository").strip() == b"true"


def to_json_line(record: NewRecord) -> str:
    """A record as ``keptlog append`` reads it, without the line's end."""
    key = record.key or b""
    try:
        fields: dict[str, object] = {"key": key.decode()}
    except UnicodeDecodeError:
        fields = {"key_base64": base64.b64encode(key).decode()}
    fields["value"] = None if record.value is None else record.value.decode()
    fields["timestamp"] = record.timestamp_ms
    return json.dumps(fields)


def _value(blob: bytes, mode: bytes, size: bytes | None) -> bytes:
    size_field = b"" if size is None else b', "size": ' + size
    return b'{"blob": "' + blob + b'", "mode": "' + mode + b'"' + size_field + b"}"


def _changes(fields: Iterator[bytes]) -> Iterator[Change]:
    """Read ``git log --raw -z``: a commit is its time, then for each path ``:modes blobs status`` and the path."""
    commit_time_ms = 0
    for field in fields:
        described = field.lstrip(b"\n")
        if not described.startswith(b":"):
            commit_time_ms = int(described) * 1000
            continue
        _, mode, _, blob, status = described.split(b" ")
        path = next(fields)
        is_deleted = status == b"D"
        yield Change(path, commit_time_ms, None if is_deleted else blob, None if is_deleted else mode)


def _nul_terminated(source: IO[bytes]) -> Iterator[bytes]:
    rest = b""
    while chunk := source.read(2**16):
        *fields, rest = (rest + chunk).split(b"\0")
        yield from fields


class _BlobSizes:
    """Asks one ``git cat-file`` for the sizes of many blobs."""

    def __init__(self, questions: IO[bytes], answers: IO[bytes]) -> None:
        self._questions = questions
        self._answers = answers

    def __call__(self, blobs: Sequence[bytes]) -> dict[bytes, bytes]:
        """Blob id to its size in digits; a blob that the repository lacks is left out."""
        self._questions.write(b"".join(blob + b"\n" for blob in blobs))
        self._questions.flush()
        answers = ((blob, self._answers.readline().strip()) for blob in blobs)
        return {blob: size for blob, size in answers if size.isdigit()}


@contextmanager
def _blob_sizes(repository: Path) -> Iterator[_BlobSizes]:
    arguments = _command(repository, "cat-file", "--batch-check=%(objectsize)")
    with subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=_environment()) as process:
        assert process.stdin
        assert process.stdout
        yield _BlobSizes(process.stdin, process.stdout)


@contextmanager
def _stream(repository: Path, *arguments: str) -> Iterator[IO[bytes]]:
    """The output of a git command that must end well, unless its reader stops first."""
    with subprocess.Popen(_command(repository, *arguments), stdout=subprocess.PIPE, env=_environment()) as process:
        assert process.stdout
        yield process.stdout
    if process.returncode:
        raise InvalidConfig(f"git could not read the history of {repository}: its own message stands above")


def _git(repository: Path, *arguments: str) -> bytes:
    finished = subprocess.run(_command(repository, *arguments), capture_output=True, env=_environment(), check=False)
    if finished.returncode:
        reason = finished.stderr.decode(errors="replace").strip() or "it has no commit yet"
        raise InvalidConfig(f"{repository} is not a git repository with a history: {reason}; name another folder")
    return finished.stdout


def _command(repository: Path, *arguments: str) -> list[str]:
    return [git(), "--no-pager", "-C", str(repository), *arguments]


def _environment() -> dict[str, str]:
    """Never to fetch missing blobs one by one, and messages in English."""
    return os.environ | {"GIT_NO_LAZY_FETCH": "1", "LC_ALL": "C"}


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m examples.git_history", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument("repository", type=Path, help="any git repository: a clone, bare or not")
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # so that `| head` ends it quietly
    records = tombstones = 0
    try:
        for record in git_history(parser.parse_args().repository):
            sys.stdout.write(to_json_line(record) + "\n")
            records += 1
            tombstones += record.value is None
    except InvalidConfig as error:
        print(error, file=sys.stderr)
        return 2
    print(f"{records} records, {tombstones} of them tombstones", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
