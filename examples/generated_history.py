"""Makes a small git repository with a busy past, for when no real one is at hand or a clone is too shallow.

The history is fiction, the repository is real: ``git fast-import`` writes it in well under a second. Same seed, same
commits. A commit touches a few files: mostly it changes one that exists, sometimes it adds, deletes or renames one.
Some names are awkward on purpose (spaces, quotes, a line feed, not UTF-8), and now and then a commit is older than the
one before it, as in histories that were rebased.
"""

from __future__ import annotations

import random
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

from examples.installed import git

_FIRST_COMMIT_S = 1_600_000_000
_LONGEST_PAUSE_S = 6 * 3600
_ODD_NAMES = (
    b"docs/with space.md",
    b'docs/"quoted".md',
    b"docs/line\nfeed.md",
    b"docs/latin-\xe9.md",
    "docs/日本.md".encode(),
)


def generate_repository(folder: Path, *, commits: int = 400, seed: int = 0) -> Path:
    """Make a bare repository in ``folder``, which must not exist or be empty; gives the folder back.

    Raises:
        NotInstalled: there is no git.
    """
    subprocess.run([git(), "init", "--quiet", "--bare", "--initial-branch=main", str(folder)], check=True)
    stream = _History(random.Random(seed)).stream(commits)
    subprocess.run([git(), "-C", str(folder), "fast-import", "--quiet"], input=stream, check=True)
    return folder


@dataclass
class _History:
    """Commands for ``git fast-import``, and the paths that exist so far."""

    chance: random.Random
    paths: list[bytes] = field(default_factory=list)
    added: int = 0

    def stream(self, commits: int) -> bytes:
        lines = [b"feature done\n"]
        time_s = _FIRST_COMMIT_S
        for number in range(commits):
            time_s += self.chance.randrange(1, _LONGEST_PAUSE_S)
            shown_s = time_s - _LONGEST_PAUSE_S if self.chance.random() < 0.02 else time_s
            lines.append(b"commit refs/heads/main\ncommitter A Author <author@example.org> %d +0000\n" % shown_s)
            lines.append(_data(b"commit %d" % number))
            lines += self._first_files() if number == 0 else self._changes()
        return b"".join([*lines, b"done\n"])

    def _first_files(self) -> list[bytes]:
        return [self._write(path) for path in (*_ODD_NAMES, *(self._new_path() for _ in range(20)))]

    def _changes(self) -> list[bytes]:
        """One to four changes, each of another path: fast-import takes what it is told last."""
        untouched = self.chance.sample(self.paths, 4)
        return [self._change(untouched.pop()) for _ in range(self.chance.randint(1, 4))]

    def _change(self, path: bytes) -> bytes:
        kind = self.chance.choices(["update", "add", "delete", "rename"], weights=[14, 3, 2, 1])[0]
        if kind == "update" or (kind == "delete" and len(self.paths) < 10):
            return self._write(path)
        if kind == "add":
            return self._write(self._new_path())
        self.paths.remove(path)
        if kind == "delete":
            return b"D %s\n" % _quoted(path)
        renamed = self._new_path()
        self.paths.append(renamed)
        return b"R %s %s\n" % (_quoted(path), _quoted(renamed))

    def _new_path(self) -> bytes:
        self.added += 1
        return b"%s/file-%03d.txt" % (self.chance.choice([b"src", b"tests", b"docs"]), self.added)

    def _write(self, path: bytes) -> bytes:
        if path not in self.paths:
            self.paths.append(path)
        mode = b"100755" if self.chance.random() < 0.05 else b"100644"
        return b"M %s inline %s\n%s" % (mode, _quoted(path), _data(self.chance.randbytes(self.chance.randrange(400))))


def _data(content: bytes) -> bytes:
    return b"data %d\n%s\n" % (len(content), content)


def _quoted(path: bytes) -> bytes:
    """The path as fast-import reads it wherever it stands, with every byte that is not plain as an octal escape."""
    plain = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/.-_ "
    return b'"' + b"".join(bytes([byte]) if byte in plain else b"\\%03o" % byte for byte in path) + b'"'
