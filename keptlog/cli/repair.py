"""``keptlog repair``: after a rollback or a commit of another program, back to what was acknowledged, or on from there.

What happened and what would be done is told before it is done; what can't be undone is asked about.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

import click

from keptlog.cli.arguments import topic_argument
from keptlog.cli.asking import dry_run_option, require_consent
from keptlog.cli.opening import home_with
from keptlog.cli.output import EXIT_FAILED, clock_ms, json_option, print_json
from keptlog.home import new_id
from keptlog.log.words.counted import counted

if TYPE_CHECKING:
    from keptlog.log.segment import Segment
    from keptlog.passes.check import CheckResult
    from keptlog.passes.repair import Repairer, RepairProposal, Span

_SHOWN = 20


@click.command(short_help="Mend a topic that another program has changed.")
@topic_argument
@click.option("--adopt", is_flag=True, help="Take the table as it is now, and give up what is no longer there.")
@dry_run_option
@click.option("--yes", is_flag=True, help="Do not ask before --adopt. Required there without a terminal.")
@json_option
def repair(topic: str, *, adopt: bool, dry_run: bool, yes: bool, as_json: bool) -> None:
    """Bring state and files of TOPIC together again, after a rollback or a commit of another program.

    Until then nothing is written to such a topic. Without --adopt it gets back all records that were acknowledged, and
    what other programs did is undone. With --adopt it stays as it is now: acknowledged records that are gone are lost,
    no offset is given twice, and the next clean judges everything again. Both are one commit; it can be killed, and run
    again. Where no other program did anything, --adopt gives up watermarks whose file is gone or damaged, and nothing
    else. What the topic notes beside its logs, of its last clean for example, is written anew where it can't be read.
    """
    home, now_ms = home_with(topic), clock_ms()
    home.store.describe_topic(topic)
    if dry_run and (notes := home.repairer.damaged_notes_first(topic)):
        _tell_notes(topic, notes, (), is_dry=True, as_json=as_json)
        return
    mended = () if dry_run else home.repairer.mend_snapshot_id(topic)
    proposal = home.repairer.propose(topic, is_adoption=adopt, now_ms=now_ms)
    if proposal is None:
        mend = None if dry_run else partial(home.repairer.mend_notes, topic, new_id(), now_ms=now_ms)
        _mend_notes(home.repairer, topic, mended, mend, as_json=as_json)
        return
    # What an adoption costs nobody can find out once it is done: it is told before, whole, whatever comes then.
    is_last_look = adopt and not dry_run
    if is_last_look or not as_json:
        _print_proposal(proposal, mended, is_whole=is_last_look, err=as_json)
    checks: dict[str, list[CheckResult]] = {}
    if not dry_run:
        if adopt and not yes:
            require_consent(f"adopt topic {topic} as it is now, for good?")
        checks = home.repairer.repair(proposal, new_id(), now_ms=now_ms)
    failed = [(name, each) for name, results in checks.items() for each in results if not each.passed]
    broken = [f"{name} {each.name}: {each.description}" for name, each in failed]
    if as_json:
        print_json(_row(proposal) | {"is_repaired": not dry_run, "notes": list(mended), "broken": broken})
    elif not dry_run:
        click.echo(f"{topic} is repaired and verified" if not broken else f"{topic} is repaired, but not sound:")
        for line in broken:
            click.echo(f"  {line}")
    if broken:
        sys.exit(EXIT_FAILED)


def _print_proposal(proposal: RepairProposal, mended: Sequence[str], *, is_whole: bool, err: bool) -> None:
    for name in mended:
        click.echo(f"{proposal.plan.topic}: written anew: property {name}", err=err)
    for line in _lines(proposal, is_whole=is_whole):
        click.echo(line, err=err)


def _mend_notes(
    repairer: Repairer, topic: str, mended: Sequence[str], mend: Callable[[], Sequence[str]] | None, *, as_json: bool
) -> None:
    """Where state and files belong together, what stands beside them may be damaged; null mends nothing."""
    if mend is None and (notes := repairer.damaged_notes(topic)):
        _tell_notes(topic, notes, (), is_dry=True, as_json=as_json)
        return
    notes = (*mended, *mend()) if mend else ()
    damage = repairer.damage(topic)
    if notes:
        _tell_notes(topic, notes, damage, is_dry=False, as_json=as_json)
    else:
        _tell_nothing(topic, damage, as_json=as_json)
    if damage:
        sys.exit(EXIT_FAILED)


def _tell_notes(topic: str, notes: Sequence[str], damage: Sequence[str], *, is_dry: bool, as_json: bool) -> None:
    if as_json:
        print_json(_nothing_happened(topic, damage) | {"is_repaired": not is_dry, "notes": list(notes)})
        return
    click.echo(f"{topic}: another program has changed what is noted beside its logs")
    for name in notes:
        click.echo(f"  {'to be written' if is_dry else 'written'} anew: property {name}")
    for line in damage:
        click.echo(f"  {line}")


def _nothing_happened(topic: str, damage: Sequence[str]) -> dict[str, object]:
    return {"topic": topic, "is_repaired": False, "happened": None, "notes": [], "broken": list(damage)}


def _tell_nothing(topic: str, damage: Sequence[str], *, as_json: bool) -> None:
    if as_json:
        print_json(_nothing_happened(topic, damage))
    else:
        nothing = f"{topic}: no other program has changed its logs, so there is nothing to repair"
        click.echo(f"{nothing}, but:" if damage else f"{nothing}; its files are there (keptlog verify reads them)")
        for line in damage:
            click.echo(f"  {line}")


def _lines(proposal: RepairProposal, *, is_whole: bool) -> list[str]:
    plan = proposal.plan
    lines = [f"{plan.topic}: {plan.happened}"]
    if plan.is_adoption:
        lines += _adoption_lines(proposal, is_whole=is_whole)
    else:
        lines += [f"  undone: {each}" for each in plan.foreign]
        lines.append(f"  files that come back: {len(plan.came)}, that go: {len(plan.went)}")
        if plan.deletes:
            these = counted(len(plan.deletes), "delete file")
            verb = "goes" if len(plan.deletes) == 1 else "go"
            lines.append(f"  {these} of other programs {verb}, so the records come back that they hide from readers")
        lines.append("  no acknowledged record is lost")
        if plan.state:
            lines.append("  an older keptlog has cleaned since: the next clean judges everything again")
    return lines


def _adoption_lines(proposal: RepairProposal, *, is_whole: bool) -> list[str]:
    plan = proposal.plan
    lines = [f"  adopted: {each}" for each in plan.foreign]
    for name, segments in proposal.foreign_segments.items():
        there = _shown([(segment.base_offset, segment.last_offset) for segment in segments], is_whole=is_whole)
        lines.append(f"  {name}: offsets {there} are as other files have them, whatever was changed in those")
    lines += [
        f"  column {name}: {counted(number, 'value')} in adopted files, and no topic has that column: readers of the "
        "table see them until a clean writes the records again, and then they are LOST; keep a copy of what you need"
        for name, number in proposal.other_columns.items()
    ]
    for name, spans in proposal.lost.items():
        number = sum(last - first + 1 for first, last in spans)
        lines.append(f"  {name}: LOST, {counted(number, 'acknowledged offset')}: {_shown(spans, is_whole=is_whole)}")
    if not proposal.is_exact:
        lines.append("  that may not be exact: the snapshot that the offsets belong to is gone, or files of it")
    elif not proposal.lost:
        lines.append("  no acknowledged offset is lost")
    lines += [
        f"  {plan.topic}-{number}: its watermarks are lost; late records may bring deleted keys back"
        for number in plan.forgotten_watermarks
    ]
    if plan.is_own:
        return lines
    lines += _erasure_lines(proposal)
    lines.append("  the next clean judges everything again")
    return lines


def _erasure_lines(proposal: RepairProposal) -> list[str]:
    ended = proposal.ended_erasures
    if not isinstance(ended, tuple):
        return [f"  whether it brings records back that were erased is not known: {ended}"]
    lines = [
        f"  request {erasure_id} is verified, and adopted files begin below its bound: if they have records of its "
        "keys, these are back; ask for them anew with another id (keptlog erase)"
        for erasure_id in ended
    ]
    undone = proposal.undone_erasures if isinstance(proposal.undone_erasures, tuple) else ()
    lines += [
        f"  request {erasure_id} is open, and what it did is undone, so records of its keys stay: ask for them anew "
        "with another id (keptlog erase); it ends when they are gone"
        for erasure_id in undone
    ]
    return [*lines, "  of requests that ended more than 30 days ago only receipts tell (keptlog receipt list)"]


def _shown(spans: Sequence[Span], *, is_whole: bool) -> str:
    shown = spans if is_whole else spans[:_SHOWN]
    texts = [str(first) if first == last else f"{first} to {last}" for first, last in shown]
    more = len(spans) - len(shown)
    return ", ".join(texts) + (f" and {more} more (all with --json)" if more > 0 else "")


def _row(proposal: RepairProposal) -> dict[str, object]:
    plan = proposal.plan
    return {
        "topic": plan.topic,
        "is_adoption": plan.is_adoption,
        "happened": plan.happened,
        "foreign": list(plan.foreign),
        "belongs_to_snapshot": plan.recorded_id,
        "current_snapshot": plan.current_id,
        "files_back": list(plan.came),
        "files_gone": list(plan.went),
        "delete_files_gone": list(plan.deletes),
        "lost_offsets": {str(name): [list(span) for span in spans] for name, spans in proposal.lost.items()},
        "is_lost_exact": proposal.is_exact,
        "foreign_segments": {
            str(name): [_segment(segment) for segment in segments]
            for name, segments in proposal.foreign_segments.items()
        },
        "other_columns": dict(proposal.other_columns),
        "ended_erasures": list(proposal.ended_erasures) if isinstance(proposal.ended_erasures, tuple) else None,
        "undone_erasures": list(proposal.undone_erasures) if isinstance(proposal.undone_erasures, tuple) else None,
    }


def _segment(segment: Segment) -> dict[str, object]:
    return {
        "path": segment.path,
        "base_offset": segment.base_offset,
        "last_offset": segment.last_offset,
        "records": segment.record_count,
        "bytes": segment.size_bytes,
    }
