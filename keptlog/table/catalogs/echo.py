"""Takes out of a refusal of a REST catalog, or of a server of tokens, the secrets that it was sent."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import parse_qs

from requests import PreparedRequest, Response

from keptlog.table.waiting.quoted import secrets_in, without

_SECRET_FIELDS = ("client_secret", "password", "assertion", "subject_token", "refresh_token")


def without_what_was_sent(answer: Response, *_: object, **__: object) -> None:
    """A hook for the answers of a ``requests`` session; those that are no refusal stay as they are."""
    if answer.ok:
        return
    answer._content = without(_secrets_of(answer.request), answer.content)  # noqa: SLF001  # requests has no other way


def _secrets_of(request: PreparedRequest) -> Iterator[str]:
    yield from secrets_in(request.headers)
    form = parse_qs(request.body) if isinstance(request.body, str) else {}
    for name in _SECRET_FIELDS:
        yield from form.get(name, ())
