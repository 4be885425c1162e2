"""Keys are made once, for their owner alone, and are never overwritten."""

from __future__ import annotations

import errno
import multiprocessing
import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.rsa import generate_private_key
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from keptlog.errors import InvalidConfig, StorageUnavailable
from keptlog.receipts.key_files import (
    KEY_FILE_VARIABLE,
    public_keys,
    require_signer,
    require_signing_key,
    signing_key,
    trusted_keys,
)
from keptlog.receipts.signing import PublicKey, SigningKey
from tests.receipts.chains import KEY, OTHER_KEY

PROCESSES = multiprocessing.get_context("forkserver")


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_key_is_made_at_first_use_for_its_owner_alone_and_found_again(tmp_path: Path) -> None:
    home = tmp_path / "new" / "home"
    key = signing_key(home, {})
    assert mode(home / "receipts.key") == 0o600
    assert signing_key(home, {}) == key
    assert trusted_keys(home) == [key.public]
    assert PublicKey.of_pem((home / "receipts.pub").read_bytes()) == key.public
    assert sorted(path.name for path in home.iterdir()) == ["receipts.key", "receipts.pub"]


def test_a_home_that_is_made_for_it_is_durable_too(tmp_path: Path, synced: set[int]) -> None:
    """The folders' own names were not: a loss of power could take the key away with its home."""
    home = tmp_path / "new" / "home"
    signing_key(home, {})
    files = (home / "receipts.key", home / "receipts.pub")
    assert synced == {path.stat().st_ino for path in (tmp_path, home.parent, home, *files)}


def test_a_pipe_that_a_variable_names_is_asked_once(tmp_path: Path) -> None:
    """Of two topics the first got its receipt: a pipe has nothing for who asks again."""
    reading, writing = os.pipe()
    os.write(writing, KEY.to_pem())
    os.close(writing)
    environment = {KEY_FILE_VARIABLE: f"/dev/fd/{reading}"}
    assert [signing_key(tmp_path, environment) for _ in range(2)] == [KEY, KEY]
    os.close(reading)


def test_nothing_shows_a_private_key() -> None:
    assert repr(KEY) == "SigningKey()"
    assert str(KEY.raw) not in str(KEY)


def test_six_processes_at_once_make_one_key(tmp_path: Path) -> None:
    with PROCESSES.Pool(6) as pool:
        made = pool.starmap(_key_id, [(tmp_path, number) for number in range(24)])
    assert len(set(made)) == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["receipts.key", "receipts.pub"]


def _key_id(home: Path, _: int) -> str:
    return signing_key(home, {}).public.key_id


@pytest.mark.parametrize("wrong", [0o644, 0o640, 0o602, 0o601])
def test_a_key_that_others_can_read_or_change_is_refused(tmp_path: Path, wrong: int) -> None:
    signing_key(tmp_path, {})
    (tmp_path / "receipts.key").chmod(wrong)
    with pytest.raises(InvalidConfig, match=rf"receipts.key can be read .* \(mode {wrong:o}\).*: chmod 600 "):
        signing_key(tmp_path, {})


@pytest.mark.parametrize(
    "change", [lambda pem: pem[:-40], lambda pem: pem.swapcase(), lambda _: b"", lambda _: b"\xff"]
)
def test_a_damaged_key_is_named_and_not_replaced(tmp_path: Path, change: object) -> None:
    signing_key(tmp_path, {})
    path = tmp_path / "receipts.key"
    damaged = change(path.read_bytes())  # type: ignore[operator]
    path.write_bytes(damaged)
    with pytest.raises(InvalidConfig, match=r"receipts.key is not usable, .* put it back from a backup"):
        signing_key(tmp_path, {})
    assert path.read_bytes() == damaged


@pytest.mark.parametrize("use", [signing_key, require_signing_key, require_signer])
def test_a_folder_in_the_place_of_a_key_is_named_by_who_looks_and_by_who_signs(
    tmp_path: Path, use: Callable[[Path, dict[str, str]], object]
) -> None:
    (tmp_path / "receipts.key").mkdir()
    with pytest.raises(
        InvalidConfig, match=r"receipts.key can't be read \(Is a directory\): put it back from a backup"
    ):
        use(tmp_path, {})


@pytest.fixture
def of_bob(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home whose key another user has made; injected, for root may read it, and nobody else can give it away."""
    signing_key(tmp_path, {})

    def denied(path: Path) -> bytes:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))

    monkeypatch.setattr("keptlog.receipts.key_files.read_file", denied)
    monkeypatch.setattr(os, "geteuid", lambda: tmp_path.stat().st_uid + 1)
    monkeypatch.setattr(Path, "owner", lambda _: "bob")
    return tmp_path


@pytest.mark.parametrize("use", [signing_key, require_signing_key, require_signer])
def test_the_key_of_another_user_is_not_lost_and_each_names_one_of_his_own(
    of_bob: Path, use: Callable[[Path, dict[str, str]], object]
) -> None:
    """The advice was to put it back, or to move it away, which took it from its owner, and then from the next one."""
    with pytest.raises(StorageUnavailable) as told:
        use(of_bob, {})
    assert str(told.value) == (
        f"signing key {of_bob}/receipts.key can't be read by this user (Permission denied): it belongs to bob, and "
        "nothing is lost; run it as bob, or name a key of your own in KEPTLOG_SIGNING_KEY_FILE"
    )
    assert told.value.is_refused


def test_who_is_asked_whether_he_could_sign_makes_no_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And one that he can't make is told: he would look through all files for a receipt that nobody signs."""
    home = tmp_path / "home"
    require_signer(home, {})
    assert list(tmp_path.iterdir()) == []
    monkeypatch.setattr(os, "access", lambda *_: False)  # root may write to any folder
    with pytest.raises(
        StorageUnavailable, match=rf"{home}/receipts.key is not .* may not write to {tmp_path};"
    ) as told:
        require_signer(home, {})
    assert told.value.is_refused
    key = signing_key(home, {})
    require_signer(home, {})
    assert trusted_keys(home) == [key.public]
    (home / "receipts.key").rename(tmp_path / "own.key")
    require_signer(home, {KEY_FILE_VARIABLE: str(tmp_path / "own.key")})
    # He would be told after the search: who checks receipts needs the public half, and it can't be left there.
    (home / "receipts.pub").unlink()
    with pytest.raises(StorageUnavailable, match=rf"the public half of .* may not write to {home};") as told:
        require_signer(home, {KEY_FILE_VARIABLE: str(tmp_path / "own.key")})
    assert told.value.is_refused


def test_a_home_that_no_folder_can_be_made_of_is_told_to_who_asks_whether_he_could_sign(tmp_path: Path) -> None:
    signing_key(tmp_path, {})
    own = {KEY_FILE_VARIABLE: str(tmp_path / "receipts.key")}
    with pytest.raises(StorageUnavailable, match=r"can't be made in .* \(File name too long\)") as told:
        require_signer(tmp_path / ("x" * 300), own)
    assert told.value.is_refused


def test_a_home_that_this_user_may_not_look_into_is_told_by_the_folder_above_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Root may look anywhere: the refusals are injected."""
    signing_key(tmp_path, {})
    (shut := tmp_path / "shut").mkdir()
    really = Path.exists

    def exists(path: Path) -> bool:
        if shut in path.parents:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
        return really(path)

    monkeypatch.setattr(Path, "exists", exists)
    monkeypatch.setattr(os, "access", lambda folder, _: folder != shut)
    with pytest.raises(StorageUnavailable, match=rf"the public half of .* this user may not write to {shut};"):
        require_signer(shut / "inner/home", {KEY_FILE_VARIABLE: str(tmp_path / "receipts.key")})


def test_a_public_half_that_may_not_be_read_keeps_nobody_from_signing_who_could_sign(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """He was told so after all files had been looked through. Root may read it: the refusal is injected."""
    signing_key(tmp_path / "home", {})
    own = signing_key(tmp_path / "other", {})
    variable = {KEY_FILE_VARIABLE: str(tmp_path / "other/receipts.key")}

    def read(path: Path) -> bytes:
        if path == tmp_path / "home/receipts.pub":
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
        return path.read_bytes()

    monkeypatch.setattr("keptlog.receipts.key_files.read_file", read)
    require_signer(tmp_path / "home", variable)
    assert signing_key(tmp_path / "home", variable).public == own.public
    require_signer(tmp_path / "home", variable)
    assert (tmp_path / "home" / f"receipts-{own.public.key_id}.pub").is_file()


def test_a_key_of_ones_own_that_may_not_be_read_is_given_the_right(
    tmp_path: Path, of_bob: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: tmp_path.stat().st_uid)
    with pytest.raises(StorageUnavailable, match=r"Permission denied\): nothing is lost; chmod 600 /.*receipts.key$"):
        signing_key(of_bob, {})


def test_the_key_of_a_user_without_a_name_is_told_by_number(of_bob: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(path: Path) -> str:
        raise KeyError(str(path))

    monkeypatch.setattr(Path, "owner", unknown)
    with pytest.raises(StorageUnavailable, match=rf"belongs to user {of_bob.stat().st_uid}, and nothing is lost"):
        signing_key(of_bob, {})


def test_who_gives_a_key_back_to_its_owner_is_told_what_the_others_do(tmp_path: Path) -> None:
    """It had been given to a group, so that two users can seal: with chmod 600 alone the other one can't."""
    signing_key(tmp_path, {})
    (tmp_path / "receipts.key").chmod(0o640)
    with pytest.raises(InvalidConfig, match=r"chmod 600 \S+; whoever else seals: .* KEPTLOG_SIGNING_KEY_FILE$"):
        signing_key(tmp_path, {})


def test_a_public_key_that_this_user_may_not_read_is_not_put_back(of_bob: Path) -> None:
    with pytest.raises(StorageUnavailable, match=r"receipts.pub can't be read by this .* with --public-key$") as told:
        trusted_keys(of_bob)
    assert "backup" not in str(told.value)


def test_a_key_of_another_kind_or_with_a_password_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "key.pem"
    rsa = generate_private_key(65537, 2048)
    path.write_bytes(rsa.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    with pytest.raises(InvalidConfig, match="no key of Ed25519"):
        signing_key(tmp_path, {KEY_FILE_VARIABLE: str(path)})


def test_a_key_that_was_lost_gets_a_successor_and_its_public_half_stays_trusted(tmp_path: Path) -> None:
    first = signing_key(tmp_path, {})
    (tmp_path / "receipts.key").unlink()
    second = signing_key(tmp_path, {})
    assert second != first
    assert PublicKey.of_pem((tmp_path / "receipts.pub").read_bytes()) == first.public
    assert trusted_keys(tmp_path) == [first.public, second.public]


def test_a_key_of_the_environment_is_used_and_never_made(tmp_path: Path) -> None:
    path = tmp_path / "elsewhere.pem"
    home = tmp_path / "home"
    with pytest.raises(InvalidConfig, match=r"elsewhere.pem can't be read .*: let KEPTLOG_SIGNING_KEY_FILE name a key"):
        signing_key(home, {KEY_FILE_VARIABLE: str(path)})
    assert not path.exists()
    path.write_bytes(KEY.to_pem())
    path.chmod(0o600)
    assert signing_key(home, {KEY_FILE_VARIABLE: str(path)}) == KEY
    assert [each.name for each in home.iterdir()] == ["receipts.pub"]
    assert trusted_keys(home) == [KEY.public]


def test_a_key_of_the_environment_leaves_its_public_half_beside_the_homes_own(tmp_path: Path) -> None:
    own = signing_key(tmp_path, {})
    path = tmp_path / "other.pem"
    path.write_bytes(OTHER_KEY.to_pem())
    path.chmod(0o600)
    signing_key(tmp_path, {KEY_FILE_VARIABLE: str(path)})
    assert (tmp_path / f"receipts-{OTHER_KEY.public.key_id}.pub").read_bytes() == OTHER_KEY.public.to_pem()
    assert trusted_keys(tmp_path) == [own.public, OTHER_KEY.public]


def test_a_home_that_never_signed_trusts_nobody(tmp_path: Path) -> None:
    assert trusted_keys(tmp_path / "none") == []


def test_a_public_key_that_is_none_is_named(tmp_path: Path) -> None:
    path = tmp_path / "auditor.pub"
    path.write_bytes(KEY.to_pem())
    with pytest.raises(InvalidConfig, match=r"public key .*auditor.pub is not usable, it is no public key in PEM"):
        public_keys([path])
    with pytest.raises(InvalidConfig, match=r"public key .*gone.pub can't be read \(No such file"):
        public_keys([tmp_path / "gone.pub"])


def test_nobody_is_sent_to_ask_for_the_public_key_of_his_own_home(tmp_path: Path) -> None:
    """The home that signs is its owner: what the advice says is enough to have it back."""
    key = signing_key(tmp_path, {})
    path = tmp_path / "receipts.pub"
    path.write_bytes(b"")
    with pytest.raises(InvalidConfig, match=r"receipts.pub is not usable, .*: put it back from .*, or move it away"):
        trusted_keys(tmp_path)
    path.rename(tmp_path / "away")
    assert signing_key(tmp_path, {}) == key
    assert trusted_keys(tmp_path) == [key.public]


def test_where_no_key_can_be_made_that_is_an_outage(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageUnavailable, match=r"signing key .*: Not a directory|File exists"):
        signing_key(tmp_path / "file" / "home", {})


def test_a_signature_is_of_one_key_and_one_content() -> None:
    signature = KEY.sign(b"yes")
    assert KEY.public.has_signed(b"yes", signature)
    assert not KEY.public.has_signed(b"no", signature)
    assert not OTHER_KEY.public.has_signed(b"yes", signature)
    assert not KEY.public.has_signed(b"yes", signature[:-2])
    assert SigningKey.generate() != SigningKey.generate()


def test_a_key_that_follows_another_one_is_told_once_and_a_first_one_is_not(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    signing_key(tmp_path, {})
    assert not caplog.messages
    (tmp_path / "receipts.key").unlink()
    for _ in range(2):
        signing_key(tmp_path, {})
    (new,) = tmp_path.glob("receipts-*.pub")
    assert caplog.messages == [f"receipts are signed with another key than before: whoever checks them needs {new} too"]


def test_a_public_key_that_is_damaged_is_not_told_as_another_one(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    key = signing_key(tmp_path, {})
    (first := tmp_path / "receipts.pub").write_text("damaged")
    assert signing_key(tmp_path, {}) == key
    (beside,) = tmp_path.glob("receipts-*.pub")
    (told,) = caplog.messages
    assert f"public key {first} is damaged or can't be read, so that of who signs is left in {beside}" in told
    assert "another key" not in told
