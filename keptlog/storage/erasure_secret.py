"""The secret under which keys are hashed, and where it is kept.

    KEPTLOG_ERASURE_SECRET         the secret itself, for those who keep theirs in a vault
    KEPTLOG_ERASURE_SECRET_FILE    a file with it
    <home>/erasure.secret          else; made when it is first needed, readable by its owner alone

Another user of the home, who may not read that file, names a copy of his own.

It is at least 32 bytes, written as hex. Who has it can try whether a hash is that of a key he guesses, so it never goes
into a table. Who loses it can't tell any more whether an erasure is done.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

from keptlog.disk import LET_IT_ANSWER, is_no_file, not_read, out_of_reach, refusal_of, refusal_text, remedy_of
from keptlog.errors import InvalidConfig, StorageUnavailable
from keptlog.regular_file import read_file, read_named
from keptlog.storage.key_hash import KeyHasher, ToldHash
from keptlog.whole_file import create_file, make_folder, warn_of_readers, why_unread

SECRET_FILE = "erasure.secret"  # noqa: S105  # its name
_VARIABLE = "KEPTLOG_ERASURE_SECRET"
_FILE_VARIABLE = "KEPTLOG_ERASURE_SECRET_FILE"
_PLACES = f"{_FILE_VARIABLE}, {_VARIABLE}, or {SECRET_FILE} in the home"
_BYTES = 32
_BACK = "put it back from a backup"
_FORM = f"a secret is at least {2 * _BYTES} hex digits"


class LoadHasher(Protocol):
    """Gives what hashes keys in a home."""

    def __call__(self, *, is_kept: bool = True) -> KeyHasher:
        """``is_kept``: a secret that is made now is kept in the home; else it serves once."""


def load_hasher(
    home: Path, environment: Mapping[str, str], new_secret: Callable[[], bytes], *, is_kept: bool = True
) -> KeyHasher:
    """What hashes keys in this home; its secret is made if there is none, of 32 bytes that nobody can guess.

    Who only looks what an erasure would do leaves none behind (``is_kept``): nothing was hashed with it before.

    Raises:
        InvalidConfig: what is given is no secret, or the file that is named is not there.
        StorageUnavailable: a file can't be read or written.
    """
    known = known_hasher(home, environment)
    if known:
        return known
    if not is_kept:
        return KeyHasher(new_secret(), is_kept=False)
    path = home / SECRET_FILE
    try:
        make_folder(home)
        create_file(path, f"{new_secret().hex()}\n".encode(), 0o600)
    except OSError as error:
        if refusal := refusal_of(error):
            what = "the erasure secret can't be made"
            raise StorageUnavailable(refusal_text(what, str(path), refusal)).for_good() from error
        todo = remedy_of(error, "let this user write there") or LET_IT_ANSWER
        raise out_of_reach(f"erasure secret {path} can't be made ({error.strerror}): {todo}", error) from error
    return _hasher_of(path, None)


def known_hasher(home: Path, environment: Mapping[str, str]) -> KeyHasher | None:
    """What hashes keys in this home; null if it has no secret yet, and none is made.

    Raises:
        InvalidConfig: what is given is no secret, or the file that is named is not there.
        StorageUnavailable: a file can't be read.
    """
    given = environment.get(_VARIABLE)
    if given:
        return KeyHasher(_secret(given, _VARIABLE, "set it to the secret that this home's erasures were made with"))
    named = environment.get(_FILE_VARIABLE)
    path = Path(named) if named else home / SECRET_FILE
    with _reading(path, named):
        if not named and not path.exists():
            return None
    return _hasher_of(path, named)


def require_secret(hasher: KeyHasher, fingerprint: str, where: str) -> None:
    """Refuse to compare hashes that were made with another secret: nothing would ever be found.

    Raises:
        InvalidConfig: naming both by their fingerprints.
    """
    if hasher.fingerprint != fingerprint:
        raise InvalidConfig(
            f"{where} was made with the erasure secret of fingerprint {fingerprint}, {_is_here(hasher)}: "
            f"give the right one ({_PLACES})"
        )


def require_own_hashes(hasher: KeyHasher, hashes: Iterable[ToldHash]) -> None:
    """Refuse hashes that somebody gives and that were made with another secret: nothing would ever be found.

    Raises:
        InvalidConfig: naming both by their fingerprints.
    """
    for each in hashes:
        if each.fingerprint != hasher.fingerprint:
            raise InvalidConfig(
                f"a hash of a key was made with the erasure secret of fingerprint {each.fingerprint}, "
                f"{_is_here(hasher)}: hash the keys anew (keptlog erase --hash) where the home's own secret is "
                f"given ({_PLACES})"
            )


def _is_here(hasher: KeyHasher) -> str:
    return f"the one here has {hasher.fingerprint}" if hasher.is_kept else "and there is none here yet"


def _hasher_of(path: Path, named: str | None) -> KeyHasher:
    warn_of_readers(path)
    with _reading(path, named):
        text = (read_named(path) if named else read_file(path)).decode(errors="replace")
    return KeyHasher(_secret(text, str(path), f"{_BACK}: without it nobody can tell whether an erasure is done"))


def _secret(text: str, where: str, remedy: str) -> bytes:
    try:
        secret = bytes.fromhex(text.strip())
    except ValueError:
        secret = b""
    if len(secret) < _BYTES:
        raise InvalidConfig(f"{where} holds no erasure secret ({_FORM}); {remedy}")
    return secret


@contextmanager
def _reading(path: Path, named: str | None) -> Iterator[None]:
    """Around the reading of a secret, or the look whether it is there; a variable gives it the name ``named``."""
    try:
        yield
    except PermissionError as error:
        told = why_unread(path, error, f"name a copy of your own in {_FILE_VARIABLE}")
        raise StorageUnavailable(f"erasure secret {told}").for_good() from error
    except OSError as error:
        if named and isinstance(error, FileNotFoundError):
            raise InvalidConfig(f"{_FILE_VARIABLE}={named}: there is no such file; {_FORM}") from None
        otherwise = _BACK if is_no_file(error) else LET_IT_ANSWER
        raise not_read(f"erasure secret {path}", error, otherwise) from error
