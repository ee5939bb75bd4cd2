"""The reference text of a query: what Spark is asked when it is asked for the truth.

A LIMIT among equals, `row_number` over ties and the like leave the result to chance. The binder
breaks such ties by all remaining output columns, NULLs first; here the same rule is applied to
the text, so that Spark's answer to it is the one right answer. Every answer to the reference
text is a possible answer to the original one.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

from sqlglot import exp
from sqlglot.generators.spark import SparkGenerator

from slackwater.sql.names import AGGREGATES, ORDER_SENSITIVE_WINDOWS
from slackwater.sql.parse import Dialect, parse
from slackwater.sql.stars import Columns, is_star, output_names, star

_FIRST_OR_LAST = frozenset("first_value last_value nth_value first last any_value".split())


class _Verbatim(Dialect):
    """Writes queries as they were read: QUALIFY and the like are not rewritten."""

    class Generator(SparkGenerator):
        TRANSFORMS: ClassVar[dict[Any, Any]] = {**SparkGenerator.TRANSFORMS}
        del TRANSFORMS[exp.Select]


def tie_broken(sql: str, columns: Columns | None = None) -> str:
    """The same query with every tie broken; the very text where nothing is left to chance.

    `columns` gives the column names of a table; it is asked only where `*` hides them.

    >>> tie_broken("SELECT a, b FROM t ORDER BY b DESC LIMIT 3")
    'SELECT a, b FROM t ORDER BY b DESC, 1 LIMIT 3'
    >>> tie_broken("SELECT a, row_number() OVER (ORDER BY b) AS n FROM t")
    'SELECT a, row_number() OVER (ORDER BY b, a) AS n FROM t'
    """
    tree = parse(sql)
    changes = [_break_ties(query, columns) for query in list(tree.find_all(exp.Query))]
    if not any(changes):
        return sql
    return tree.sql(dialect=_Verbatim, normalize_functions=False)


def _break_ties(query: exp.Query, columns: Columns | None) -> bool:
    changed = _order_totally(query, columns) if _is_cut(query) else False
    if isinstance(query, exp.Select):
        changed |= _order_peers(query, columns)
    return changed


# -- LIMIT and OFFSET


def _is_cut(query: exp.Query) -> bool:
    limit = query.args.get("limit")
    shortens = limit is not None and limit.expression.name.upper() != "ALL"
    return shortens or query.args.get("offset") is not None


def _order_totally(query: exp.Query, columns: Columns | None) -> bool:
    """Add the ordinals of all output columns that are not keys yet."""
    order = query.args.get("order") or exp.Order(expressions=[])
    keys = {_key_name(o.this) for o in order.expressions}
    if "ALL" in keys:
        return False
    names = output_names(query, columns)
    added = [
        _ascending(exp.Literal.number(i))
        for i, name in enumerate(names, 1)
        if str(i) not in keys and (not name or name.lower() not in keys)
    ]
    query.set("order", exp.Order(expressions=[*order.expressions, *added]))
    return bool(added)


def _key_name(key: exp.Expr) -> str | None:
    """The output column that a key surely means: its ordinal or its bare name."""
    if isinstance(key, exp.Column) and not key.table:
        return str(key.name).lower()
    if isinstance(key, exp.Literal) and not key.is_string:
        return str(key.this)
    return "ALL" if isinstance(key, exp.Var) and key.name.upper() == "ALL" else None


def _ascending(expr: exp.Expr) -> exp.Ordered:
    return exp.Ordered(this=expr, nulls_first=True)


# -- window functions


def _order_peers(select: exp.Select, columns: Columns | None) -> bool:
    """Give each window whose value depends on the order of peers the select list as last keys."""
    changed = False
    ties: list[exp.Expr] | None = None
    for call in list(_own_windows(select)):
        window = _with_named_parts(call, select)
        if not _depends_on_peers(window):
            continue
        ties = _ties(select, columns) if ties is None else ties
        changed |= _append(window, [*ties, *_arguments(window)])
        if window is not call:
            call.replace(window)
    return changed


def _own_windows(select: exp.Select) -> Iterator[exp.Window]:
    """Window calls of this query, not of those nested in it."""
    for window in select.find_all(exp.Window):
        if window.args.get("over") and window.find_ancestor(exp.Select) is select:
            yield window


def _with_named_parts(call: exp.Window, select: exp.Select) -> exp.Window:
    """`OVER w` with the parts of w written out: others may use w, and need it unchanged."""
    name = call.args.get("alias")
    if name is None:
        return call
    written = call.copy()
    for named in select.args.get("windows") or ():
        if named.name.lower() == name.name.lower():
            for part in ("partition_by", "order", "spec"):
                if not written.args.get(part) and named.args.get(part):
                    written.set(part, _copied(named.args[part]))
    written.set("alias", None)
    return written


def _copied(part: exp.Expr | list[exp.Expr]) -> exp.Expr | list[exp.Expr]:
    return [p.copy() for p in part] if isinstance(part, list) else part.copy()


def _depends_on_peers(window: exp.Window) -> bool:
    """Numbering and neighbours do; frames of rows do, unless they hold the whole partition;
    the first value of a range does, if the range begins with the partition, and the last, if it
    ends with it."""
    name, spec = _function_name(window), window.args.get("spec")
    if name in ORDER_SENSITIVE_WINDOWS:
        return True
    bounds = (_bound(spec, "start"), _bound(spec, "end")) if spec else ("UNBOUNDED", "")
    if spec is not None and spec.args["kind"].upper() == "ROWS":
        return name in _FIRST_OR_LAST or bounds != ("UNBOUNDED", "UNBOUNDED")
    ordered = window.args.get("order") is not None
    from_the_start = name in ("first", "first_value") and bounds[0] == "UNBOUNDED"
    to_the_end = name in ("last", "last_value") and bounds[1] == "UNBOUNDED"
    return ordered and (from_the_start or to_the_end)


def _bound(spec: exp.Expr, side: str) -> str:
    value = spec.args.get(side)
    return value.upper() if isinstance(value, str) else ""


def _function_name(window: exp.Window) -> str:
    call = window.this
    while isinstance(call, exp.IgnoreNulls | exp.RespectNulls | exp.Filter):
        call = call.this
    return str(call.name).lower()


def _ties(select: exp.Select, columns: Columns | None) -> list[exp.Expr]:
    """The select list's expressions that can order peers: no window values, no constants."""
    found: list[exp.Expr] = []
    for item in select.expressions:
        if is_star(item):
            found += [output.reference for output in star(select, item, columns)]
        elif not item.find(exp.Window) and not _is_constant(item):
            found.append(item.unalias())
    return found


def _is_constant(item: exp.Expr) -> bool:
    return not any(
        isinstance(n, exp.Column | exp.Star)
        or (isinstance(n, exp.Anonymous) and n.name.lower() in AGGREGATES)
        for n in item.walk()
    )


def _arguments(window: exp.Window) -> list[exp.Expr]:
    """What the function reads, as far as it can order peers: rows alike in that, too, give the
    same value."""
    call = window.this
    while isinstance(call, exp.IgnoreNulls | exp.RespectNulls | exp.Filter):
        call = call.this
    return [a for a in call.expressions if not _is_constant(a) and not isinstance(a, exp.Star)]


def _append(window: exp.Window, ties: list[exp.Expr]) -> bool:
    order = window.args.get("order")
    keys = list(order.expressions) if order else []
    known = [key.this for key in keys] + list(window.args.get("partition_by") or ())
    wanted = [tie for i, tie in enumerate(ties) if tie not in known and tie not in ties[:i]]
    added = [_ascending(tie.copy()) for tie in wanted]
    if added:
        window.set("order", exp.Order(expressions=[*keys, *added]))
    return bool(added)
