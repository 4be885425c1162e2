"""The changelog of a git repository tells the same state as git does."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from examples.generated_history import generate_repository
from examples.git_history import commit_count, git_history, git_tree, is_shallow, to_json_line
from keptlog.errors import InvalidConfig
from keptlog.log.record import Record
from keptlog.log.reference import latest_values
from keptlog.sources.json_lines import from_json

LATIN = b"latin-\xe9.txt"
QUOTED = b'a "quoted"\tname'


class Repository:
    """A real repository that a test writes commit by commit; each is one hour later than the one before."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.hour = 0
        self.git("init", "--quiet", "--initial-branch=main", str(folder))

    def git(self, *arguments: str) -> str:
        time = f"{1_600_000_000 + self.hour * 3600} +0000"
        environment = os.environ | {
            "GIT_AUTHOR_DATE": time,
            "GIT_COMMITTER_DATE": time,
            "GIT_CONFIG_GLOBAL": os.devnull,
            **{f"GIT_{role}_{what}": "a@example.org" for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")},
        }
        command = ["git", *(["-C", str(self.folder)] if self.folder.exists() else []), *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True, env=environment).stdout

    def write(self, path: bytes, content: str) -> None:
        file = self.folder / os.fsdecode(path)
        file.parent.mkdir(exist_ok=True)
        file.write_text(content)

    def commit(self, message: str) -> None:
        self.hour += 1
        self.git("add", "--all")
        self.git("commit", "--quiet", "--allow-empty", "--message", message)


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Repository:
    """Each commit brings one thing that a changelog could get wrong."""
    repository = Repository(tmp_path_factory.mktemp("git") / "repository")
    repository.write(b"README.md", "first")
    repository.write(b"doomed", "will be deleted")
    repository.write(b"old/place", "will be renamed, long enough for git to notice")
    repository.commit("root")
    repository.write(b"README.md", "second")
    repository.write(LATIN, "a name that is not UTF-8")
    repository.write(QUOTED, "a name that git would quote")
    repository.commit("update and odd names")
    repository.git("rm", "--quiet", "doomed")
    repository.commit("deletion")
    repository.git("mv", "old/place", "new place")
    repository.commit("rename")
    (repository.folder / "README.md").chmod(0o755)
    (repository.folder / "link").symlink_to("README.md")
    repository.commit("executable and symlink")
    repository.commit("nothing")
    repository.git("checkout", "--quiet", "-b", "side", "HEAD~2")
    repository.write(b"from the branch", "1")
    repository.commit("on the branch")
    repository.write(b"from the branch", "2")
    repository.commit("on the branch again")
    repository.git("checkout", "--quiet", "main")
    repository.hour += 1
    repository.git("merge", "--quiet", "--no-edit", "side")
    repository.git("update-index", "--add", "--cacheinfo", "160000", "1" * 40, "submodule")
    repository.git("commit", "--quiet", "--message", "submodule")
    return repository


def replayed(folder: Path) -> dict[bytes, bytes]:
    return latest_values(
        [Record(offset, new.key, new.value, new.timestamp_ms) for offset, new in enumerate(git_history(folder))]
    )


def values_of(repository: Repository, path: bytes) -> list[dict[str, object] | None]:
    """All values of a path in order, without the blob id."""
    values: list[dict[str, object] | None] = []
    for record in git_history(repository.folder):
        if record.key == path:
            values.append(json.loads(record.value) if record.value else None)
            if values[-1]:
                del values[-1]["blob"]
    return values


def test_the_latest_values_are_what_git_lists(repository: Repository) -> None:
    tree = git_tree(repository.folder)
    assert replayed(repository.folder) == tree
    assert len(tree) == 7


def test_every_version_of_a_file_is_a_record(repository: Repository) -> None:
    assert values_of(repository, b"README.md") == [
        {"mode": "100644", "size": 5},
        {"mode": "100644", "size": 6},
        {"mode": "100755", "size": 6},
    ]


def test_a_deleted_file_is_a_tombstone(repository: Repository) -> None:
    assert values_of(repository, b"doomed") == [{"mode": "100644", "size": 15}, None]


def test_a_renamed_file_is_a_tombstone_and_a_new_key(repository: Repository) -> None:
    assert values_of(repository, b"old/place")[-1] is None
    assert values_of(repository, b"new place")[0] == {"mode": "100644", "size": 46}


def test_a_symlink_is_a_value_with_its_own_mode(repository: Repository) -> None:
    assert values_of(repository, b"link")[0] == {"mode": "120000", "size": 9}


def test_a_submodule_has_no_size(repository: Repository) -> None:
    assert values_of(repository, b"submodule") == [{"mode": "160000"}]


def test_a_merge_is_one_commit_that_brings_its_branch(repository: Repository) -> None:
    assert values_of(repository, b"from the branch") == [{"mode": "100644", "size": 1}]
    assert commit_count(repository.folder) == 8


def test_the_timestamp_is_the_commit_time_in_milliseconds(repository: Repository) -> None:
    assert next(git_history(repository.folder)).timestamp_ms == (1_600_000_000 + 3600) * 1000


def test_settings_of_the_user_do_not_change_the_changelog(repository: Repository) -> None:
    before = list(git_history(repository.folder))
    for name, value in [("diff.renames", "copies"), ("log.showSignature", "true"), ("log.showRoot", "false")]:
        repository.git("config", name, value)
    assert list(git_history(repository.folder)) == before


def test_a_shallow_clone_begins_with_all_files_of_its_oldest_commit(repository: Repository, tmp_path: Path) -> None:
    clone = tmp_path / "clone"
    repository.git("clone", "--quiet", "--depth", "2", repository.folder.as_uri(), str(clone))
    assert is_shallow(clone)
    assert not is_shallow(repository.folder)
    assert commit_count(clone) == 2
    assert replayed(clone) == git_tree(repository.folder)


def test_a_partial_clone_has_no_sizes_for_the_blobs_that_it_lacks(repository: Repository, tmp_path: Path) -> None:
    clone = tmp_path / "clone"
    repository.git("config", "uploadpack.allowFilter", "true")
    repository.git("clone", "--quiet", "--bare", "--filter=blob:none", repository.folder.as_uri(), str(clone))
    assert {path: "size" in json.loads(value) for path, value in replayed(clone).items()} == dict.fromkeys(
        git_tree(repository.folder), False
    )


@pytest.mark.parametrize("what", ["no repository", "no commit"])
def test_a_folder_without_a_history_is_refused(tmp_path: Path, what: str) -> None:
    if what == "no commit":
        Repository(tmp_path / "empty")
    folder = tmp_path / "empty"
    with pytest.raises(InvalidConfig, match="is not a git repository with a history"):
        list(git_history(folder))


def test_the_lines_are_read_back_as_they_were(repository: Repository) -> None:
    records = list(git_history(repository.folder))
    lines = [to_json_line(record).encode() for record in records]
    assert [from_json(line, now_ms=0) for line in lines] == records
    assert LATIN in {record.key for record in records}


def test_the_command_writes_one_json_line_a_record(repository: Repository) -> None:
    command = [sys.executable, "-m", "examples.git_history", str(repository.folder)]
    finished = subprocess.run(command, check=True, capture_output=True, text=True)
    assert finished.stdout.splitlines() == [to_json_line(record) for record in git_history(repository.folder)]


def test_the_generated_history_has_updates_deletions_and_odd_names(tmp_path: Path) -> None:
    folder = generate_repository(tmp_path / "generated", commits=400)
    records = list(git_history(folder))
    times = [record.timestamp_ms for record in records]
    assert commit_count(folder) == 400
    assert replayed(folder) == git_tree(folder)
    assert len(records) > 3 * len(git_tree(folder))
    assert sum(record.value is None for record in records) > 50
    assert any(b"\xe9" in (record.key or b"") for record in records)
    assert times != sorted(times)


def test_the_generated_history_is_the_same_for_the_same_seed(tmp_path: Path) -> None:
    heads = [
        subprocess.check_output(
            ["git", "-C", generate_repository(tmp_path / str(run), commits=30, seed=7), "rev-parse", "main"]
        )
        for run in range(2)
    ]
    assert heads[0] == heads[1]
