"""Where the keys of receipts lie, and who makes them.

    <home>/receipts.key     the private key, for its owner alone: made at first use, never overwritten
    <home>/receipts.pub     its public half, to be handed to whoever checks receipts
    <home>/receipts-*.pub   further public keys that this home trusts: earlier ones, or those of other machines

``KEPTLOG_SIGNING_KEY_FILE`` names another private key; it must be there. A key that is not that of ``receipts.pub``
leaves its public half beside it, as ``receipts-<key id>.pub``, so that no public key is ever lost to another.

Who may not read the private key of a home is another user of it, and names a key of his own in the variable. So that
is no damage, and no reason to put anything back.

Several processes at once make one key (``keptlog.whole_file``), and nobody ever sees half of it.
"""

from __future__ import annotations

import contextlib
import fnmatch
import logging
import os
import shlex
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import NamedTuple, TypeVar

from keptlog.disk import is_no_file, not_listed, not_read, out_of_reach, remedy_of
from keptlog.errors import InvalidConfig, StorageUnavailable
from keptlog.folders import names_in
from keptlog.receipts.signing import PublicKey, SigningKey
from keptlog.regular_file import read_file, read_named
from keptlog.whole_file import create_file, make_folder, why_unread

KEY_FILE_VARIABLE = "KEPTLOG_SIGNING_KEY_FILE"
PRIVATE_FILE, PUBLIC_FILE = "receipts.key", "receipts.pub"
_FURTHER = "receipts-*.pub"
_Key = TypeVar("_Key")
_log = logging.getLogger(__name__)
_OF_OTHERS = 0o077
_PRIVATE_MODE, _PUBLIC_MODE = 0o600, 0o644


class _Remedy(NamedTuple):
    """What to do about a key that is damaged, and without one that this user may not read."""

    damaged: str
    instead: str


_COPIES = "name copies that you may read with --public-key"
_OWN_REMEDY = _Remedy(
    f"put it back from a backup, or move it away: the next receipt leaves the public half of {PRIVATE_FILE} there",
    _COPIES,
)
"""Whoever is told it owns it."""
_FURTHER_REMEDY = _Remedy("ask its owner for it again", _COPIES)
_KEY_OF_ONES_OWN = f"name a key of your own in {KEY_FILE_VARIABLE}"


def signing_key(home: Path, environment: Mapping[str, str]) -> SigningKey:
    """The key that signs the receipts of a home; made now if there is none.

    Raises:
        InvalidConfig: it is damaged, or can be read by others; says which file, and what to do.
        StorageUnavailable: it can't be made; or this user may not read it, and another one may.
    """
    path, variable = _private_place(home, environment)
    try:
        if not variable and not path.exists():
            make_folder(home)
            create_file(path, SigningKey.generate().to_pem(), _PRIVATE_MODE)
        key = _private_key(path, variable)
        if made := _leave_public_key(home, key.public):
            _log.warning(*_why_beside(home, made))
    except OSError as error:
        todo = remedy_of(error, "let this user write there") or "mend that"
        what = f"signing key {path}: {error.filename or path}: {error.strerror}"
        raise out_of_reach(f"{what}; {todo}, and try again", error) from error
    return key


def require_signing_key(home: Path, environment: Mapping[str, str]) -> SigningKey | None:
    """Refuse a key that can't sign, before anything is to be signed; one that is not there yet is made then.

    Returns:
        The home's own key; null if there is none yet, or if a variable names another one.

    Raises:
        InvalidConfig: as ``signing_key``.
        StorageUnavailable: this user may not read it, and another one may; or its disk does not give it.
    """
    path, variable = _private_place(home, environment)
    key = _key_there(path, variable)
    return None if variable else key


def require_signer(home: Path, environment: Mapping[str, str]) -> None:
    """Refuse who could not sign, and make no key: a public one where nothing was sealed reads as a chain that is lost.

    Raises:
        InvalidConfig: as ``signing_key``.
        StorageUnavailable: this user may not read the key, or its disk does not give it; or it, or its public half, is
            not there yet, and he can't make it.
    """
    path, variable = _private_place(home, environment)
    key = _key_there(path, variable)
    if key and _has_public_key(home, key.public):
        return
    place = home / PUBLIC_FILE if key else path
    what = f"the public half of signing key {path}" if key else f"signing key {path}"
    try:
        folder = next(each for each in place.absolute().parents if _is_seen(each))
    except OSError as error:
        told = f"{what} is not there, and can't be made in {home} ({error.strerror})"
        raise out_of_reach(f"{told}: set KEPTLOG_HOME to a folder that can be made", error) from error
    if not os.access(folder, os.W_OK | os.X_OK):
        todo = "" if key else f", or {_KEY_OF_ONES_OWN}"
        raise StorageUnavailable(
            f"{what} is not there, and can't be made: this user may not write to {folder}; see to its permissions{todo}"
        ).for_good()


def _is_seen(folder: Path) -> bool:
    """Whether it is there, and this user may know that; else one above it may not be entered, which is seen there."""
    try:
        return folder.exists()
    except PermissionError:
        return False


def _has_public_key(home: Path, key: PublicKey) -> bool:
    for path in _public_places(home, key):
        with contextlib.suppress(OSError, ValueError):
            if PublicKey.of_pem(read_file(path)) == key:
                return True
    return False


def _public_places(home: Path, key: PublicKey) -> tuple[Path, Path]:
    """Where it is, or is to be: under the second name if another key has the first."""
    return home / PUBLIC_FILE, home / f"receipts-{key.key_id}.pub"


def trusted_keys(home: Path) -> list[PublicKey]:
    """The public keys whose signatures a home takes for true: none if it never signed anything.

    Raises:
        InvalidConfig: a file is damaged.
        StorageUnavailable: this user may not read one, or list the home, so that a key may be missing; or its
            disk does not give it.
    """
    try:
        names = names_in(home)
    except OSError as error:
        instead = ", or name the keys with --public-key"
        raise not_listed(home, error, "and public keys may lie there", instead) from error
    remedies = {name: _OWN_REMEDY if name == PUBLIC_FILE else _FURTHER_REMEDY for name in _public_keys_among(names)}
    return [_read(home / name, PublicKey.of_pem, "public key", each, read_file) for name, each in remedies.items()]


def public_key_files(home: Path) -> list[Path]:
    """The files of the public keys that a home trusts; none where none is seen."""
    try:
        names = names_in(home)
    except OSError:
        names = []
    return [home / name for name in _public_keys_among(names)]


def _public_keys_among(names: list[str]) -> list[str]:
    """Those of a home, its first one before the others."""
    return [*fnmatch.filter(names, PUBLIC_FILE), *fnmatch.filter(names, _FURTHER)]


def public_keys(paths: Iterable[Path]) -> list[PublicKey]:
    """The public keys in some files.

    Raises:
        InvalidConfig: one is damaged or not there; says which.
        StorageUnavailable: this user may not read one, or its disk does not give it.
    """
    return [_read(path, PublicKey.of_pem, "public key", _FURTHER_REMEDY) for path in paths]


def _private_place(home: Path, environment: Mapping[str, str]) -> tuple[Path, str | None]:
    """Where the private key lies, and the variable that says so; null if it is the home's own."""
    named = environment.get(KEY_FILE_VARIABLE)
    if not named:
        return home / PRIVATE_FILE, None
    # Of a user whom this machine does not know it stays as it is, and is not there.
    return Path(os.path.expanduser(named)), KEY_FILE_VARIABLE  # noqa: PTH111


def _key_there(path: Path, variable: str | None) -> SigningKey | None:
    """The private key; null if there is none yet, and a variable does not name it."""
    try:
        return _private_key(path, variable) if variable or path.exists() else None
    except PermissionError as error:
        raise _unread("signing key", path, error, _KEY_OF_ONES_OWN) from error
    except OSError as error:
        raise not_read(f"signing key {path}", error) from error


def _private_key(path: Path, variable: str | None) -> SigningKey:
    remedy = _Remedy(
        f"let {variable} name a key of Ed25519, as openssl genpkey -algorithm ed25519 makes it"
        if variable
        else "put it back from a backup; if there is none, move it away and a new one is made: receipts that were "
        f"signed with it are still checked with {path.with_name(PUBLIC_FILE)}",
        _KEY_OF_ONES_OWN,
    )
    key = _read(path, SigningKey.of_pem, "signing key", remedy, read_named if variable else read_file)
    mode = path.stat().st_mode & 0o777
    if mode & _OF_OTHERS:
        raise InvalidConfig(
            f"signing key {path} can be read or changed by others (mode {mode:o}), who could sign in our name: "
            f"chmod 600 {shlex.quote(str(path))}; whoever else seals: {_KEY_OF_ONES_OWN}"
        )
    return key


def _read(
    path: Path,
    of_pem: Callable[[bytes], _Key],
    what: str,
    remedy: _Remedy,
    read: Callable[[Path], bytes] = Path.read_bytes,
) -> _Key:
    """A key; ``read`` is ``read_file`` of those in a home, and ``read_named`` of one that a variable names."""
    try:
        return of_pem(read(path))
    except PermissionError as error:
        raise _unread(what, path, error, remedy.instead) from error
    except OSError as error:
        if is_no_file(error):  # else nobody is to move it away
            raise InvalidConfig(f"{what} {path} can't be read ({error.strerror}): {remedy.damaged}") from None
        raise not_read(f"{what} {path}", error) from error
    except ValueError as error:
        raise InvalidConfig(f"{what} {path} is not usable, {error}: {remedy.damaged}") from None


def _unread(what: str, path: Path, error: PermissionError, instead: str) -> StorageUnavailable:
    return StorageUnavailable(f"{what} {why_unread(path, error, instead)}").for_good()


def _why_beside(home: Path, made: Path) -> tuple[str, ...]:
    """What whoever checks receipts has to know of a public key that lies beside the first one, as a line of the log.

    Receipts that it signs are of an unknown key to whoever was given another one. What can't be read may be the same.
    """
    try:
        PublicKey.of_pem(read_file(home / PUBLIC_FILE))
    except (ValueError, PermissionError):
        told = "public key %s is damaged or can't be read, so that of who signs is left in %s: %s"
        return told, str(home / PUBLIC_FILE), str(made), "put the first one back, or move it away"
    return "receipts are signed with another key than before: whoever checks them needs %s too", str(made)


def _leave_public_key(home: Path, key: PublicKey) -> Path | None:
    """Write it where the home's other public keys are, unless it is there.

    Returns:
        The file that was written beside that of another key; null if none was.
    """
    made: Path | None = None
    for path in _public_places(home, key):
        if not path.exists():
            make_folder(home)
            create_file(path, key.to_pem(), _PUBLIC_MODE)
            made = path if path.name != PUBLIC_FILE else None
        with contextlib.suppress(ValueError, PermissionError):
            if PublicKey.of_pem(read_file(path)) == key:
                break
    return made
