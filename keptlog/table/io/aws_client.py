"""What every client of boto3, and each session, is given before it asks anything, whichever service that is."""

from __future__ import annotations

from typing import Any

import boto3

from keptlog.table.io.aws_answers import give_up_trickles, hide_what_was_sent
from keptlog.table.io.aws_credentials import refuse_unsendable, take_up_renewed
from keptlog.table.io.aws_sources import tell_failures

_GIVING = ("sts", "sso")
"""Services that give credentials."""


def make_ready(client: Any, *, are_given: bool, profile: str | None = None) -> None:
    """Let a client do what ``aws_answers`` and ``aws_credentials`` tell.

    ``are_given`` says that its credentials were named, and no other ones are meant; ``profile`` is the one that was.
    """
    give_up_trickles(client)
    _keep_secrets(client.meta.events, client.meta.service_model.service_id.hyphenize())
    if not are_given:
        take_up_renewed(client, lambda: _looked_up(profile))


def _looked_up(profile: str | None) -> Any:
    session = boto3.Session(profile_name=profile)
    make_session_ready(session._session)  # noqa: SLF001  # boto3 has no public name
    return session.get_credentials()


def make_session_ready(session: Any) -> None:
    """Let a session of botocore keep secrets where it asks by itself for credentials, as for a profile's role.

    And tell as boto3's errors where it gets none.

    It is to be told before it makes a client.
    """
    for service in _GIVING:
        _keep_secrets(session.get_component("event_emitter"), service)
    tell_failures(session)


def _keep_secrets(events: Any, service: str) -> None:
    hide_what_was_sent(events, service)
    refuse_unsendable(events, service)
