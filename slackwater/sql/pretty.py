"""Names for output columns without an alias, as Spark prints them: `sum(price)`, `(a + b)`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from sqlglot import exp

from slackwater.algebra.coercion import is_interval
from slackwater.sql import pretty_calls, pretty_literals
from slackwater.types import DATE, TIMESTAMP, TIMESTAMP_NTZ, DataType, is_integral

_INFIX: dict[type[exp.Expr], str] = {
    exp.Add: "+",
    exp.Sub: "-",
    exp.Mul: "*",
    exp.Div: "/",
    exp.Mod: "%",
    exp.IntDiv: "div",
    exp.EQ: "=",
    exp.GT: ">",
    exp.GTE: ">=",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.NullSafeEQ: "<=>",
    exp.And: "AND",
    exp.Or: "OR",
    exp.BitwiseAnd: "&",
    exp.BitwiseOr: "|",
    exp.BitwiseXor: "^",
    exp.BitwiseLeftShift: "<<",
    exp.BitwiseRightShift: ">>",
}
_MOMENTS = (DATE, TIMESTAMP, TIMESTAMP_NTZ)


def output_name(node: exp.Expr, type_of: Callable[[exp.Expr], DataType] | None = None) -> str:
    """The name of a select-list item. `type_of` tells date arithmetic from plain arithmetic."""
    if isinstance(node, exp.Alias):
        return str(node.alias)
    inner = node
    while isinstance(inner, exp.Paren | exp.Cast):
        inner = inner.this
        if isinstance(inner, exp.Column) and len(inner.parts) < 3:
            return str(inner.name)  # a cast column keeps its name
        if isinstance(inner, exp.Cast):
            break
    return Pretty(type_of).text(node, top=True)


@dataclass(frozen=True)
class Pretty:
    """One naming, with the types it may need."""

    type_of: Callable[[exp.Expr], DataType] | None = None

    def text(self, node: exp.Expr, top: bool = False) -> str:
        """An expression the way Spark names it."""
        if (named := _FORMS.get(type(node))) is not None:
            return named(self, node)
        if type(node) in _INFIX:
            return self._infix(node)
        match node:
            case exp.Column():
                return self._column(node, top)
            case exp.Dot():
                return str(node.expression.name) if top and _is_path(node) else self._dot(node)
            case exp.Identifier():
                return "namedlambdavariable()"
            case exp.Literal():
                return str(node.this) if node.is_string else pretty_literals.number(node.this)
        return str(node.sql(dialect="spark"))

    def texts(self, nodes: list[exp.Expr]) -> list[str]:
        """Several expressions."""
        return [self.text(n) for n in nodes]

    def _column(self, node: exp.Column, top: bool) -> str:
        """Struct fields are columns to the parser; only the binder knows, so types tell."""
        if top or len(node.parts) == 1 or self.type_of is None or not self._is_field(node):
            return str(node.name)
        return f"{node.parts[-2].name}.{node.name}"

    def _is_field(self, node: exp.Expr) -> bool:
        assert self.type_of is not None
        return bool(getattr(self.type_of, "is_field", lambda _: False)(node))

    def _dot(self, node: exp.Expr) -> str:
        return f"{self.text(node.this)}.{node.expression.name}"

    def _infix(self, node: exp.Expr) -> str:
        left, right = self.text(node.this), self.text(node.expression)
        sign = _INFIX[type(node)]
        if isinstance(node, exp.Add | exp.Sub) and self.type_of is not None:
            types = self.type_of(node.this), self.type_of(node.expression)
            if any(t in _MOMENTS for t in types):
                return _moved(sign, left, right, *types)
        return f"({left} {sign} {right})"


def _moved(sign: str, left: str, right: str, a: DataType, b: DataType) -> str:
    """Date arithmetic: a number of days, an interval, or the time between two moments."""
    if b in _MOMENTS and a not in _MOMENTS:
        left, right, a, b = right, left, b, a
    if a == DATE and is_integral(b):
        return f"date_{'add' if sign == '+' else 'sub'}({left}, {right})"
    if a == DATE and b.json == "interval day":
        days = f"extractansiintervaldays({right})"
        return f"date_add({left}, {days if sign == '+' else f'(- {days})'})"
    if is_interval(b):
        return f"{left} {sign} {right}"
    return f"({left} {sign} {right})"


def _is_path(node: exp.Expr) -> bool:
    return all(isinstance(n, exp.Dot | exp.Column | exp.Identifier) for n in node.walk())


# -- forms with syntax of their own


def _cast(p: Pretty, node: exp.Expr) -> str:
    if isinstance(node.this, exp.Literal) and "written" not in node.meta:
        return pretty_literals.typed(node)
    word = "TRY_CAST" if isinstance(node, exp.TryCast) else "CAST"
    kind = node.args["to"].sql(dialect="spark").replace(", ", ",")
    return f"{word}({p.text(node.this)} AS {kind})"


def _not(p: Pretty, node: exp.Expr) -> str:
    inner = node.this
    if isinstance(inner, exp.Is) and isinstance(inner.expression, exp.Null):
        return f"({p.text(inner.this)} IS NOT NULL)"
    return f"(NOT {p.text(inner)})"


def _neg(p: Pretty, node: exp.Expr) -> str:
    if isinstance(node.this, exp.Literal) and not node.this.is_string:
        return f"-{p.text(node.this)}"
    return f"(- {p.text(node.this)})"


def _is(p: Pretty, node: exp.Expr) -> str:
    if isinstance(node.expression, exp.Boolean):
        return f"({p.text(node.this)} <=> {p.text(node.expression)})"
    return f"({p.text(node.this)} IS {p.text(node.expression)})"


def _not_equal(p: Pretty, node: exp.Expr) -> str:
    sign = "<=>" if isinstance(node, exp.NullSafeNEQ) else "="
    return f"(NOT ({p.text(node.this)} {sign} {p.text(node.expression)}))"


def _in(p: Pretty, node: exp.Expr) -> str:
    left = node.this.unnest()
    if isinstance(left, exp.Tuple):
        pairs = ", ".join(f"'{e.name}', {p.text(e)}" for e in left.expressions)
        shown = f"named_struct({pairs})"
    else:
        shown = p.text(left)
    if node.args.get("query") is not None:
        return f"({shown} IN (listquery()))"
    return f"({shown} IN ({', '.join(p.texts(node.expressions))}))"


def _like(p: Pretty, node: exp.Expr, escape: str = "") -> str:
    negated = bool(node.args.get("negate"))
    subject, pattern = p.text(node.this), node.expression
    if isinstance(pattern, exp.Any | exp.All):
        word = "any" if isinstance(pattern, exp.Any) else "all"
        return f"{'not' if negated else ''}like{word}({subject})"
    shown = p.text(pattern)
    text = f"{subject} LIKE {shown}{escape}"
    if isinstance(node, exp.ILike):
        text = f"ilike({subject}, {shown})"
    return f"(NOT {text})" if negated else text


def _escape(p: Pretty, node: exp.Expr) -> str:
    return _like(p, node.this, f" ESCAPE '{node.expression.name}'")


def _between(p: Pretty, node: exp.Expr) -> str:
    return f"between({', '.join(p.texts([node.this, node.args['low'], node.args['high']]))})"


def _case(p: Pretty, node: exp.Expr) -> str:
    base = f"({p.text(node.this)} = " if node.this is not None else ""
    whens = " ".join(
        f"WHEN {base}{p.text(i.this)}{')' if base else ''} THEN {p.text(i.args['true'])}"
        for i in node.args["ifs"]
    )
    default = node.args.get("default")
    end = f" ELSE {p.text(default)}" if default is not None else ""
    return f"CASE {whens}{end} END"


def _if(p: Pretty, node: exp.Expr) -> str:
    default = node.args.get("false")
    otherwise = p.text(default) if default is not None else "NULL"
    return f"(IF({p.text(node.this)}, {p.text(node.args['true'])}, {otherwise}))"


def _concat(p: Pretty, node: exp.Expr) -> str:
    if all(isinstance(e, exp.Literal) and e.is_string for e in node.expressions):
        return "".join(e.this for e in node.expressions)
    return f"concat({', '.join(p.texts(node.expressions))})"


def _double_pipe(p: Pretty, node: exp.Expr) -> str:
    return f"concat({p.text(node.this)}, {p.text(node.expression)})"


def _trim(p: Pretty, node: exp.Expr) -> str:
    position = (node.args.get("position") or "BOTH").upper()
    if node.expression is None:
        name = {"LEADING": "ltrim", "TRAILING": "rtrim"}.get(position, "trim")
        return f"{name}({p.text(node.this)})"
    return f"TRIM({position} {p.text(node.expression)} FROM {p.text(node.this)})"


def _substring(p: Pretty, node: exp.Expr) -> str:
    parts = [node.this, node.args.get("start"), node.args.get("length")]
    shown = [p.text(part) for part in parts if part is not None]
    return f"substring({', '.join(pretty_calls.with_defaults('substring', shown))})"


def _position(p: Pretty, node: exp.Expr) -> str:
    start = node.args.get("position")
    parts = [node.args["substr"], node.this, *([start] if start is not None else [])]
    return f"locate({', '.join(pretty_calls.with_defaults('locate', p.texts(parts)))})"


def _bracket(p: Pretty, node: exp.Expr) -> str:
    return f"{p.text(node.this)}[{p.text(node.expressions[0])}]"


def _lambda(p: Pretty, node: exp.Expr) -> str:
    parameters = ", ".join("namedlambdavariable()" for _ in node.expressions)
    return f"lambdafunction({Pretty().text(node.this)}, {parameters})"


def _transform(p: Pretty, node: exp.Expr) -> str:
    return f"transform({p.text(node.this)}, {p.text(node.expression)})"


def _call(p: Pretty, node: exp.Expr) -> str:
    return pretty_calls.call(node, p.texts)


def _any(p: Pretty, node: exp.Expr) -> str:
    return f"any({p.text(node.this)})"


def _filter(p: Pretty, node: exp.Expr) -> str:
    return f"{p.text(node.this)} FILTER (WHERE {p.text(node.expression.this)})"


def _window(p: Pretty, node: exp.Expr) -> str:
    return pretty_calls.window(node, p.text)


def _ignore_nulls(p: Pretty, node: exp.Expr) -> str:
    text = p.text(node.this)
    for name in ("first", "last"):
        text = text.replace(f"{name}_value(", f"{name}(", 1)
    return text


_FORMS: dict[type[exp.Expr], Callable[[Pretty, Any], str]] = {
    exp.Paren: lambda p, n: p.text(n.this),
    exp.Boolean: lambda p, n: "true" if n.this else "false",
    exp.Null: lambda p, n: "NULL",
    exp.HexString: lambda p, n: f"X'{int(n.this):X}'" if n.this.isdigit() else n.sql("spark"),
    exp.Interval: lambda p, n: pretty_literals.interval(n),
    exp.CurrentDate: lambda p, n: "current_date()",
    exp.CurrentTimestamp: lambda p, n: "current_timestamp()",
    exp.Subquery: lambda p, n: "scalarsubquery()",
    exp.Select: lambda p, n: "scalarsubquery()",
    exp.Exists: lambda p, n: "exists()",
    exp.RegexpLike: lambda p, n: f"RLIKE({p.text(n.this)}, {p.text(n.expression)})",
    exp.BitwiseNot: lambda p, n: f"~{p.text(n.this)}",
    exp.RawString: lambda p, n: str(n.this),
    exp.Extract: lambda p, n: f"extract({n.meta['part']} FROM {p.text(n.expression)})",
    exp.Cast: _cast,
    exp.TryCast: _cast,
    exp.Not: _not,
    exp.Neg: _neg,
    exp.Is: _is,
    exp.NEQ: _not_equal,
    exp.NullSafeNEQ: _not_equal,
    exp.In: _in,
    exp.Like: _like,
    exp.ILike: _like,
    exp.Escape: _escape,
    exp.Between: _between,
    exp.Case: _case,
    exp.If: _if,
    exp.Concat: _concat,
    exp.DPipe: _double_pipe,
    exp.Trim: _trim,
    exp.Substring: _substring,
    exp.StrPosition: _position,
    exp.Bracket: _bracket,
    exp.Lambda: _lambda,
    exp.Transform: _transform,
    exp.Anonymous: _call,
    exp.Any: _any,
    exp.Filter: _filter,
    exp.Window: _window,
    exp.IgnoreNulls: _ignore_nulls,
    exp.RespectNulls: lambda p, n: p.text(n.this),
}
