"""The home's folders belong to the home's user, whoever is the first to remember something there."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from keptlog.notify.checks import leave_checks
from keptlog.notify.folder import NotifyFolder
from keptlog.notify.ticks import leave_tick
from tests.notify.conftest import Scene

FOUND = {"users-0": {"G1": "a file is damaged"}}
USER, GROUP = 4001, 4002


@pytest.fixture
def given(monkeypatch: pytest.MonkeyPatch, home: Path) -> dict[str, tuple[int, int]]:
    """Folders that root gave away, and to whom; the home is a user's."""
    found: dict[str, tuple[int, int]] = {}
    stat = Path.stat

    def of_a_user(path: Path, *, follow_symlinks: bool = True) -> os.stat_result:
        seen = stat(path, follow_symlinks=follow_symlinks)
        return os.stat_result((*seen[:4], USER, GROUP, *seen[6:])) if path == home else seen

    monkeypatch.setattr(Path, "stat", of_a_user)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(os, "chown", lambda path, uid, gid: found.update({Path(path).name: (uid, gid)}))
    return found


def test_folders_that_root_makes_belong_to_the_user_of_the_home(
    scene: Scene, given: dict[str, tuple[int, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    scene.topic()
    monkeypatch.setenv("KEPTLOG_NOTIFY_LOG", "true")
    scene.notify()
    scene.keptlog("status")
    assert given == {"notify": (USER, GROUP), "cache": (USER, GROUP)}


def test_so_does_the_folder_of_the_ticks(scene: Scene, given: dict[str, tuple[int, int]]) -> None:
    scene.topic()
    leave_tick(scene.home, "crm_", scene.now_ms, 30_000)
    assert given["notify"] == (USER, GROUP)


def test_a_folder_that_is_there_stays_whose_it_is(scene: Scene, given: dict[str, tuple[int, int]]) -> None:
    scene.topic()
    (scene.home / "notify").mkdir()
    leave_checks(scene.home, FOUND)
    assert "notify" not in given


def test_another_user_makes_folders_as_ever(
    scene: Scene, given: dict[str, tuple[int, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: USER)
    scene.topic()
    leave_checks(scene.home, FOUND)
    assert given == {}


def test_where_root_may_not_give_folders_away_they_are_made_all_the_same(
    scene: Scene, given: dict[str, tuple[int, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in a container without that right, or on a disk of another machine."""

    def refused(*_args: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "chown", refused)
    leave_checks(scene.home, FOUND)
    assert (scene.home / "notify" / "checks.json").is_file()


@pytest.fixture
def shut(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder ``notify`` that another user made. Root may write everywhere, so the refusal is ours."""
    scene.topic()
    folder = scene.home / "notify"
    folder.mkdir()
    opened, access = os.open, os.access

    def may_not_open(path: str | Path, flags: int, *mode: int, **options: int) -> int:
        if Path(path).parent == folder and flags & os.O_CREAT:
            raise PermissionError(13, "Permission denied", str(path))
        return opened(path, flags, *mode, **options)

    monkeypatch.setattr(os, "open", may_not_open)
    monkeypatch.setattr(os, "access", lambda path, mode: Path(path) != folder and access(path, mode))
    return folder


def test_what_can_not_be_remembered_is_told_with_the_reason(
    scene: Scene, shut: Path, caplog: pytest.LogCaptureFixture
) -> None:
    leave_checks(scene.home, FOUND)
    assert f"{shut}/checks.lock can't be read or written (Permission denied)" in caplog.text


def test_doctor_names_such_a_folder(scene: Scene, shut: Path) -> None:
    told = scene.keptlog("doctor", "--no-probes", "--json")
    [disk] = [each for each in told.json["checks"] if each["name"] == "disk"]
    [problem] = disk["problems"]
    assert (told.code, problem["subject"]) == (1, str(shut))
    assert f"chown -R --reference={scene.home} {shut}" in str(problem)


def test_a_lock_that_another_user_has_left_is_taken(scene: Scene, shut: Path) -> None:
    (scene.home / "lock").touch()
    (scene.home / "lock").rename(shut / "lock")
    with NotifyFolder(scene.home).locked() as is_mine:
        assert is_mine
