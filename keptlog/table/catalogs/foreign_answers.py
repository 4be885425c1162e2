"""Tells answers that a catalog has not given: those of who stands before it, where it is not there.

    200, 302    the page of a portal that wants people to sign in
    404, 409    the default of an ingress, a mesh or a gateway, while the catalog behind it is started again

Taken for the catalog's own, a 404 means that there are no topics, or that one was deleted, and a commit whose first
answer was lost would be taken for one that never landed. Iceberg's protocol gives an object in JSON for all of these,
and for a refusal one of a form of its own: gateways speak JSON too. What has none is no answer. Nor does a 404 say that
a topic is not there if it tells that the catalog does not find its storage. Of a HEAD, which has no body, nobody can
tell. What is asked before any table (a token, the catalog's own settings) is refused for reasons that people must see,
in whatever form.

JSON that is cut off, or has another form than what was asked for, is no answer either. Taken for a table, it would be
metadata that is damaged, and people would look for a copy of a file that is whole.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus

from pydantic import ValidationError
from requests import Response

from keptlog.foreign_json import json_value
from keptlog.table.waiting.reach import FailureKind, ToldFailure

_MEANT = {HTTPStatus.NOT_FOUND, HTTPStatus.CONFLICT}
"""Refusals that say how things are; what the others say is the same whoever gives them."""
_OF_TABLES = ("/namespaces", "/tables/", "/transactions/")
"""What is in the address of all that tells how tables are."""
_QUOTED = 200
"""So many characters of an answer are shown."""
_OF_ITS_STORAGE = {"NotFoundException", "FileIOUnknownHostException"}
"""Kinds of a 404, by which some catalogs tell that a file or a bucket's host is not found."""
_WITHOUT_BODY = {HTTPStatus.NO_CONTENT, HTTPStatus.NOT_MODIFIED}


class ForeignAnswer(ToldFailure):
    """What came is no answer of an Iceberg catalog; what was asked of it may have been done."""

    def __init__(self, text: str) -> None:
        super().__init__(text, FailureKind.UNKNOWN)


def require_catalogs_own(answer: Response, *_: object, **__: object) -> None:
    """A hook for the answers of a ``requests`` session.

    Raises:
        ForeignAnswer: it is another's.
    """
    status = answer.status_code
    is_meant = status < HTTPStatus.BAD_REQUEST or status in _MEANT
    is_without_body = status in _WITHOUT_BODY or answer.request.method == "HEAD" or answer.is_redirect
    if not is_meant or is_without_body:
        return
    content = answer.content.lstrip()
    # Some carry a change out and say no more about it than that.
    is_done = status < HTTPStatus.MULTIPLE_CHOICES and not content
    if not (is_done or content.startswith(b"{")):
        kind = answer.headers.get("Content-Type", "").partition(";")[0] or "text"
        where = answer.url.partition("?")[0]
        raise ForeignAnswer(
            f"{status} from {where} came with {kind if content else 'nothing'}, not with JSON of a catalog"
        )
    if status in _MEANT and any(part in answer.url for part in _OF_TABLES):
        _require_refusal(answer)


def _require_refusal(answer: Response) -> None:
    where = f"{answer.status_code} from {answer.url.partition('?')[0]}"
    try:
        error = json_value(answer.content)["error"]
        kind, message = str(error["type"]), str(error["message"])
    except (ValueError, LookupError, TypeError):
        said = " ".join(answer.text.split())[:_QUOTED]
        raise ForeignAnswer(f"{where} came with JSON that is no error of an Iceberg catalog: {said}") from None
    if answer.status_code == HTTPStatus.NOT_FOUND and kind in _OF_ITS_STORAGE:
        raise ForeignAnswer(f"{where} tells of the catalog's storage, not of what was asked for ({kind}: {message})")


@contextmanager
def parsing(what: str) -> Iterator[None]:
    """Around what asks a catalog and parses its answer; ``what`` is what was asked for.

    Raises:
        ForeignAnswer: what came has not the form of that.
        ValidationError: it has, but the metadata in it is none.
    """
    try:
        yield
    except ValidationError as error:
        if all(_is_inside_metadata(each["loc"], each["type"]) for each in error.errors()):
            raise
        # What came is not quoted, as pydantic does: there are credentials in it.
        raise ForeignAnswer(f"what came for {what} is no answer of an Iceberg catalog") from None


def _is_inside_metadata(place: tuple[int | str, ...], kind: str) -> bool:
    """Of metadata in a version that is none PyIceberg names no place but its own."""
    return place[:1] == ("metadata",) and (len(place) > 1 or kind.startswith("union_tag"))
