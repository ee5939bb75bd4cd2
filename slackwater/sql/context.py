"""What binding needs to know from outside: the catalog, Spark's analyzer, the clock."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from sqlglot import exp

from slackwater.algebra import functions
from slackwater.algebra.expr import AggCall, Expr, Literal, SparkCall, WindowCall
from slackwater.algebra.relation import Relation
from slackwater.errors import SqlError, UserError, nearest
from slackwater.sql.names import AGGREGATES, CLOCKS, ORDER_SENSITIVE_AGGREGATES, WINDOW_FUNCTIONS
from slackwater.sql.scope import Scope
from slackwater.sql.subquery import Inner, MatchQuery, Param, ScalarQuery
from slackwater.types import BIGINT, DATE, STRING, TIMESTAMP, TIMESTAMP_NTZ, DataType, TypeOracle

KNOWN_FUNCTIONS = AGGREGATES | WINDOW_FUNCTIONS | CLOCKS | functions.SCALAR_NAMES
"""Functions to suggest where a name is misspelt."""

Reasons = dict[str, str]
"""Reason codes met while binding, with what they were met at."""


def _readable(error: UserError) -> SqlError:
    """What Spark's analyzer says about a call, in the user's terms."""
    if error.code == "UNRESOLVED_ROUTINE" and (found := re.search(r"`(\w+)`", error.message)):
        return SqlError(
            f"Function '{found[1]}' does not exist.",
            code="UNKNOWN_FUNCTION",
            hint=nearest(found[1], sorted(KNOWN_FUNCTIONS)),
        )
    message = re.sub(r"\ba(\d+)\b", lambda m: f"argument {int(m[1]) + 1}", error.message)
    message = message.split(" Please, refer to")[0]
    return SqlError(message, code=error.code, hint=error.hint)


class Unsupported(Exception):
    """The algebra cannot express this; the block becomes `Opaque` with the reason code."""

    def __init__(self, reason: str, what: str) -> None:
        self.reason = reason
        self.what = what
        super().__init__(f"{reason}: {what}")


@dataclass(frozen=True)
class Context:
    """The surroundings of a query that is being bound."""

    lookup: Callable[[str], Relation | None]
    known_names: Callable[[], list[str]]
    oracle: TypeOracle
    bind_query: Callable[[Context, exp.Expr, Scope | None], Relation]
    now: datetime = field(default_factory=lambda: datetime.now(UTC))
    ctes: Mapping[str, Relation] = field(default_factory=dict)
    windows: Mapping[str, exp.Expr] = field(default_factory=dict)
    reasons: Reasons = field(default_factory=dict)

    def query(self, tree: exp.Expr, parent: Scope | None) -> Relation:
        """The relation of a query nested in this one."""
        return self.bind_query(self, tree, parent)

    def with_cte(self, name: str, relation: Relation) -> Context:
        """Inside, `name` means `relation`."""
        return replace(self, ctes={**self.ctes, name.lower(): relation})

    def table(self, name: str) -> Relation:
        """The relation a table name stands for."""
        if name.lower() in self.ctes:
            return self.ctes[name.lower()]
        found = self.lookup(name)
        if found is None:
            raise SqlError(
                f"Table or view '{name}' does not exist.",
                code="UNKNOWN_TABLE",
                hint=nearest(name, [*self.ctes, *self.known_names()])
                or "There are no tables yet; create one with CREATE TABLE.",
            )
        return found

    def clock(self, name: str) -> Expr:
        """The time of this run: the same wherever it is asked, and on either engine."""
        self.reasons.setdefault("NOT_DETERMINISTIC", f"{name}()")
        if name in ("current_date", "curdate"):
            return Literal(DATE, False, self.now.date())
        if name == "unix_timestamp":
            return Literal(BIGINT, False, int(self.now.timestamp()))
        if name == "localtimestamp":
            return Literal(TIMESTAMP_NTZ, False, self.now.replace(tzinfo=None))
        if name == "current_timezone":
            return Literal(STRING, False, "UTC")
        return Literal(TIMESTAMP, False, self.now)

    def unsupported(self, reason: str, what: str) -> Unsupported:
        """What to raise where the algebra ends."""
        return Unsupported(reason, what)

    def spark_call(self, text: str, args: list[Expr], deterministic: bool = True) -> Expr:
        """An expression only Spark computes, typed by its analyzer."""
        type_, nullable, sure = self._describe(text, args)
        if not (sure and deterministic):
            self.reasons.setdefault("NOT_DETERMINISTIC", text)
        return SparkCall(type_, nullable, text, tuple(args), sure and deterministic)

    def spark_aggregate(
        self, name: str, args: list[Expr], distinct: bool, where: Expr | None
    ) -> Expr:
        """An aggregate only Spark computes."""
        places = ", ".join(f"{{{i}}}" for i in range(len(args)))
        text = f"{name}({'DISTINCT ' if distinct else ''}{places})"
        made = self.spark_aggregate_text(name, text, args)
        return made.replace(distinct=distinct, where=where)

    def spark_aggregate_text(self, name: str, text: str, args: list[Expr]) -> AggCall:
        """An aggregate in syntax of its own."""
        type_, nullable, _ = self._describe(text, args)
        if name.lower() in ORDER_SENSITIVE_AGGREGATES:
            self.reasons.setdefault("NOT_DETERMINISTIC", f"{name}() depends on the order of rows")
        return AggCall(type_, nullable, name.lower(), tuple(args), text=text)

    def spark_window(self, call: WindowCall) -> Expr:
        """A window function only Spark computes."""
        places = ", ".join(f"{{{i}}}" for i in range(len(call.args)))
        text = f"{call.name}({places or ('*' if call.name == 'count' else '')})"
        order = call.order_by and ", ".join(
            f"{{{len(call.args) + i}}}" for i in range(len(call.order_by))
        )
        over = f"{text} OVER (ORDER BY {order or '1'})"
        args = [*call.args, *(k.arg for k in call.order_by)]
        type_, nullable, _ = self._describe(over, args)
        return call.replace(type=type_, nullable=nullable, text=text)

    def _describe(self, text: str, args: list[Expr]) -> tuple[DataType, bool, bool]:
        if any(
            isinstance(n, ScalarQuery | MatchQuery | Inner | Param) for a in args for n in a.walk()
        ):
            raise self.unsupported("UNSUPPORTED_EXPRESSION", "a subquery inside a Spark function")
        try:
            return self.oracle.describe(text, args)
        except SqlError:
            raise
        except UserError as error:
            raise _readable(error) from error

    def named_window(self, node: exp.Expr) -> exp.Expr:
        """A window with the parts of the named window it refers to."""
        name = node.args.get("alias")
        if name is None:
            return node
        spec = self.windows.get(name.name.lower())
        if spec is None:
            raise SqlError(
                f"Window '{name.name}' is not defined.",
                code="UNKNOWN_WINDOW",
                hint=nearest(name.name, self.windows) or "Define it in a WINDOW clause.",
            )
        merged = node.copy()
        for part in ("partition_by", "order", "spec"):
            if not merged.args.get(part) and spec.args.get(part):
                merged.set(part, spec.args[part])
        merged.set("alias", None)
        return merged
