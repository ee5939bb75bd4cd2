"""Function calls in column names: Spark adds default arguments and spells some names its way."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sqlglot import exp

_UPPER = frozenset(
    """asin acos atan atan2 sinh cosh tanh sin tan cos cot sec csc expm1 log1p signum hypot cbrt
    sqrt log10 log2 log power asinh acosh atanh degrees radians exp e pi rlike regexp regexp_like
    rank dense_rank percent_rank""".split()
)
_CASTS = frozenset(
    """boolean tinyint smallint int bigint float double decimal string date timestamp
    binary""".split()
)
_RENAMED = {"curdate": "current_date", "dateadd": "date_add"}
_TIME = "yyyy-MM-dd HH:mm:ss"
_DEFAULTS: dict[tuple[str, int], tuple[str, ...]] = {
    ("substr", 2): ("2147483647",),
    ("substring", 2): ("2147483647",),
    ("round", 1): ("0",),
    ("bround", 1): ("0",),
    ("regexp_replace", 3): ("1",),
    ("regexp_extract", 2): ("1",),
    ("split", 2): ("-1",),
    ("sort_array", 1): ("true",),
    ("locate", 2): ("1",),
    ("position", 2): ("1",),
    ("months_between", 2): ("true",),
    ("unix_timestamp", 0): ("current_timestamp()", _TIME),
    ("unix_timestamp", 1): (_TIME,),
    ("from_unixtime", 1): (_TIME,),
    ("lpad", 2): (" ",),
    ("rpad", 2): (" ",),
    ("percentile", 2): ("1",),
    ("approx_percentile", 2): ("10000",),
    ("percentile_approx", 2): ("10000",),
    ("lag", 1): ("1", "NULL"),
    ("lag", 2): ("NULL",),
    ("lead", 1): ("1", "NULL"),
    ("lead", 2): ("NULL",),
}
_UNITS = {"dateadd": "timestampadd", "date_add": "timestampadd", "timestampadd": "timestampadd"}
_UNITS |= {"datediff": "timestampdiff", "date_diff": "timestampdiff"}
_SYNTAX: dict[tuple[str, int], str] = {
    ("isnull", 1): "({0} IS NULL)",
    ("isnotnull", 1): "({0} IS NOT NULL)",
    ("positive", 1): "(+ {0})",
    ("div", 2): "({0} div {1})",
    ("like", 2): "{0} LIKE {1}",
    ("datepart", 2): "datepart({0} FROM {1})",
    ("ceil", 1): "CEIL({0})",
    ("floor", 1): "FLOOR({0})",
    ("log", 1): "LOG(E(), {0})",
    ("trim", 2): "TRIM(BOTH {0} FROM {1})",
    ("ltrim", 2): "TRIM(LEADING {0} FROM {1})",
    ("rtrim", 2): "TRIM(TRAILING {0} FROM {1})",
    ("first", 2): "first({0})",
    ("last", 2): "last({0})",
    ("first_value", 2): "first({0})",
    ("last_value", 2): "last({0})",
    ("any_value", 2): "any_value({0})",
}

Texts = Callable[[list[exp.Expr]], list[str]]


def with_defaults(name: str, args: list[str]) -> list[str]:
    """The arguments with those that Spark fills in."""
    return [*args, *_DEFAULTS.get((name, len(args)), ())]


def call(node: exp.Expr, texts: Texts) -> str:
    """name(args), the way Spark names it."""
    name, parts = node.name.lower(), node.expressions
    if parts and isinstance(parts[0], exp.Distinct):
        return f"{name}(DISTINCT {', '.join(texts(parts[0].expressions))})"
    if name == "count" and len(parts) == 1 and isinstance(parts[0], exp.Star):
        return "count(1)"
    if name == "struct":
        return f"struct({', '.join(_member(part, texts) for part in parts)})"
    args = texts(parts)
    if name in _CASTS and len(args) == 1:
        return args[0]
    if (form := _SYNTAX.get((name, len(args)))) is not None:
        return form.format(*args)
    if name in _UNITS and len(args) == 3:
        return f"{_UNITS[name]}({parts[0].name}, {args[1]}, {args[2]})"
    shown = name.upper() if name in _UPPER else _RENAMED.get(name, name)
    return f"{shown}({', '.join(with_defaults(name, args))})"


def _member(part: exp.Expr, texts: Texts) -> str:
    if isinstance(part, exp.Alias):
        return f"{texts([part.this])[0]} AS {part.alias}"
    return texts([part])[0]


# -- windows

_NUMBERING = frozenset("row_number rank dense_rank percent_rank ntile".split())


def window(node: exp.Expr, text: Callable[[exp.Expr], str]) -> str:
    """f(…) OVER (…) with the frame that Spark fills in."""
    parts = []
    if node.args.get("partition_by"):
        parts.append(f"PARTITION BY {', '.join(text(p) for p in node.args['partition_by'])}")
    order = node.args.get("order")
    if order is not None:
        parts.append(f"ORDER BY {', '.join(_key(o, text) for o in order.expressions)}")
    parts.append(_frame(node, order is not None, text))
    return f"{text(node.this)} OVER ({' '.join(parts)})"


def _key(node: exp.Expr, text: Callable[[exp.Expr], str]) -> str:
    direction = "DESC" if node.args.get("desc") else "ASC"
    return f"{text(node.this)} {direction} NULLS {'FIRST' if node.args['nulls_first'] else 'LAST'}"


def _frame(node: exp.Expr, ordered: bool, text: Callable[[exp.Expr], str]) -> str:
    spec, name = node.args.get("spec"), _function(node)
    if spec is not None:
        start = _bound(spec.args.get("start"), spec.args.get("start_side"), text)
        end = _bound(spec.args.get("end") or "CURRENT ROW", spec.args.get("end_side"), text)
        return f"{(spec.args.get('kind') or 'RANGE').upper()} BETWEEN {start} AND {end}"
    if name in ("lag", "lead"):
        return _offset_frame(name, _arguments(node), text)
    if name in _NUMBERING:
        return "ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW"
    if ordered:
        return "RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW"
    return "ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING"


def _offset_frame(name: str, args: Sequence[exp.Expr], text: Callable[[exp.Expr], str]) -> str:
    offset = text(args[1]) if len(args) > 1 else "1"
    bound = f"{'-' if name == 'lag' else ''}{offset} FOLLOWING"
    return f"ROWS BETWEEN {bound} AND {bound}"


def _bound(value: exp.Expr | str | None, side: str | None, text: Callable[[exp.Expr], str]) -> str:
    if isinstance(value, exp.Expr):
        return f"{text(value)} {(side or '').upper()}"
    return "CURRENT ROW" if value == "CURRENT ROW" else f"UNBOUNDED {(side or '').upper()}"


def _target(node: exp.Expr) -> exp.Expr:
    target: exp.Expr = node.this
    while isinstance(target, exp.IgnoreNulls | exp.RespectNulls | exp.Filter):
        target = target.this
    return target


def _function(node: exp.Expr) -> str:
    return str(_target(node).name).lower()


def _arguments(node: exp.Expr) -> Sequence[exp.Expr]:
    return list(_target(node).expressions)
