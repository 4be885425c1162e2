"""As much of PromQL as the alert rules and the board use, over one scrape. The grammar is Prometheus's own.

It stands in for Prometheus, which no index of Python's packages has. Where ``promtool`` is installed, ``test_rules``
lets it judge the same rules over the same scrapes. What is not known here is refused, never guessed.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import promql_parser as promql
from prometheus_client.parser import text_string_to_metric_families

Labels = frozenset[tuple[str, str]]
Vector = dict[Labels, float]
"""Series without their name, and their numbers."""

_ARITHMETIC: Mapping[str, Callable[[float, float], float]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
}
_COMPARISON: Mapping[str, Callable[[float, float], bool]] = {
    ">": operator.gt,
    ">=": operator.ge,
    "<": operator.lt,
    "<=": operator.le,
    "==": operator.eq,
    "!=": operator.ne,
}
_TOGETHER: Mapping[str, Callable[[list[float]], float]] = {"sum": sum, "max": max, "min": min, "count": len}


@dataclass(frozen=True)
class Scrape:
    """What a scrape has brought, by name of the series."""

    by_name: Mapping[str, Vector]
    at_s: float
    earlier: Scrape | None = None
    """One that any range of time reaches back to."""

    @classmethod
    def of(cls, text: str, at_s: float, earlier: Scrape | None = None) -> Scrape:
        by_name: dict[str, Vector] = {}
        for family in text_string_to_metric_families(text):
            for sample in family.samples:
                by_name.setdefault(sample.name, {})[frozenset(sample.labels.items())] = sample.value
        return cls(by_name, at_s, earlier)

    def value(self, expression: str) -> Vector | float:
        """The result of an expression; a number if it is one."""
        return self._value(promql.parse(expression))

    def found(self, expression: str) -> Vector:
        """The result of an expression that gives series."""
        found = self.value(expression)
        assert isinstance(found, dict), f"{expression} gives a number, not series"
        return found

    def _value(self, expression: Any) -> Vector | float:
        match expression:
            case promql.NumberLiteral():
                return float(expression.val)
            case promql.ParenExpr():
                return self._value(expression.expr)
            case promql.VectorSelector():
                return self._selected(expression)
            case promql.AggregateExpr():
                return self._together(expression)
            case promql.Call():
                return self._called(expression)
            case promql.BinaryExpr():
                return _binary(expression, self._value(expression.lhs), self._value(expression.rhs))
        raise NotImplementedError(type(expression).__name__)

    def _selected(self, selector: Any) -> Vector:
        if selector.offset or selector.at:
            raise NotImplementedError("a selector with an offset")
        series = self.by_name.get(selector.name, {})
        return {labels: number for labels, number in series.items() if _matches(selector.matchers.matchers, labels)}

    def _over_time(self, matrix: Any) -> Vector:
        """No test has two numbers of one series."""
        selector, from_s = matrix.vector_selector, self.at_s - matrix.range.total_seconds()
        before = self.earlier._selected(selector) if self.earlier and self.earlier.at_s >= from_s else {}
        return before | self._selected(selector)

    def _together(self, aggregate: Any) -> Vector:
        name = str(aggregate.op)
        groups: dict[Labels, list[float]] = {}
        inner = self._value(aggregate.expr)
        assert isinstance(inner, dict)
        by = _labels_of(aggregate.modifier)
        for labels, number in inner.items():
            groups.setdefault(by(labels), []).append(number)
        return {labels: float(_TOGETHER[name](numbers)) for labels, numbers in groups.items()}

    def _called(self, call: Any) -> Vector | float:
        if call.func.name == "time":
            return self.at_s
        if call.func.name == "max_over_time":
            return self._over_time(call.args[0])
        [argument] = [self._value(each) for each in call.args]
        assert isinstance(argument, dict)
        if call.func.name == "absent":
            return {} if argument else {frozenset(): 1.0}
        if call.func.name == "abs":
            return {labels: abs(number) for labels, number in argument.items()}
        raise NotImplementedError(call.func.name)


def _matches(matchers: Iterable[Any], labels: Labels) -> bool:
    of_series = dict(labels)
    for each in matchers:
        value = of_series.get(each.name, "")
        is_equal = value == each.value
        match each.op:
            case promql.MatchOp.Equal:
                holds = is_equal
            case promql.MatchOp.NotEqual:
                holds = not is_equal
            case promql.MatchOp.Re:
                holds = bool(re.fullmatch(each.value, value))
            case _:
                holds = not re.fullmatch(each.value, value)
        if not holds:
            return False
    return True


def _labels_of(modifier: Any) -> Callable[[Labels], Labels]:
    if modifier is None:
        return lambda _labels: frozenset()
    names = set(modifier.labels)
    if modifier.type == promql.AggModifierType.By:
        return lambda labels: frozenset(each for each in labels if each[0] in names)
    return lambda labels: frozenset(each for each in labels if each[0] not in names)


def _binary(expression: Any, left: Vector | float, right: Vector | float) -> Vector | float:
    name = str(expression.op)
    modifier = expression.modifier
    if name in {"and", "or", "unless"}:
        assert isinstance(left, dict)
        assert isinstance(right, dict)
        return _set(name, left, right, modifier.matching if modifier else None)
    if modifier and (modifier.matching or modifier.return_bool or modifier.group_labels):
        raise NotImplementedError("on, ignoring, bool, group_left")
    if name in _ARITHMETIC:
        return _arithmetic(_ARITHMETIC[name], left, right)
    holds = _COMPARISON[name]
    assert isinstance(left, dict)
    if isinstance(right, dict):
        return {labels: number for labels, number in left.items() if labels in right and holds(number, right[labels])}
    return {labels: number for labels, number in left.items() if holds(number, right)}


def _set(name: str, left: Vector, right: Vector, matching: Any) -> Vector:
    if name == "or":
        return right | left
    if matching and matching.type != promql.LabelModifierType.Include:
        raise NotImplementedError("ignoring")
    names = set(matching.labels) if matching else None

    def matched(labels: Labels) -> Labels:
        return labels if names is None else frozenset(each for each in labels if each[0] in names)

    there = set(map(matched, right))
    return {labels: number for labels, number in left.items() if (matched(labels) in there) == (name == "and")}


def _arithmetic(do: Callable[[float, float], float], left: Vector | float, right: Vector | float) -> Vector | float:
    if isinstance(left, dict) and isinstance(right, dict):
        return {labels: do(number, right[labels]) for labels, number in left.items() if labels in right}
    if isinstance(left, dict):
        assert not isinstance(right, dict)
        return {labels: do(number, right) for labels, number in left.items()}
    if isinstance(right, dict):
        return {labels: do(left, number) for labels, number in right.items()}
    return do(left, right)
