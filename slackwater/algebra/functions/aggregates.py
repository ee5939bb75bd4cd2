"""Aggregate and window functions: their types."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from slackwater.algebra.coercion import bounded, is_interval, make_cast, wrong_types
from slackwater.algebra.expr import AggCall, Expr, Frame, Literal, SortKey, WindowCall
from slackwater.algebra.functions.scalars import accept
from slackwater.errors import SqlError
from slackwater.types import (
    BIGINT,
    BOOLEAN,
    DOUBLE,
    INT,
    NULL,
    STRING,
    TIMESTAMP,
    DataType,
    Decimal,
    is_atomic,
    is_integral,
    is_numeric,
)

Shape = tuple[tuple[Expr, ...], DataType, bool]
"""Coerced arguments, result type, nullability."""

_ALIASES = {
    "mean": "avg",
    "every": "bool_and",
    "any": "bool_or",
    "some": "bool_or",
    "std": "stddev_samp",
    "stddev": "stddev_samp",
    "variance": "var_samp",
}


def _count(name: str, args: Sequence[Expr]) -> Shape | None:
    return tuple(args), BIGINT, False


def _number(name: str, args: Sequence[Expr]) -> Expr:
    (arg,) = args
    if arg.type in (STRING, NULL):
        return make_cast(arg, DOUBLE)
    if not is_numeric(arg.type):
        raise wrong_types(name, args, "a number")
    return arg


def _sum(name: str, args: Sequence[Expr]) -> Shape | None:
    if is_interval(args[0].type) or args[0].type == TIMESTAMP:
        return None
    arg = _number(name, args)
    if isinstance(arg.type, Decimal):
        return (arg,), bounded(arg.type.precision + 10, arg.type.scale), True
    return (arg,), BIGINT if is_integral(arg.type) else DOUBLE, True


def _avg(name: str, args: Sequence[Expr]) -> Shape | None:
    if is_interval(args[0].type) or args[0].type == TIMESTAMP:
        return None
    arg = _number(name, args)
    if isinstance(arg.type, Decimal):
        return (arg,), bounded(arg.type.precision + 4, arg.type.scale + 4), True
    return (arg,), DOUBLE, True


def _extreme(name: str, args: Sequence[Expr]) -> Shape | None:
    (arg,) = args
    if is_interval(arg.type) or not is_atomic(arg.type):
        return None
    return (arg,), arg.type, True


def _count_if(name: str, args: Sequence[Expr]) -> Shape | None:
    return _boolean(name, args), BIGINT, False


def _bool(name: str, args: Sequence[Expr]) -> Shape | None:
    return _boolean(name, args), BOOLEAN, True


def _boolean(name: str, args: Sequence[Expr]) -> tuple[Expr, ...]:
    (arg,) = args
    if arg.type not in (BOOLEAN, STRING, NULL):
        raise wrong_types(name, args, "a boolean")
    return (make_cast(arg, BOOLEAN),)


def _bits(name: str, args: Sequence[Expr]) -> Shape | None:
    (arg,) = args
    return ((arg,), arg.type, True) if is_integral(arg.type) else None


def _spread(name: str, args: Sequence[Expr]) -> Shape | None:
    return (accept(name, args[0], DOUBLE, args),), DOUBLE, True


AGGREGATES: dict[str, tuple[int, int | None, Callable[[str, Sequence[Expr]], Shape | None]]] = {
    "count": (0, None, _count),
    "sum": (1, 1, _sum),
    "avg": (1, 1, _avg),
    **dict.fromkeys(("min", "max"), (1, 1, _extreme)),
    "count_if": (1, 1, _count_if),
    **dict.fromkeys(("bool_and", "bool_or"), (1, 1, _bool)),
    **dict.fromkeys(("bit_and", "bit_or", "bit_xor"), (1, 1, _bits)),
    **dict.fromkeys(("var_samp", "var_pop", "stddev_samp", "stddev_pop"), (1, 1, _spread)),
}
"""name → least and most arguments, shape."""


def aggregate(
    name: str, args: Sequence[Expr], distinct: bool = False, where: Expr | None = None
) -> AggCall | None:
    """An aggregate call; None where only Spark computes it. `count` without arguments is
    COUNT(*)."""
    name = _ALIASES.get(name, name)
    shape = _shape(name, args)
    if shape is None or (where is not None and where.type != BOOLEAN):
        return None
    coerced, result, nullable = shape
    return AggCall(result, nullable, name, coerced, distinct, where)


def _shape(name: str, args: Sequence[Expr]) -> Shape | None:
    if name not in AGGREGATES:
        return None
    least, most, shape = AGGREGATES[name]
    if len(args) < least or (most is not None and len(args) > most):
        return None
    return shape(name, args)


def _rank(name: str, args: Sequence[Expr]) -> Shape | None:
    return ((), INT, False) if not args else None


def _share(name: str, args: Sequence[Expr]) -> Shape | None:
    return ((), DOUBLE, False) if not args else None


def _ntile(name: str, args: Sequence[Expr]) -> Shape | None:
    (n,) = args
    fits = isinstance(n, Literal) and n.type == INT and n.value is not None and n.value > 0
    return ((n,), INT, False) if fits else None


def _offset(name: str, args: Sequence[Expr]) -> Shape | None:
    """lag and lead: NULL outside the partition unless a default stands in."""
    value = args[0]
    if len(args) > 1 and not (isinstance(args[1], Literal) and args[1].type == INT):
        return None
    if len(args) < 3:
        return tuple(args), value.type, True
    default = accept(name, args[2], value.type, args)
    return (value, args[1], default), value.type, value.nullable or default.nullable


def _edge(name: str, args: Sequence[Expr]) -> Shape | None:
    return (tuple(args), args[0].type, True) if len(args) == 1 else None


def _nth(name: str, args: Sequence[Expr]) -> Shape | None:
    fits = isinstance(args[1], Literal) and args[1].type == INT and (args[1].value or 0) > 0
    return (tuple(args), args[0].type, True) if fits else None


FRAMELESS = (
    "row_number",
    "rank",
    "dense_rank",
    "percent_rank",
    "cume_dist",
    "ntile",
    "lag",
    "lead",
)
WINDOWS: dict[str, tuple[int, int | None, Callable[[str, Sequence[Expr]], Shape | None]]] = {
    **dict.fromkeys(("row_number", "rank", "dense_rank"), (0, 0, _rank)),
    **dict.fromkeys(("percent_rank", "cume_dist"), (0, 0, _share)),
    "ntile": (1, 1, _ntile),
    **dict.fromkeys(("lag", "lead"), (1, 3, _offset)),
    **dict.fromkeys(("first_value", "last_value"), (1, 1, _edge)),
    "nth_value": (2, 2, _nth),
}
"""name → least and most arguments, shape; all aggregates are window functions as well."""


def window(
    name: str,
    args: Sequence[Expr],
    partition_by: Sequence[Expr],
    order_by: Sequence[SortKey],
    frame: Frame | None,
    where: Expr | None = None,
    ignore_nulls: bool = False,
) -> WindowCall | None:
    """A window call; None where only Spark computes it.

    Without a frame, an ordered window reaches from the start of the partition to the current
    row and its peers, an unordered one over the whole partition.
    """
    name = {"first": "first_value", "last": "last_value"}.get(name, _ALIASES.get(name, name))
    shape = _window_shape(name, args)
    if shape is None or not _portable_frame(frame):
        return None
    if not order_by and (name in FRAMELESS or name == "nth_value"):
        raise SqlError(
            f"Window function '{name}' needs an order.",
            code="WINDOW_NOT_ORDERED",
            hint="Add ORDER BY to its OVER clause.",
        )
    if name in FRAMELESS:
        frame = None
    elif frame is None:
        frame = Frame("range", None, 0) if order_by else Frame("rows", None, None)
    coerced, result, nullable = shape
    partition, order = tuple(partition_by), tuple(order_by)
    return WindowCall(
        result, nullable, name, coerced, partition, order, frame, "", where, ignore_nulls
    )


def _window_shape(name: str, args: Sequence[Expr]) -> Shape | None:
    if name not in WINDOWS:
        return _shape(name, args)
    least, most, shape = WINDOWS[name]
    if len(args) < least or (most is not None and len(args) > most):
        return None
    return shape(name, args)


def _portable_frame(frame: Frame | None) -> bool:
    """Row frames, and range frames that end at peers or at the partition's ends."""
    if frame is None:
        return True
    bounds = (frame.start, frame.end)
    if frame.unit == "range":
        return all(b is None or b == 0 for b in bounds)
    return all(b is None or isinstance(b, int) for b in bounds)
