"""What a request to erase keys would do, before anything is asked for: for people, and for programs."""

from __future__ import annotations

from keptlog.log.erasures.erasure import ErasureWay
from keptlog.log.words.counted import counted
from keptlog.log.words.iso_time import has_date, iso_time
from keptlog.passes.erasures.erasure_request import ErasureProposal, TopicProposal

_WAYS = {
    ErasureWay.TOMBSTONE: "a tombstone of each key is appended at once, to each log that has the key; cleans remove "
    "the records, then the tombstones",
    ErasureWay.SOURCE: "it waits until the source deletes the keys: delete them there, or give --here",
    ErasureWay.HERE: "every record of the keys is dropped here, whatever the source has; later ones count as new",
    ErasureWay.RETENTION: "it is not compacted, so a tombstone would remove nothing: the records go with their age",
}


def proposal_lines(proposal: ErasureProposal) -> list[str]:
    """For people: of each topic the way, the deadline, and what is in its way."""
    lines = [f"request {proposal.request.id}: {counted(proposal.key_count, 'key')}"]
    for each in proposal.topics.values():
        if each.is_repeated:
            lines.append(f"  {each.topic}: has this request already, by {each.way}")
            kept = "none" if each.deadline_ms is None else iso_time(each.deadline_ms)
            lines.append(f"    deadline: {kept}, as before; another deadline or reason needs another id")
            continue
        lines.append(f"  {each.topic}: {_WAYS[each.way]}")
        lines.append(f"    deadline: {_deadline(each)}; done {_earliest(each)}")
        lines += [f"    {'IMPOSSIBLE: ' if _is_too_late(each) else ''}{hindrance}" for hindrance in each.hindrances]
    return lines


def _deadline(proposed: TopicProposal) -> str:
    if proposed.deadline_ms is None:
        return f"none, {proposed.no_promise}"
    return iso_time(proposed.deadline_ms)


def _earliest(proposed: TopicProposal) -> str:
    if not has_date(proposed.earliest_ms):
        return "never, as the topic is set"
    earliest = f"{iso_time(proposed.earliest_ms)} at the earliest"
    if proposed.latest_ms == proposed.earliest_ms:
        return earliest
    when = iso_time(proposed.latest_ms) if has_date(proposed.latest_ms) else "never"
    return f"{earliest}, {when} in the worst case"


def _is_too_late(proposed: TopicProposal) -> bool:
    return proposed.deadline_ms is not None and proposed.earliest_ms > proposed.deadline_ms


def proposal_row(proposal: ErasureProposal) -> dict[str, object]:
    """For programs."""
    return {
        "id": proposal.request.id,
        "keys": proposal.key_count,
        "topics": {
            name: {
                "way": each.way.value,
                "deadline_ms": each.deadline_ms,
                "no_promise": each.no_promise,
                "earliest_ms": each.earliest_ms,
                "latest_ms": each.latest_ms,
                "is_impossible": _is_too_late(each),
                "hindrances": [
                    {
                        "what": hindrance.what,
                        "until_ms": hindrance.until_ms,
                        "remedy": hindrance.remedy,
                    }
                    for hindrance in each.hindrances
                ],
                "is_repeated": each.is_repeated,
            }
            for name, each in proposal.topics.items()
        },
    }
