"""What every client of boto3 is given before it asks anything, whichever service that is."""

from __future__ import annotations

from typing import Any

from keptlog.table.io.aws_answers import give_up_trickles, hide_what_was_sent
from keptlog.table.io.aws_credentials import refuse_unsendable, take_up_renewed
from keptlog.table.io.aws_sources import expect_none


def make_ready(client: Any, *, are_given: bool, profile: str | None = None) -> None:
    """Let a client do what the other three modules tell.

    ``are_given`` says that its credentials were named, and no other ones are meant; ``profile`` is the one that was.
    """
    give_up_trickles(client)
    hide_what_was_sent(client)
    refuse_unsendable(client)
    expect_none(client._request_signer._credentials)  # noqa: SLF001  # botocore has no public name
    if not are_given:
        take_up_renewed(client, profile)
