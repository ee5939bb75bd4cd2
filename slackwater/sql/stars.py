"""The columns that a query gives, read off its syntax: what `*` stands for."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from slackwater.errors import UserError

Columns = Callable[[str], Sequence[str]]
"""The column names of a table, given its name as written."""


@dataclass(frozen=True)
class Output:
    """A column that a source offers; joined by USING, the key of the other side is hidden."""

    source: str | None
    name: str
    hidden: bool = False

    @property
    def reference(self) -> exp.Column:
        """The column as an expression."""
        table = exp.to_identifier(self.source, quoted=True) if self.source else None
        return exp.Column(this=exp.to_identifier(self.name, quoted=True), table=table)


def output_names(query: exp.Expr, columns: Columns | None) -> list[str]:
    """The names of a query's columns, in order; an expression without a name gives ''."""
    if isinstance(query, exp.Subquery):
        return _renamed(query, output_names(query.this, columns))
    if isinstance(query, exp.SetOperation):
        return output_names(query.this, columns)
    if isinstance(query, exp.Values):
        return _renamed(query, _value_names(query))
    if not isinstance(query, exp.Select):
        raise _unknown(type(query).__name__.upper())
    return [name for item in query.expressions for name in _item_names(query, item, columns)]


def _item_names(query: exp.Select, item: exp.Expr, columns: Columns | None) -> list[str]:
    if is_star(item):
        return [output.name for output in star(query, item, columns)]
    return [item.alias_or_name]


def is_star(item: exp.Expr) -> bool:
    """Is a select-list item `*` or `source.*`?"""
    return isinstance(item, exp.Star) or (
        isinstance(item, exp.Column) and isinstance(item.this, exp.Star)
    )


def star(query: exp.Select, item: exp.Expr, columns: Columns | None) -> list[Output]:
    """What a `*` in the select list of `query` stands for."""
    found = _sources(query, columns)
    if isinstance(item, exp.Column):
        wanted = item.table.lower()
        found = [o for o in found if (o.source or "").lower() == wanted]
        found.sort(key=lambda o: not o.hidden)
        if not found:
            raise _unknown(f"{item.table}.*")
    else:
        found = [o for o in found if not o.hidden]
    shape = item if isinstance(item, exp.Star) else item.this
    left_out = {e.name.lower() for e in shape.args.get("except_") or ()}
    return [o for o in found if o.name.lower() not in left_out]


def _sources(query: exp.Select, columns: Columns | None) -> list[Output]:
    """The columns of FROM and its joins, as `*` lists them."""
    if query.args.get("laterals"):
        raise _unknown("LATERAL VIEW")
    start = query.args.get("from_")
    found = list(_source(start.this, columns)) if start else []
    for join in query.args.get("joins") or ():
        found = _joined(join, found, list(_source(join.this, columns)))
    return found


def _joined(join: exp.Join, left: list[Output], right: list[Output]) -> list[Output]:
    """USING and NATURAL columns come first and once; semi and anti joins give the left side."""
    names = [name.name.lower() for name in join.args.get("using") or ()]
    if join.method.upper() == "NATURAL":
        offered = {o.name.lower() for o in right if not o.hidden}
        names = [o.name.lower() for o in left if o.name.lower() in offered and not o.hidden]
    own, other = _keys(left, names), _keys(right, names)
    rest = [o for o in left + right if o not in own and o not in other]
    if join.kind.upper() in ("SEMI", "ANTI"):
        return own + [o for o in left if o not in own]
    shown, hidden = (other, own) if join.side.upper() == "RIGHT" else (own, other)
    if join.side.upper() == "FULL":
        shown, hidden = [Output(None, o.name) for o in own], own + other
    return shown + rest + [replace(o, hidden=True) for o in hidden]


def _keys(side: list[Output], names: list[str]) -> list[Output]:
    return [o for name in names for o in side if o.name.lower() == name and not o.hidden]


def _source(node: exp.Expr, columns: Columns | None) -> Iterator[Output]:
    if isinstance(node, exp.Subquery):
        names: Iterable[str] = output_names(node, columns)
    elif isinstance(node, exp.Values):
        names = _renamed(node, _value_names(node))
    elif isinstance(node, exp.Table) and isinstance(node.this, exp.Identifier):
        names = _renamed(node, _table_names(node, columns))
    else:
        raise _unknown(type(node).__name__.upper())
    yield from (Output(node.alias_or_name or None, name) for name in names)


def _value_names(node: exp.Expr) -> list[str]:
    first = node.expressions[0]
    width = len(first.expressions) if isinstance(first, exp.Tuple) else 1
    return [f"col{i}" for i in range(1, width + 1)]


def _renamed(node: exp.Expr, names: list[str]) -> list[str]:
    """The names that an alias such as `t(a, b)` gives, if it gives any."""
    alias = node.args.get("alias")
    given = alias.args.get("columns") if alias else None
    return [c.name for c in given] if given else names


def _table_names(table: exp.Table, columns: Columns | None) -> list[str]:
    cte = _cte(table)
    if cte is not None:
        return _renamed(cte, output_names(cte.this, columns))
    if columns is None:
        raise _unknown(table.name)
    return list(columns(".".join(part.name for part in table.parts)))


def _cte(table: exp.Table) -> exp.CTE | None:
    """The WITH item a table name means: the nearest outside, listed before the own one."""
    if len(table.parts) > 1:
        return None
    inside: exp.Expr | None = None
    node = table.parent
    while node is not None:
        if isinstance(node, exp.CTE):
            inside = node
        clause = node.args.get("with_")
        for cte in clause.expressions if clause else ():
            if cte is inside:
                break
            if cte.alias.lower() == table.name.lower():
                assert isinstance(cte, exp.CTE)
                return cte
        node = node.parent
    return None


def _unknown(what: str) -> UserError:
    return UserError(
        f"The columns that '*' stands for are not known at '{what}'.",
        code="UNKNOWN_COLUMNS",
        hint="List the columns instead of '*', or say which columns the tables have.",
    )
