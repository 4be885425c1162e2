"""The secret under which keys are hashed: made once, by whoever is first, kept to itself, and told when it is wrong."""

from __future__ import annotations

import errno
import os
import pickle
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from socket import AF_UNIX, socket

import pytest

from keptlog.errors import InvalidConfig, StorageUnavailable
from keptlog.home import open_home
from keptlog.passes.erasures.erasure_request import ErasureRequest
from keptlog.storage import erasure_secret
from keptlog.storage.erasure_secret import load_hasher, require_secret
from tests.erasure.world import DAY_MS, KEY, OTHER, VALUE, World


def made(home: Path, environment: dict[str, str] | None = None) -> bytes:
    return load_hasher(home, environment or {}, lambda: os.urandom(32)).secret


def test_it_is_made_at_first_use_for_its_owner_alone_and_stays(tmp_path: Path) -> None:
    secret = made(tmp_path / "home")
    path = tmp_path / "home" / "erasure.secret"
    assert (stat.S_IMODE(path.stat().st_mode), path.read_text()) == (0o600, secret.hex() + "\n")
    assert made(tmp_path / "home") == secret
    assert list(path.parent.iterdir()) == [path]


def test_a_home_that_is_made_for_it_is_durable_too(tmp_path: Path, synced: set[int]) -> None:
    """The folders' own names were not: a loss of power could take the secret away with its home."""
    made(tmp_path / "new" / "home")
    home = tmp_path / "new" / "home"
    assert synced == {path.stat().st_ino for path in (tmp_path, home.parent, home, home / "erasure.secret")}


def test_of_many_at_once_one_makes_it(tmp_path: Path) -> None:
    with ThreadPoolExecutor(16) as pool:
        secrets = set(pool.map(lambda _: made(tmp_path / "home"), range(64)))
    assert len(secrets) == 1
    assert [path.name for path in (tmp_path / "home").iterdir()] == ["erasure.secret"]


def test_the_environment_wins_and_no_file_is_made(tmp_path: Path) -> None:
    given = tmp_path / "vault"
    given.write_text("cd" * 40 + "\n")
    assert made(tmp_path / "home", {"KEPTLOG_ERASURE_SECRET": "ab" * 32}) == b"\xab" * 32
    assert made(tmp_path / "home", {"KEPTLOG_ERASURE_SECRET_FILE": str(given)}) == b"\xcd" * 40
    assert not (tmp_path / "home").exists()


@pytest.mark.parametrize("content", ["", "abc", "ab" * 31, "xy" * 32, "\x00\xff" * 40])
def test_what_is_no_secret_is_told_in_one_line_without_its_content(tmp_path: Path, content: str) -> None:
    (tmp_path / "erasure.secret").write_bytes(content.encode("latin-1"))
    with pytest.raises(InvalidConfig) as refused:
        made(tmp_path)
    text = str(refused.value)
    assert text.startswith(f"{tmp_path}/erasure.secret holds no erasure secret")
    assert "\n" not in text
    assert not content or content not in text


def test_a_file_that_is_named_and_not_there_is_not_made(tmp_path: Path) -> None:
    with pytest.raises(InvalidConfig, match="there is no such file"):
        made(tmp_path, {"KEPTLOG_ERASURE_SECRET_FILE": str(tmp_path / "nothing")})
    assert list(tmp_path.iterdir()) == []


def test_a_pipe_that_a_variable_names_is_asked_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What it would do was told, and to do it was refused: a pipe has nothing for who asks again."""
    world = World(tmp_path)
    world.create()
    world.append((KEY, VALUE))
    reading, writing = os.pipe()
    os.write(writing, b"ab" * 32)
    os.close(writing)
    monkeypatch.setenv("KEPTLOG_ERASURE_SECRET_FILE", f"/dev/fd/{reading}")
    home = open_home(tmp_path)
    request = ErasureRequest("r1", ["users"], [KEY])
    asked = home.eraser.request(home.eraser.propose(request, now_ms=world.now_ms), now_ms=world.now_ms)
    os.close(reading)
    assert dict(asked.failed) == {}
    assert list(asked.erasures) == ["users"]


def test_a_folder_in_its_place_is_out_of_reach(tmp_path: Path) -> None:
    (tmp_path / "erasure.secret").mkdir()
    with pytest.raises(
        StorageUnavailable, match=r"can't be read \(Is a directory\): put it back from a backup"
    ) as refused:
        made(tmp_path)
    assert refused.value.is_refused  # to try again does not help


@pytest.mark.parametrize("name", ["loop", "socket", "x" * 300])
def test_where_no_file_can_lie_the_disk_does_answer(tmp_path: Path, name: str) -> None:
    (tmp_path / "loop").symlink_to("loop")
    with socket(AF_UNIX) as listening:
        listening.bind(str(tmp_path / "socket"))
        with pytest.raises(StorageUnavailable, match=r"can't be read .*: put it back from a backup") as refused:
            made(tmp_path, {"KEPTLOG_ERASURE_SECRET_FILE": str(tmp_path / name)})
    assert refused.value.is_refused


def test_the_secret_of_another_user_is_not_lost_and_each_has_a_copy_of_his_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The advice was to let it be read and written; nobody writes it, and its mode is for its owner alone."""
    secret = made(tmp_path)

    def denied(path: Path) -> bytes:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))

    monkeypatch.setattr(erasure_secret, "read_file", denied)  # root may read it, and nobody else can give it away
    monkeypatch.setattr(os, "geteuid", lambda: tmp_path.stat().st_uid + 1)
    monkeypatch.setattr(Path, "owner", lambda _: "alice")
    with pytest.raises(StorageUnavailable) as told:
        made(tmp_path)
    assert str(told.value) == (
        f"erasure secret {tmp_path}/erasure.secret can't be read by this user (Permission denied): it belongs to "
        "alice, and nothing is lost; run it as alice, or name a copy of your own in KEPTLOG_ERASURE_SECRET_FILE"
    )
    assert told.value.is_refused
    (tmp_path / "copy").write_text(secret.hex())
    assert made(tmp_path, {"KEPTLOG_ERASURE_SECRET_FILE": str(tmp_path / "copy")}) == secret


def test_a_disk_that_is_full_is_said_to_be_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(erasure_secret, "create_file", full)
    with pytest.raises(StorageUnavailable, match=f"disk of {tmp_path}/erasure.secret is full; .* make room") as told:
        made(tmp_path)
    assert told.value.is_refused
    assert list(tmp_path.iterdir()) == []


def test_another_secret_is_refused_by_both_fingerprints_and_shows_nothing_of_itself(tmp_path: Path) -> None:
    one = load_hasher(tmp_path, {}, lambda: os.urandom(32))
    other = load_hasher(tmp_path, {"KEPTLOG_ERASURE_SECRET": "ab" * 32}, lambda: b"")
    require_secret(one, one.fingerprint, "request r1")
    with pytest.raises(InvalidConfig) as refused:
        require_secret(other, one.fingerprint, "request r1")
    assert one.fingerprint in str(refused.value)
    assert other.fingerprint in str(refused.value)
    assert one.secret.hex() not in repr(one) + str(refused.value)
    assert pickle.loads(pickle.dumps(one)) == one  # noqa: S301  # made here


def test_no_second_one_is_made_while_erasures_wait_that_were_made_with_one_that_is_gone(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.create()
    world.append((KEY, VALUE))
    world.ask()
    world.create("orders")
    secret, home = tmp_path / "erasure.secret", open_home(tmp_path)
    kept = secret.rename(tmp_path / "backup")
    request = ErasureRequest(id="again", topics=["users"], keys=[OTHER], deadline_ms=world.now_ms + 300 * DAY_MS)
    for asked in (
        lambda: home.eraser.propose(request, now_ms=world.now_ms),
        lambda: home.eraser.hash_of(KEY),
        lambda: home.only(["ord*"]).eraser.hash_of(KEY),
    ):
        with pytest.raises(InvalidConfig, match=r"this home has no erasure secret, and topic users has 1 open erasure"):
            asked()
    assert not secret.exists()
    kept.rename(secret)
    assert home.eraser.hash_of(KEY) == str(world.hasher.told(KEY))


def test_that_a_topic_was_not_looked_at_is_told_with_the_secret_that_is_made(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    world = World(tmp_path)
    world.create()
    world.append((KEY, VALUE))
    world.ask()
    world.create("orders")
    (tmp_path / "erasure.secret").unlink()
    metadata = Path(world.store.load_table("users").metadata_location.removeprefix("file://"))
    metadata.write_bytes(metadata.read_bytes()[:100])

    home = open_home(tmp_path)
    assert home.eraser.hash_of(KEY)

    told = "it is not known whether topic users has open erasures, for it can't be read"
    assert caplog.text.count(told) == 1
    assert home.eraser.hash_of(OTHER)
    assert caplog.text.count(told) == 1


@pytest.fixture
def deleted(tmp_path: Path) -> World:
    """A world with a request that is to be verified next."""
    world = World(tmp_path)
    world.create()
    world.append((KEY, VALUE))
    world.ask()
    world.to_deleted()
    return world


@pytest.mark.parametrize(
    ("environment", "told"),
    [
        ({}, "this home has no erasure secret, and topic users has 1 open erasure: put erasure.secret back"),
        ({"KEPTLOG_ERASURE_SECRET": "ab" * 32}, "topic users: request r1 was made with the erasure secret of finger"),
    ],
)
def test_a_list_names_the_secret_that_keeps_a_request_from_its_verification(
    tmp_path: Path, deleted: World, monkeypatch: pytest.MonkeyPatch, environment: dict[str, str], told: str
) -> None:
    """It said that the verification is next, and the verification was refused."""
    assert deleted.row().blocked == ()
    secret = tmp_path / "erasure.secret"
    kept = secret.rename(tmp_path / "backup")
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    row = open_home(tmp_path).eraser.list(["users"], now_ms=deleted.now_ms).rows[0]
    assert len(row.blocked) == 1
    assert row.blocked[0].startswith(told)
    assert not secret.exists()
    kept.rename(secret)
    for name in environment:
        monkeypatch.delenv(name)
    assert open_home(tmp_path).eraser.list(["users"], now_ms=deleted.now_ms).rows[0].blocked == ()
    assert deleted.verified().is_verified_now


def test_a_list_names_what_has_the_place_of_the_secret(tmp_path: Path, deleted: World) -> None:
    """A folder there keeps everybody from the verification, and the list named that as next."""
    secret = tmp_path / "erasure.secret"
    secret.unlink()
    secret.mkdir()
    [row] = open_home(tmp_path).eraser.list(["users"], now_ms=deleted.now_ms).rows
    assert row.blocked == (f"erasure secret {secret} can't be read (Is a directory): put it back from a backup",)


def test_who_may_not_read_the_secret_lists_what_is_to_be_verified(
    tmp_path: Path, deleted: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is not for him to verify, and nothing keeps it from whoever does."""

    def denied(path: Path) -> bytes:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))

    monkeypatch.setattr(erasure_secret, "read_file", denied)
    found = open_home(tmp_path).eraser.list(["users"], now_ms=deleted.now_ms)
    assert [(row.erasure.state, row.blocked) for row in found.rows] == [("deleted", ())]
    assert dict(found.failed) == {}
