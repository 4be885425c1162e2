"""The asset that shows what was asked to be erased, with the check of its deadlines.

A run that erases, verifies, cleans or purges topics with open erasures looks how far they are, and materializes it: a
table of requests, and numbers that are plotted. Whoever materializes it by hand looks at all. Between the runs the
sensor observes it, by what it knows without reading a file: numbers, and a table of topics. No key is in it, and no
hash of one.

The check fails while an erasure is overdue. A topic that can't be read is not looked at: then it warns. What is known
of its erasures, by its table or an earlier look, counts all the same. What Dagster shows of it, and who has told that,
is read back in ``shown_deadline``.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from textwrap import shorten

import dagster as dg

from keptlog.dagster.assets.checks import as_evaluation, bring_forward
from keptlog.dagster.assets.lost_topics import FOLDERS, lost_requests
from keptlog.dagster.assets.markdown import (
    SHOWN_AT_ONCE,
    as_markdown,
    name_cell,
    time_cell,
    wide_table,
    without_folders,
    without_paths,
)
from keptlog.dagster.assets.mount import Mount, MountCall, Run
from keptlog.dagster.assets.names import AssetKeys
from keptlog.dagster.assets.numbers import Metadata
from keptlog.dagster.assets.outage import telling_outages
from keptlog.dagster.assets.shown_deadline import DEADLINE_CHECK, HOME, TOLD_BY, UNLOOKED, Teller, shown_deadline
from keptlog.dagster.resources.log_store import LogStoreResource
from keptlog.errors import KeptlogError, first_line
from keptlog.log.erasures.open_erasures import ErasureNeed, OpenErasures
from keptlog.log.segment import Log
from keptlog.log.told.erasure_step import next_by_now
from keptlog.log.told.metrics import Tally, metrics_of
from keptlog.log.words.counted import counted, first_lines
from keptlog.log.words.iso_time import iso_time
from keptlog.log.words.named import unnamed
from keptlog.passes.erasures.erasure_request import NEVER_MS, ErasureList, ErasureRow
from keptlog.passes.observer import Overview, observe
from keptlog.table.waiting.reaching import apart, parted

ROWS = 200
TOPICS = 50
"""Of topics that a run has nothing else to do with, so many are read for the table: those with the first deadlines."""
_TOLD = 5
_REASONS = 50
"""Of the topics at which somebody could not look, so many are told with the reason, and the others by name alone."""
_GLANCE_CHARACTERS = SHOWN_AT_ONCE - 50
_GLANCE_BLOCKED = 200
_COLUMNS = ("topic", "state", "deadline (UTC)", "next state (UTC)", "blocked by", "keys", "request")
"""The request is the widest, and is whole: `verify_erasures` takes it as it stands."""
_TOPIC_COLUMNS = ("topic", "open", "overdue", "deadline (UTC)", "needs")
_NEEDS = "needs "
"""So it begins what they need, but below the head that says so."""


@dataclass(frozen=True)
class ErasureNews:
    """What is known of the erasures of a home at one time."""

    seen: Overview
    rows: Sequence[ErasureRow] = ()
    """Of some topics."""
    failed: Mapping[str, KeptlogError] = field(default_factory=dict)
    """Topic to why it is not known how far its erasures are."""
    unread: int = 0
    """How many topics with erasures have no rows here."""
    looked: AbstractSet[str] = frozenset()
    """The topics at which somebody has looked, or could not."""

    @property
    def unseen(self) -> dict[str, str]:
        """Topics that were not looked at, and why."""
        others = {**self.unjudged, **self.seen.unreadable}
        return self.unlooked | {name: unnamed(name, error) for name, error in others.items()}

    @property
    def unjudged(self) -> dict[str, KeptlogError]:
        """Topics with overdue erasures of which nobody can tell what these need, and why."""
        return parted(self.overdue_needs)[1]

    @cached_property
    def overdue_needs(self) -> dict[str, str | KeptlogError | None]:
        """Topic to what its overdue erasures need, as its logs are by now; null if what is stored; or why nobody knows.

        It stands beside the alarm, so one that can't be told must not keep any alarm from being given.
        """
        still_open, now_ms = self.seen.open_erasures.items(), self.seen.now_ms
        return {topic: self._by_now(topic) for topic, each in still_open if each.is_overdue(now_ms)}

    def told_needs(self, topic: str) -> str:
        """What a topic's open erasures need, overdue or not: told by the check and all tables alike."""
        by_now = self.overdue_needs[topic] if topic in self.overdue_needs else self._by_now(topic)
        stored = ", ".join(needy.need for needy in self.seen.open_erasures[topic].needs) or "a look"
        return by_now if isinstance(by_now, str) else f"{_NEEDS}{stored}"

    @cached_property
    def first_needs(self) -> dict[str, str]:
        """The same by topic, of those that the table of topics has: the first deadlines, so the overdue ones of all.

        No text has a running clock in it: each stands until the clock, or a commit, brings something else on.
        """
        still_open = self.seen.open_erasures
        first = sorted(still_open, key=lambda topic: _urgency(topic, still_open[topic]))[:ROWS]
        return {topic: self.told_needs(topic) for topic in first}

    def _by_now(self, topic: str) -> str | KeptlogError | None:
        found, logs = self.seen.open_erasures[topic], self._logs.get(topic, ())
        return apart(topic, partial(next_by_now, found, self.seen.now_ms, logs))

    @cached_property
    def _logs(self) -> Mapping[str, Sequence[Log]]:
        logs: dict[str, list[Log]] = defaultdict(list)
        for log in self.seen.logs if self.seen.open_erasures else ():
            logs[log.topic_partition.topic].append(log)
        return logs

    @property
    def unlooked(self) -> dict[str, str]:
        """Of these, those of which a look has failed that was to see how far their erasures are, and none has since."""
        return {name: unnamed(name, error) for name, error in self.failed.items()}


def erasures_asset(mount: Mount) -> dg.AssetsDefinition:
    """The asset; materialized by hand it looks how far all erasures are."""

    @dg.asset(
        key=mount.keys.erasures,
        group_name=mount.group,
        required_resource_keys=mount.needs("log_store", "clock"),
        description="What was asked to be erased, how far it is, and by when it is to be done. No key is shown.",
        check_specs=[
            dg.AssetCheckSpec(
                DEADLINE_CHECK, asset=mount.keys.erasures, description="No erasure is open behind its deadline."
            )
        ],
    )
    def erasures(
        context: dg.AssetExecutionContext,
    ) -> dg.MaterializeResult:  # type: ignore[type-arg]  # Dagster reads the annotation
        run = MountCall(mount, context)
        now_ms = run.now_ms()
        with telling_outages(context, now_ms, run.log_store):
            news = look_at_erasures(run.log_store, now_ms, [FOLDERS])
        result = _result_of_run(run, news)
        bring_forward(run, result)
        return dg.MaterializeResult(metadata=request_numbers(news), check_results=[result])

    return erasures


def look_at_erasures(
    log_store: LogStoreResource, now_ms: int, first: Collection[str] = (), known: ErasureList | None = None
) -> ErasureNews:
    """Look how far erasures are, and remember it: those of all topics ``first``, and of others as many as are shown.

    ``known`` was found out just now, of topics that need not be looked at again.

    Raises:
        StorageUnavailable: the catalog can't be reached.
    """
    seen = observe(log_store.store, now_ms=now_ms)
    known = known or lost_requests(log_store, first)
    done = {row.topic for row in known.rows} | known.failed.keys()
    has_some = {topic: each for topic, each in seen.known_erasures.items() if each.count or each.ended_count}
    touched = [topic for topic in dict.fromkeys(first) if topic in has_some]
    others = sorted(has_some.keys() - {*touched, *done}, key=lambda topic: _urgency(topic, has_some[topic]))
    looked = [topic for topic in touched if topic not in done] + others[:TOPICS]
    found = log_store.eraser().list(looked, now_ms=now_ms) if looked else ErasureList((), {})
    # What was found out just now has moved the summaries.
    seen = observe(log_store.store, now_ms=now_ms)
    return ErasureNews(
        seen,
        (*known.rows, *found.rows),
        {**known.failed, **found.failed},
        unread=max(len(others) - TOPICS, 0),
        looked=({*done, *looked} | ({FOLDERS} & {*first})) - ({FOLDERS} & known.failed.keys()),  # not if not listed
    )


def tell_erasures(run: Run, news: ErasureNews, more: Metadata | None = None) -> None:
    """Let a run materialize the asset."""
    numbers = {**(more or {}), **request_numbers(news)}
    run.context.log_event(dg.AssetMaterialization(run.keys.erasures, metadata=numbers))
    result = _result_of_run(run, news)
    run.context.log_event(as_evaluation(result))  # type: ignore[arg-type]  # it takes them, undeclared
    bring_forward(run, result)


def _result_of_run(run: Run, news: ErasureNews) -> dg.AssetCheckResult:
    """What a run tells of the check: it has looked at some topics, and at the others nobody has since."""
    teller = Teller.of(run)
    shown = shown_deadline(run, teller)
    still = shown.still_failed(news.seen, news.looked) if shown else {}
    return deadline_result(run.keys, replace(news, failed={**still, **news.failed}), teller)


def bring_erasures_on(run: Run, look: Callable[[], ErasureNews | None], more: Metadata | None = None) -> None:
    """Let a run look how far erasures are once it has done its work. What fails here is no failure of the run."""
    context = run.context
    try:
        news = look()
        if news is None:
            return
        for topic, why in news.failed.items():
            context.log.warning("%s: not known how far its erasures are: %s", topic, first_line(why))
        tell_erasures(run, news, more)
    except KeptlogError as error:
        context.log.warning("not known how far erasures are: %s", first_line(error))
    except Exception as error:  # noqa: BLE001  # the work is done; the text may be of anything, and have a key in it
        context.log.warning("not known how far erasures are: stopped at a %s; report it", type(error).__name__)


def erasures_observation(keys: AssetKeys, news: ErasureNews) -> dg.AssetObservation:
    """The asset as far as it is known without reading a file."""
    rows = [_topic_row(news, topic, needs) for topic, needs in news.first_needs.items()]
    more = len(news.seen.open_erasures) - len(rows)
    table = _markdown(_TOPIC_COLUMNS, rows, f"{counted(more, 'more topic')}" if more else "")
    return dg.AssetObservation(keys.erasures, metadata={"topics": table, **_numbers(news)})


def request_numbers(news: ErasureNews) -> Metadata:
    """The table of requests, and numbers over all of them."""
    now_ms = news.seen.now_ms
    rows = sorted(news.rows, key=lambda row: row.urgency(now_ms))
    left = [counted(len(rows) - ROWS, "more row")] if len(rows) > ROWS else []
    left += [counted(news.unread, "more topic")] if news.unread else []
    unseen = news.unseen.keys() - {row.topic for row in rows}
    left += [f"{counted(len(unseen), 'topic')} not looked at"] if unseen else []
    more = f"and {' and '.join(left)}: see `keptlog erasure list`" if left else ""
    glance = _at_a_glance(news, rows)
    urgent: Metadata = {"most_urgent": dg.MetadataValue.md(glance)} if glance else {}
    if rows:
        table = wide_table(_COLUMNS, [_request_row(row, now_ms) for row in rows[:ROWS]], more)
    else:
        table = f"none\n\n{more}" if more else "none"
    return {**urgent, "requests": dg.MetadataValue.md(table), **_numbers(news)}


def deadline_result(keys: AssetKeys, news: ErasureNews, teller: Teller) -> dg.AssetCheckResult:
    """Whether an erasure is overdue, as far as topics could be looked at."""
    overdue = overdue_lines(news)
    unseen = [f"{name}: {why}" for name, why in news.unseen.items()]
    if news.seen.behind:
        unseen.append(f"{counted(news.seen.behind, 'topic')} still to be read")
    told = [*first_lines(overdue, _TOLD), *first_lines([f"not looked at: {line}" for line in unseen], _TOLD)]
    deadlines = [
        each.earliest_deadline_ms for each in news.seen.open_erasures.values() if each.earliest_deadline_ms is not None
    ]
    return dg.AssetCheckResult(
        asset_key=keys.erasures,
        check_name=DEADLINE_CHECK,
        passed=not overdue and not unseen,
        severity=dg.AssetCheckSeverity.ERROR if overdue else dg.AssetCheckSeverity.WARN,
        description=as_markdown(without_folders("; ".join(told))) or None,
        metadata={
            **_metrics(news),
            "not_looked_at": len(unseen),
            TOLD_BY: teller.names[0],
            **({HOME: teller.home} if teller.home else {}),
            **({UNLOOKED: _with_reasons(news.unlooked)} if news.failed else {}),
            **({"first_deadline": iso_time(min(deadlines))} if deadlines else {}),
        },
    )


def _with_reasons(unlooked: Mapping[str, str]) -> dict[str, str]:
    return {topic: why if place < _REASONS else "" for place, (topic, why) in enumerate(sorted(unlooked.items()))}


def overdue_lines(news: ErasureNews) -> list[str]:
    """One for each topic with overdue erasures, the latest first: since when, what they need, and what blocks them."""
    now_ms = news.seen.now_ms
    overdue = {topic: news.seen.open_erasures[topic] for topic in news.overdue_needs}
    blocked_by: dict[str, list[str]] = defaultdict(list)
    for row in news.rows if overdue else ():
        blocked_by[row.topic] += row.blocked
    lines = []
    for topic, each in sorted(overdue.items(), key=lambda pair: _urgency(*pair)):
        deadline = iso_time(each.earliest_deadline_ms or 0)
        blocked = blocked_by.get(topic, [])
        if topic in news.seen.unreadable:
            blocked = [f"it can't be read: {unnamed(topic, news.seen.unreadable[topic])}"]
        why = f"; {blocked[0]}" if blocked else ""
        count = counted(each.overdue_count(now_ms), "erasure")
        lines.append(f"{topic}: {count} overdue, the first since {deadline} ({news.told_needs(topic)}){why}")
    return lines


def _numbers(news: ErasureNews) -> Metadata:
    needs = dict.fromkeys((need.value for need in ErasureNeed), 0)
    for each in news.seen.open_erasures.values():
        for needy in each.needs:
            needs[needy.need] = needs.get(needy.need, 0) + needy.count
    return {**_metrics(news), **{f"needing_{need}": count for need, count in needs.items()}}


def _metrics(news: ErasureNews) -> Metadata:
    metrics = metrics_of(Tally(), news.seen.open_erasures.values(), news.seen.now_ms)
    return {name: value or 0 for name, value in metrics.to_dict().items() if name.startswith("erasure")}


def _request_row(row: ErasureRow, now_ms: int) -> tuple[str, ...]:
    erasure = row.erasure
    upcoming = row.next_told(now_ms, partial(time_cell, otherwise="")) or ""
    deadline = time_cell(erasure.deadline_ms, "none")
    overdue = " **overdue**" if erasure.is_overdue(now_ms) else ""
    blocked = as_markdown(without_paths("; ".join(row.blocked)))
    keys = str(len(erasure.key_hashes))
    return as_markdown(row.topic), erasure.state.value, deadline + overdue, upcoming, blocked, keys, as_markdown(row.id)


def _at_a_glance(news: ErasureNews, rows: Sequence[ErasureRow]) -> str:
    """As many of the open erasures, the first deadline first, as a page shows without a click, and how many more.

    ``rows`` come by their urgency. Requests of which the same is told have one line, also where those of another topic
    stand between them: of one run, deadlines differ by milliseconds. So has a topic where its requests are not known: a
    deadline counts, whatever keeps them from being looked at.
    """
    now_ms = news.seen.now_ms
    together: dict[tuple[str, str], list[ErasureRow]] = {}
    for row in rows:
        if row.erasure.is_open:
            together.setdefault((row.topic, _glance(row, now_ms)), []).append(row)
    found: list[tuple[tuple[int, str], int, Callable[[], str]]] = []
    for (_, line), alike in together.items():
        of_all = f" ({counted(len(alike), 'request')})" if len(alike) > 1 else ""
        found.append((alike[0].urgency(now_ms)[1:3], len(alike), partial(str, f"{line}{of_all}")))
    has_rows = {row.topic for row in rows}
    for topic, each in news.seen.open_erasures.items():
        if topic not in has_rows:
            found.append((_urgency(topic, each), each.count, partial(_topic_glance, news, topic, each)))
    found.sort(key=lambda one: one[0])
    lines: list[str] = []
    for place, (_, _, told) in enumerate(found):
        line = told()
        if lines and len("\n".join([*lines, line])) > _GLANCE_CHARACTERS:
            lines.append(f"* and {sum(count for _, count, _ in found[place:])} more")
            break
        lines.append(line)
    return "\n".join(lines)


def _topic_glance(news: ErasureNews, topic: str, each: OpenErasures) -> str:
    """What is known of the erasures of a topic whose requests are not."""
    overdue = each.overdue_count(news.seen.now_ms)
    told = [counted(each.count, "erasure"), _deadline(each.earliest_deadline_ms)]
    if overdue:
        told[1] = f"{overdue if overdue < each.count else ''} **overdue**, {told[1]}".strip()
    why = news.unseen.get(topic)
    told.append(f"not looked at: {_shortened(why)}" if why else as_markdown(news.told_needs(topic)))
    return f"* {as_markdown(name_cell(topic))}: {', '.join(told)}"


def _deadline(time_ms: int | None) -> str:
    return f"deadline {time_cell(time_ms, 'none')}{' UTC' if time_ms is not None else ''}"


def _shortened(reason: str) -> str:
    return as_markdown(shorten(without_paths(reason), _GLANCE_BLOCKED, placeholder=" …"))


def _glance(row: ErasureRow, now_ms: int) -> str:
    erasure = row.erasure
    deadline = _deadline(erasure.deadline_ms)
    told = [erasure.state.value, f"**overdue**, {deadline}" if erasure.is_overdue(now_ms) else deadline]
    upcoming = row.next_told(now_ms, lambda time_ms: f"{time_cell(time_ms, '')} UTC")
    if upcoming:
        told.append(f"next: {as_markdown(upcoming)}")
    if row.blocked:
        told.append(f"blocked by: {_shortened('; '.join(row.blocked))}")
    return f"* {as_markdown(name_cell(row.topic))}: {', '.join(told)}"


def _topic_row(news: ErasureNews, topic: str, needs: str) -> tuple[str, ...]:
    each = news.seen.open_erasures[topic]
    overdue, deadline = each.overdue_count(news.seen.now_ms), time_cell(each.earliest_deadline_ms, "none")
    return as_markdown(topic), str(each.count), str(overdue), deadline, as_markdown(needs.removeprefix(_NEEDS))


def _urgency(topic: str, each: OpenErasures) -> tuple[int, str]:
    return NEVER_MS if each.earliest_deadline_ms is None else each.earliest_deadline_ms, topic


def _markdown(columns: Sequence[str], rows: Sequence[Sequence[str]], more: str) -> dg.MarkdownMetadataValue:
    if not rows:
        return dg.MetadataValue.md("none")
    lines = [columns, ["---"] * len(columns), *rows]
    table = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    return dg.MetadataValue.md(f"{table}\n\nand {more}" if more else table)
