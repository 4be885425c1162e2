"""Gives up a store that answers a byte at a time: it keeps each time limit of a socket, and would never be given up.

How long an answer takes depends on how much there is of it, and a slow line is no outage. So an answer must begin in
time, and each piece of it must come in time. What is sent may take as long as a slow line needs for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from http import HTTPStatus
from typing import Any, TypeVar

from botocore.awsrequest import AWSPreparedRequest, AWSResponse
from botocore.exceptions import HTTPClientError, ReadTimeoutError
from urllib3.exceptions import HTTPError
from urllib3.exceptions import ReadTimeoutError as TooLate

from keptlog.table.waiting.patience import within

_Result = TypeVar("_Result")

_PIECE_SECONDS = 60.0
"""That an answer may take to begin, and each piece of it to come, if a read may not take longer by the properties."""
_PIECE_BYTES = 256 * 2**10
"""A slow line has this many in that time, also where a few requests share it."""


def give_up_trickles(client: Any) -> None:
    """Let a client of boto3 raise ``ReadTimeoutError``, as for a store that is silent."""
    seconds = max(_PIECE_SECONDS, client.meta.config.read_timeout)
    session = client._endpoint.http_session  # noqa: SLF001  # the one that boto3 would send with

    def send(request: AWSPreparedRequest, **_: object) -> AWSResponse:
        is_stream, request.stream_output = request.stream_output, True  # what else is there, is read below
        sent_bytes = int(request.headers.get("Content-Length") or 0)
        try:
            most = seconds * (1 + sent_bytes / _PIECE_BYTES)
            answer = _in_time(lambda: session.send(request), most, request.url)
            answer.raw = _InPieces(answer.raw, seconds, request.url)
            if not is_stream or answer.status_code >= HTTPStatus.MULTIPLE_CHOICES:
                _ = answer.content  # it is kept there
        except TooLate as error:
            raise ReadTimeoutError(endpoint_url=request.url, error=error) from error
        except HTTPError as error:
            raise HTTPClientError(error=error) from error
        return answer

    client.meta.events.register("before-send.s3", send)


class _InPieces:
    """The body of an answer, of which each piece comes in time."""

    def __init__(self, whole: Any, seconds: float, url: str) -> None:
        self._whole = whole
        self._seconds = seconds
        self._url = url

    def read(self, amt: int | None = None) -> bytes:
        """So many bytes, or all that are left."""
        content = bytearray()
        while amt is None or len(content) < amt:
            wanted = _PIECE_BYTES if amt is None else min(_PIECE_BYTES, amt - len(content))
            piece = self._piece(wanted)
            if not piece:
                break
            content += piece
        return bytes(content)

    def stream(self) -> Iterator[bytes]:
        """All that is left."""
        yield self.read()

    def _piece(self, wanted: int) -> bytes:
        try:
            return _in_time(lambda: bytes(self._whole.read(wanted)), self._seconds, self._url)
        except TooLate:
            # It ends whoever still reads, for whom to close it would wait; they may just have come to the end.
            with suppress(OSError, RuntimeError, ValueError):
                self._whole.shutdown()
            raise

    def __getattr__(self, name: str) -> Any:
        return getattr(self._whole, name)


def _in_time(do: Callable[[], _Result], seconds: float, url: str) -> _Result:
    result = within(do, seconds)
    if result is None:
        raise TooLate(None, url, f"the answer does not come on within {seconds:g} s")  # type: ignore[arg-type]
    return result
