"""Lets boto3 take up credentials that somebody has renewed: in the shared credentials file, as a machine's login does.

boto3 renews by itself what a role or a process gives it. What it has read from a file it keeps for as long as a client
lives, which here is as long as the process. So where a service says that they have expired, or that it does not know
them, they are looked up once more. If there are others now, the request is sent again with these: it was not carried
out. If there are none, the refusal stands. An answer to HEAD has no body: it says only 400 or 403, which may be this.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from botocore.credentials import Credentials
from botocore.exceptions import BotoCoreError, ClientError

from keptlog.table.waiting.sendable import require_sendable

_REFUSED = {"ExpiredToken", "ExpiredTokenException", "TokenRefreshRequired", "InvalidToken", "InvalidAccessKeyId"}
_REFUSED |= {"InvalidClientTokenId", "UnrecognizedClientException"}
_REFUSED_HEAD = {"400", "403"}
_SIGNED_BY = "keptlog.signed-by"
_OF_CREDENTIALS = ("Authorization", "X-Amz-Security-Token")
"""Headers in which credentials stand as they are: the name of a key in the first."""


def refuse_unsendable(events: Any, service: str) -> None:
    """Let a client of boto3 raise ``InvalidConfig`` where its credentials are none that can be sent."""

    def require(request: Any, **_: object) -> None:
        sent = {name: request.headers[name] for name in _OF_CREDENTIALS if name in request.headers}
        require_sendable(sent, "credentials of AWS")

    events.register(f"before-send.{service}", require)


def take_up_renewed(client: Any, look_up: Callable[[], Any]) -> None:
    """Let a client of boto3 do so; ``look_up`` gives what there is now, or null."""

    def remember(request: Any, request_signer: Any, **_: object) -> None:
        request.context[_SIGNED_BY] = request_signer, request_signer._credentials  # noqa: SLF001  # has no public name

    def is_sent_again(response: Any, operation: Any, request_dict: dict[str, Any], **_: object) -> int | None:
        """After so many seconds; null leaves it to botocore."""
        code = response[1].get("Error", {}).get("Code") if response else None
        signer, used = request_dict["context"].get(_SIGNED_BY, (None, None))
        is_refused = code in (_REFUSED_HEAD if operation.http.get("method") == "HEAD" else _REFUSED)
        if not is_refused or type(used) is not Credentials:
            return None
        try:
            now = look_up()
            is_other = now is not None and now.get_frozen_credentials() != used.get_frozen_credentials()
        except (BotoCoreError, ClientError):  # what is there is none, or is being written
            return None
        if not is_other:
            return None
        signer._credentials = now  # noqa: SLF001  # as above
        return 0

    service = client.meta.service_model.service_id.hyphenize()
    client.meta.events.register(f"before-sign.{service}", remember)
    client.meta.events.register(f"needs-retry.{service}", is_sent_again)
