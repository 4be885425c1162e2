"""Who gives boto3 credentials: a role, a process, a file with a token. What comes instead is told as boto3's errors.

botocore takes for granted that a file is there, and that credentials are in each answer. Of a file of a token that is
not there it would say what the store says of a file that is gone, and so of each file of the store.

Nothing is quoted of what can't be read, which may be half of the credentials, nor is it kept, as botocore does.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from json import JSONDecodeError
from typing import Any

from botocore.credentials import RefreshableCredentials
from botocore.exceptions import BotoCoreError, ClientError, CredentialRetrievalError
from botocore.parsers import ResponseParserError
from botocore.utils import parse_timestamp

from keptlog.errors import KeptlogError


class RoleNotGiven(BotoCoreError):  # type: ignore[misc]  # boto3 has no types
    """What came has no credentials of a role, or those of another time."""

    fmt = "nobody gave the role {role} as AWS does: see to AWS_ENDPOINT_URL_STS, and what stands before it"


@contextmanager
def looking_up() -> Iterator[None]:
    """Make a session or a client of boto3, which looks up its credentials.

    Raises:
        BotoCoreError: there are none where they should be.
    """
    try:
        yield
    except JSONDecodeError:
        why = "it gave no JSON: see to credential_process"
        raise CredentialRetrievalError(provider="custom-process", error_msg=why) from None
    except OSError as error:
        raise _unread("what AWS's configuration names", error) from error


def expect_none(credentials: Any) -> None:
    """Let credentials that are renewed say so where that fails; others stay as they are, and those that do so."""
    if isinstance(credentials, RefreshableCredentials) and not isinstance(credentials._refresh_using, _Renewal):  # noqa: SLF001
        credentials._refresh_using = _Renewal(credentials)  # noqa: SLF001  # botocore has no public name


class _Renewal:
    """Asks for credentials, which may not come."""

    def __init__(self, credentials: Any) -> None:
        self._ask = credentials._refresh_using  # noqa: SLF001  # as above
        self._now = credentials._time_fetcher  # noqa: SLF001
        self._source = credentials.method
        self._asked = getattr(self._ask, "__self__", None)

    def __call__(self) -> Any:
        try:
            given = self._ask()
            is_over = parse_timestamp(given["expiry_time"]) <= self._now()
        except (ClientError, BotoCoreError, KeptlogError):
            raise
        except OSError as error:
            raise _unread(self._source, error) from error
        except (ResponseParserError, LookupError, AttributeError, TypeError, ValueError):
            is_over = True
        if is_over:
            getattr(self._asked, "_cache", {}).clear()
            role = getattr(self._asked, "_role_arn", None)
            why = "it gave none, or those of another time"
            raise RoleNotGiven(role=role) if role else CredentialRetrievalError(provider=self._source, error_msg=why)
        return given


def _unread(source: str, error: OSError) -> CredentialRetrievalError:
    where = f"{error.filename}: " if error.filename else ""
    return CredentialRetrievalError(provider=source, error_msg=f"{where}{error.strerror or error}")
