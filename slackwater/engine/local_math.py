"""Functions of doubles on the local engine.

DuckDB raises outside a function's domain where Java answers NaN or an infinity, so domains are
written out.
"""

from __future__ import annotations

from collections.abc import Callable

from slackwater.algebra.expr import Call

Emulation = Callable[[Call, list[str]], str]

_NAN = "'nan'::DOUBLE"


def _plain(name: str) -> Emulation:
    return lambda expr, args: f"{name}({', '.join(args)})"


def _domain(name: str, inside: str) -> Emulation:
    """NaN outside of `inside`; infinities and NaN are outside."""

    def domain(expr: Call, args: list[str]) -> str:
        x = args[0]
        within = inside.format(x)
        return (
            f"(CASE WHEN {x} IS NULL THEN NULL WHEN isnan({x}) THEN {_NAN}"
            f" WHEN {within} THEN {name}({x}) ELSE {_NAN} END)"
        )

    return domain


def _logarithm(name: str, least: str, shift: str = "") -> Emulation:
    """NULL at and below the pole, as in Spark."""

    def logarithm(expr: Call, args: list[str]) -> str:
        x = args[0]
        return f"(CASE WHEN {x} <= {least} THEN NULL ELSE {name}({x}{shift}) END)"

    return logarithm


def _log1p(expr: Call, args: list[str]) -> str:
    """ln(1 + x) with Kahan's correction for small x."""
    x = args[0]
    y = f"(1e0 + {x})"
    return (
        f"(CASE WHEN {x} <= -1e0 THEN NULL WHEN {y} = 1e0 OR isinf({x}) THEN {x}"
        f" ELSE ln({y}) * ({x} / ({y} - 1e0)) END)"
    )


def _expm1(expr: Call, args: list[str]) -> str:
    """exp(x) - 1, as 2·sinh(x/2)·exp(x/2), which cancels nothing."""
    x = args[0]
    return (
        f"(CASE WHEN abs({x}) > 5e-1 THEN exp({x}) - 1e0"
        f" ELSE 2e0 * sinh({x} / 2e0) * exp({x} / 2e0) END)"
    )


def _sign(expr: Call, args: list[str]) -> str:
    x = args[0]
    return f"(CASE WHEN isnan({x}) OR {x} = 0 THEN {x} ELSE CAST(sign({x}) AS DOUBLE) END)"


def _rint(expr: Call, args: list[str]) -> str:
    """The nearest whole number, halves to even."""
    return f"round_even({args[0]}, 0)"


def _cot(expr: Call, args: list[str]) -> str:
    x = args[0]
    tan = _finite("tan")(expr, args)
    return f"(CASE WHEN {x} = 0 THEN 1e0 / {x} ELSE 1e0 / {tan} END)"


def _power(expr: Call, args: list[str]) -> str:
    """Java: 1 to an infinite or NaN power is NaN, where C says 1."""
    x, y = args
    odd = f"abs({x}) = 1 AND isinf({y})"
    return (
        f"(CASE WHEN {x} IS NULL OR {y} IS NULL THEN NULL WHEN {y} = 0 THEN 1e0"
        f" WHEN isnan({x}) OR isnan({y}) OR ({odd}) THEN {_NAN} ELSE pow({x}, {y}) END)"
    )


def _atan2(expr: Call, args: list[str]) -> str:
    """Spark takes -0.0 for 0.0."""
    y, x = (f"(CASE WHEN {a} = 0 THEN 0e0 ELSE {a} END)" for a in args)
    return f"atan2({y}, {x})"


def _finite(name: str) -> Emulation:
    return _domain(name, "isfinite({0})")


MATH: dict[str, Emulation] = {
    "sqrt": _domain("sqrt", "{0} >= 0"),
    "exp": _plain("exp"),
    "expm1": _expm1,
    **{name: _finite(name) for name in ("sin", "cos", "tan")},
    **{name: _domain(name, "{0} BETWEEN -1 AND 1") for name in ("asin", "acos")},
    **{name: _plain(name) for name in ("atan", "sinh", "cosh", "tanh", "cbrt")},
    "atan2": _atan2,
    "cot": _cot,
    "degrees": _plain("degrees"),
    "radians": _plain("radians"),
    "sign": _sign,
    "rint": _rint,
    "ln": _logarithm("ln", "0"),
    "log10": _logarithm("log10", "0"),
    "log2": _logarithm("log2", "0"),
    "log1p": _log1p,
    "power": _power,
    "isnan": lambda expr, args: f"coalesce(isnan({args[0]}), FALSE)",
}
