"""Scalar syntax to typed expressions: names, operators, literals.

Function calls are in `calls.py`, subqueries in `nested.py`; both meet here through `Scalars`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from slackwater.algebra import functions
from slackwater.algebra.expr import FALSE, TRUE, Expr, Literal
from slackwater.errors import SqlError
from slackwater.sql import calls, literals, nested
from slackwater.sql.parse import span
from slackwater.sql.scope import Scope, unknown_column
from slackwater.types import BOOLEAN, NULL, STRING, DataType, Struct, parse_type

if TYPE_CHECKING:
    from slackwater.sql.context import Context

PLACE = re.compile(r"__arg(\d+)__")


@dataclass
class Scalars:
    """Binds scalar syntax over the names of one query block."""

    context: Context
    scope: Scope
    clause: str  # what to call this place in messages
    aggregates: bool = False
    windows: bool = False
    aliases: dict[str, Expr] = field(default_factory=dict)  # select-list names visible here
    aliases_first: bool = False
    variables: frozenset[str] = frozenset()  # lambda parameters in force

    def bind(self, node: exp.Expr) -> Expr:
        """The typed expression of a syntax node; errors know their place."""
        try:
            handler = _HANDLERS.get(type(node))
            if handler is not None:
                return handler(self, node)
            return calls.spark_syntax(self, node)
        except SqlError as error:
            if error.start is None:
                error.start, error.end = span(node)
            raise

    def bind_all(self, nodes: Any) -> list[Expr]:
        """Several syntax nodes, in order."""
        return [self.bind(n) for n in nodes]

    def predicate(self, node: exp.Expr) -> Expr:
        """A syntax node that must be boolean."""
        bound = self.bind(node)
        if bound.type == NULL:
            return Literal(BOOLEAN, True, None)
        if bound.type != BOOLEAN:
            start, end = span(node)
            raise SqlError(
                f"{self.clause} must be BOOLEAN, not {bound.type.sql}.",
                code="WRONG_TYPES",
                hint="Compare the value with something, as in 'x <> 0'.",
                start=start,
                end=end,
            )
        return bound

    def operator(self, name: str, *args: Expr) -> Expr:
        """A call of a function or operator over bound arguments, on either engine."""
        made = functions.call(name, list(args))
        return made if made is not None else calls.spark_operator(self, name, list(args))

    def column(self, parts: list[str]) -> Expr:
        """What a dotted name means here."""
        low = parts[0].lower()
        if len(parts) == 1 and self.aliases_first and low in self.aliases:
            return self.aliases[low]
        found = self.scope.resolve_here(parts)
        if found is None and low in self.aliases:
            return self._fields(self.aliases[low], parts[1:])
        resolved = self.scope.resolve(parts)
        if resolved is None:
            raise unknown_column(parts, self.scope)
        return self._fields(*resolved)

    def _fields(self, value: Expr, rest: list[str]) -> Expr:
        for name in rest:
            value = self._field(value, name)
        return value

    def _field(self, value: Expr, name: str) -> Expr:
        if isinstance(value.type, Struct) and not any(
            f.name.lower() == name.lower() for f in value.type.fields
        ):
            known = ", ".join(f.name for f in value.type.fields)
            raise SqlError(
                f"Field '{name}' is not in the struct.",
                code="UNKNOWN_COLUMN",
                hint=f"Existing: {known}.",
            )
        return self.context.spark_call("{0}.`" + name.replace("`", "``") + "`", [value])


def dotted(node: exp.Expr) -> list[str]:
    """The parts of a column name as written."""
    if isinstance(node, exp.Dot):
        return [*dotted(node.this), node.expression.name]
    if isinstance(node, exp.Column):
        return [part.name for part in node.parts]
    return [node.name]


def _column(s: Scalars, node: exp.Expr) -> Expr:
    return s.column(dotted(node))


def _dot(s: Scalars, node: exp.Expr) -> Expr:
    if all(isinstance(n, exp.Dot | exp.Column | exp.Identifier) for n in node.walk()):
        return s.column(dotted(node))
    return s._field(s.bind(node.this), node.expression.name)


def _paren(s: Scalars, node: exp.Expr) -> Expr:
    return s.bind(node.this)


def _boolean(s: Scalars, node: exp.Expr) -> Expr:
    return TRUE if node.this else FALSE


def _cast(s: Scalars, node: exp.Expr) -> Expr:
    if isinstance(node.this, exp.Literal) and type(node) is exp.Cast:
        made = literals.typed(node.this, data_type(node.args["to"]))
        if made is not None and node.this.is_string and "written" in node.meta:
            made = made.replace(nullable=True)  # as Spark takes every cast of a string
        if made is not None:
            return made
    return cast(s, s.bind(node.this), data_type(node.args["to"]), isinstance(node, exp.TryCast))


def cast(s: Scalars, arg: Expr, to: DataType, safe: bool = False) -> Expr:
    """CAST or TRY_CAST on either engine."""
    made = functions.cast(arg, to, safe=safe)
    if made is not None:
        return made
    word = "TRY_CAST" if safe else "CAST"
    return s.context.spark_call(word + "({0} AS " + to.sql + ")", [arg])


def data_type(node: exp.Expr) -> DataType:
    """The type that a syntax node names."""
    return parse_type(node.sql(dialect="spark"))


def _unary(name: str) -> Callable[[Scalars, exp.Expr], Expr]:
    return lambda s, node: s.operator(name, s.bind(node.this))


def _binary(name: str) -> Callable[[Scalars, exp.Expr], Expr]:
    def bind(s: Scalars, node: exp.Expr) -> Expr:
        return s.operator(name, s.bind(node.this), s.bind(node.expression))

    return bind


def _chain(kind: type[exp.Expr], name: str) -> Callable[[Scalars, exp.Expr], Expr]:
    """AND and OR: long chains without deep recursion."""

    def bind(s: Scalars, node: exp.Expr) -> Expr:
        parts = []
        while isinstance(node, kind):
            parts.append(node.expression)
            node = node.this
        result = s.bind(node)
        for part in reversed(parts):
            result = s.operator(name, result, s.bind(part))
        return result

    return bind


def _comparison(name: str) -> Callable[[Scalars, exp.Expr], Expr]:
    def bind(s: Scalars, node: exp.Expr) -> Expr:
        quantified = node.expression
        if isinstance(quantified, exp.Any | exp.All):
            return nested.quantified(s, name, node.this, quantified)
        return s.operator(name, s.bind(node.this), s.bind(node.expression))

    return bind


def _neg(s: Scalars, node: exp.Expr) -> Expr:
    if isinstance(node.this, exp.Literal) and not node.this.is_string:
        return literals.number("-" + node.this.this)
    if isinstance(node.this, exp.Interval):
        return literals.interval(node.this, -1) or calls.spark_syntax(s, node)
    return s.operator("neg", s.bind(node.this))


def _null_safe_neq(s: Scalars, node: exp.Expr) -> Expr:
    return s.operator("not", s.operator("<=>", s.bind(node.this), s.bind(node.expression)))


def _is(s: Scalars, node: exp.Expr) -> Expr:
    arg, what = s.bind(node.this), node.expression
    if isinstance(what, exp.Null):
        return s.operator("is_null", arg)
    if isinstance(what, exp.Boolean):
        return s.operator("is_true" if what.this else "is_false", arg)
    return calls.spark_syntax(s, node)


def _not(s: Scalars, node: exp.Expr) -> Expr:
    inner = node.this
    while isinstance(inner, exp.Paren):
        inner = inner.this
    if isinstance(inner, exp.Is) and isinstance(inner.expression, exp.Null):
        return s.operator("is_not_null", s.bind(inner.this))
    if isinstance(inner, exp.Is) and isinstance(inner.expression, exp.Boolean):
        name = "is_not_true" if inner.expression.this else "is_not_false"
        return s.operator(name, s.bind(inner.this))
    return s.operator("not", s.bind(inner))


def _between(s: Scalars, node: exp.Expr) -> Expr:
    arg = s.bind(node.this)
    low = s.operator(">=", arg, s.bind(node.args["low"]))
    return s.operator("and", low, s.operator("<=", arg, s.bind(node.args["high"])))


def _in(s: Scalars, node: exp.Expr) -> Expr:
    if node.args.get("query") is not None:
        return nested.in_query(s, node)
    if node.args.get("unnest") is not None or not node.expressions:
        return calls.spark_syntax(s, node)
    return s.operator("in", s.bind(node.this), *s.bind_all(node.expressions))


def _like(name: str) -> Callable[[Scalars, exp.Expr], Expr]:
    def one(s: Scalars, node: exp.Expr, pattern: exp.Expr, escape: exp.Expr | None) -> Expr:
        args = [s.bind(node.this), s.bind(pattern)]
        made = s.operator(name, *args, *([s.bind(escape)] if escape is not None else []))
        return s.operator("not", made) if node.args.get("negate") else made

    def bind(s: Scalars, node: exp.Expr, escape: exp.Expr | None = None) -> Expr:
        pattern = node.expression
        if isinstance(pattern, exp.Any | exp.All):
            word = "or" if isinstance(pattern, exp.Any) else "and"
            inner = pattern.this.unnest()
            parts = inner.expressions if isinstance(inner, exp.Tuple) else [inner]
            bound = [one(s, node, p, None) for p in parts]
            result = bound[0]
            for part in bound[1:]:
                result = s.operator(word, result, part)
            return result
        return one(s, node, pattern, escape)

    return bind


def _escape(s: Scalars, node: exp.Expr) -> Expr:
    name = "ilike" if isinstance(node.this, exp.ILike) else "like"
    handler: Any = _like(name)
    bound: Expr = handler(s, node.this, node.expression)
    return bound


def _case(s: Scalars, node: exp.Expr) -> Expr:
    base = s.bind(node.this) if node.this is not None else None
    args: list[Expr] = []
    for branch in node.args["ifs"]:
        if base is None:
            args.append(s.predicate(branch.this))
        else:
            args.append(s.operator("=", base, s.bind(branch.this)))
        args.append(s.bind(branch.args["true"]))
    default = node.args.get("default")
    args.append(s.bind(default) if default is not None else Literal(NULL, True, None))
    return s.operator("case", *args)


def _if(s: Scalars, node: exp.Expr) -> Expr:
    default = node.args.get("false")
    otherwise = s.bind(default) if default is not None else Literal(NULL, True, None)
    return s.operator("if", s.predicate(node.this), s.bind(node.args["true"]), otherwise)


def _concat(s: Scalars, node: exp.Expr) -> Expr:
    """Adjacent string literals are one string."""
    if all(isinstance(e, exp.Literal) and e.is_string for e in node.expressions):
        return Literal(STRING, False, "".join(e.this for e in node.expressions))
    return s.operator("concat", *s.bind_all(node.expressions))


def _extract(s: Scalars, node: exp.Expr) -> Expr:
    field_name = node.this.name.lower()
    name = calls.DATE_PARTS.get(field_name)
    arg = s.bind(node.expression)
    made = functions.call(name, [arg]) if name else None
    if made is not None:
        return made
    return s.context.spark_call(f"EXTRACT({field_name.upper()} FROM {{0}})", [arg])


def _substring(s: Scalars, node: exp.Expr) -> Expr:
    parts = [node.this, node.args.get("start"), node.args.get("length")]
    return s.operator("substring", *s.bind_all(p for p in parts if p is not None))


def _trim(s: Scalars, node: exp.Expr) -> Expr:
    position = (node.args.get("position") or "BOTH").upper()
    name = {"LEADING": "ltrim", "TRAILING": "rtrim"}.get(position, "trim")
    if node.expression is None:
        return s.operator(name, s.bind(node.this))
    made = functions.call(name, [s.bind(node.expression), s.bind(node.this)])
    if made is not None:
        return made
    args = [s.bind(node.expression), s.bind(node.this)]
    return s.context.spark_call(f"TRIM({position} {{0}} FROM {{1}})", args)


def _position(s: Scalars, node: exp.Expr) -> Expr:
    args = [s.bind(node.args["substr"]), s.bind(node.this)]
    start = node.args.get("position")
    return s.operator("locate", *args, *([s.bind(start)] if start is not None else []))


def _literal(s: Scalars, node: exp.Expr) -> Expr:
    return Literal(STRING, False, node.this) if node.is_string else literals.number(node.this)


def _null(s: Scalars, node: exp.Expr) -> Expr:
    return Literal(NULL, True, None)


def _interval(s: Scalars, node: exp.Expr) -> Expr:
    return literals.interval(node) or calls.spark_syntax(s, node)


def _raw(s: Scalars, node: exp.Expr) -> Expr:
    return Literal(STRING, False, str(node.this))


def _clock(name: str) -> Callable[[Scalars, exp.Expr], Expr]:
    return lambda s, node: s.context.clock(name)


def _any(s: Scalars, node: exp.Expr) -> Expr:
    """any(x) outside a comparison is the aggregate."""
    call = exp.Anonymous(this="any", expressions=[node.this.unnest()])
    return calls.function(s, call)


def _star(s: Scalars, node: exp.Expr) -> Expr:
    raise SqlError(
        f"'*' cannot stand in {s.clause} here.",
        code="SYNTAX_ERROR",
        hint="Name the columns.",
    )


_HANDLERS: dict[type[exp.Expr], Callable[[Scalars, Any], Expr]] = {
    exp.Column: _column,
    exp.Identifier: _column,
    exp.Dot: _dot,
    exp.Paren: _paren,
    exp.Literal: _literal,
    exp.Boolean: _boolean,
    exp.Null: _null,
    exp.Interval: _interval,
    exp.Cast: _cast,
    exp.TryCast: _cast,
    exp.Neg: _neg,
    exp.Not: _not,
    exp.And: _chain(exp.And, "and"),
    exp.Or: _chain(exp.Or, "or"),
    exp.Add: _binary("+"),
    exp.Sub: _binary("-"),
    exp.Mul: _binary("*"),
    exp.Div: _binary("/"),
    exp.IntDiv: _binary("div"),
    exp.Mod: _binary("%"),
    exp.DPipe: _binary("||"),
    exp.BitwiseAnd: _binary("&"),
    exp.BitwiseOr: _binary("|"),
    exp.BitwiseXor: _binary("^"),
    exp.BitwiseNot: _unary("~"),
    exp.BitwiseLeftShift: _binary("<<"),
    exp.BitwiseRightShift: _binary(">>"),
    exp.EQ: _comparison("="),
    exp.NEQ: _comparison("!="),
    exp.GT: _comparison(">"),
    exp.GTE: _comparison(">="),
    exp.LT: _comparison("<"),
    exp.LTE: _comparison("<="),
    exp.NullSafeEQ: _binary("<=>"),
    exp.NullSafeNEQ: _null_safe_neq,
    exp.Is: _is,
    exp.Between: _between,
    exp.In: _in,
    exp.Like: _like("like"),
    exp.ILike: _like("ilike"),
    exp.Escape: _escape,
    exp.Case: _case,
    exp.If: _if,
    exp.Concat: _concat,
    exp.Extract: _extract,
    exp.Substring: _substring,
    exp.Trim: _trim,
    exp.StrPosition: _position,
    exp.Star: _star,
    exp.Any: _any,
    exp.RawString: _raw,
    exp.CurrentDate: _clock("current_date"),
    exp.CurrentTimestamp: _clock("current_timestamp"),
    exp.Anonymous: calls.function,
    exp.Filter: calls.filtered,
    exp.WithinGroup: calls.within_group,
    exp.Window: calls.windowed,
    exp.Subquery: nested.scalar_query,
    exp.Select: nested.scalar_query,
    exp.Exists: nested.exists,
}
