"""Which expressions may raise on the local engine."""

from __future__ import annotations

from slackwater.algebra.coercion import cast_nullable
from slackwater.algebra.expr import Call, Cast, Expr, Literal
from slackwater.types import STRING, Decimal, is_fractional

_QUIET = frozenset(
    """= != < <= > >= <=> and or not in case coalesce greatest least is_null is_not_null is_true
    is_false is_not_true is_not_false & | ^ ~ >> << isnan length bit_length octet_length ascii
    trim ltrim rtrim concat concat_ws replace substring left right instr locate startswith endswith
    contains year month day quarter dayofweek dayofyear weekofyear weekday hour minute second
    unix_date unix_seconds unix_millis unix_micros datediff last_day trunc date_trunc sqrt exp ln
    log10 log2 log1p sin cos tan asin acos atan sinh cosh tanh cbrt degrees radians sign rint power
    atan2 try_add try_subtract""".split()
)
_QUIET_ON_DOUBLES = frozenset({"+", "-", "*", "neg", "abs"})


def may_raise(expr: Expr) -> bool:
    """Might evaluating the expression for some row raise?"""
    return any(_raises(node) for node in expr.walk())


def _raises(node: Expr) -> bool:
    if isinstance(node, Cast):
        return not node.safe and node.arg.type != node.type and _raising_cast(node)
    if not isinstance(node, Call) or node.name in _QUIET:
        return False
    if node.name == "like" and isinstance(node.args[1], Literal):
        return False
    if node.name in _QUIET_ON_DOUBLES and isinstance(node.type, Decimal):
        return node.type.precision == 38  # below, the type has room for every outcome
    return not (node.name in _QUIET_ON_DOUBLES and is_fractional(node.type))


def _raising_cast(node: Cast) -> bool:
    return node.arg.type == STRING or cast_nullable(node.arg.type, node.type) or _narrows(node)


def _narrows(node: Cast) -> bool:
    order = ("byte", "short", "integer", "long")
    source, target = node.arg.type.json, node.type.json
    return source in order and target in order and order.index(source) > order.index(target)
