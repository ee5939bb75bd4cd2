"""Names for output columns without an alias, as Spark prints them: `sum(price)`, `(a + b)`."""

from __future__ import annotations

from sqlglot import exp

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
}


def output_name(node: exp.Expr) -> str:
    """The name of a select-list item."""
    if isinstance(node, exp.Alias):
        return str(node.alias)
    return pretty(node)


def pretty(node: exp.Expr) -> str:
    """An expression the way Spark names it."""
    match node:
        case exp.Column():
            return str(node.name)
        case exp.Dot():
            return str(node.expression.name)
        case exp.Paren():
            return pretty(node.this)
        case exp.Literal():
            return str(node.this)
        case exp.Boolean():
            return "true" if node.this else "false"
        case exp.Null():
            return "NULL"
        case exp.Anonymous():
            return _call(node)
        case exp.Cast() | exp.TryCast():
            word = "TRY_CAST" if isinstance(node, exp.TryCast) else "CAST"
            return f"{word}({pretty(node.this)} AS {node.args['to'].sql(dialect='spark')})"
        case exp.Neg():
            return f"(- {pretty(node.this)})"
        case exp.Not():
            return f"(NOT {pretty(node.this)})"
        case exp.NEQ():
            return f"(NOT ({pretty(node.this)} = {pretty(node.expression)}))"
        case exp.Is():
            return f"({pretty(node.this)} IS {pretty(node.expression)})"
        case exp.Subquery() | exp.Select():
            return "scalarsubquery()"
        case exp.Case():
            return _case(node)
        case exp.Window():
            return node.sql(dialect="spark")
        case exp.Substring():
            parts = [node.this, node.args.get("start"), node.args.get("length")]
            return f"substring({', '.join(pretty(p) for p in parts if p is not None)})"
    if type(node) in _INFIX:
        return f"({pretty(node.this)} {_INFIX[type(node)]} {pretty(node.expression)})"
    return str(node.sql(dialect="spark"))


def _call(node: exp.Expr) -> str:
    name = node.name.lower()
    parts = node.expressions
    if parts and isinstance(parts[0], exp.Distinct):
        inner = ", ".join(pretty(p) for p in parts[0].expressions)
        return f"{name}(DISTINCT {inner})"
    if name == "count" and len(parts) == 1 and isinstance(parts[0], exp.Star):
        return "count(1)"
    return f"{name}({', '.join(pretty(p) for p in parts)})"


def _case(node: exp.Expr) -> str:
    base = f" {pretty(node.this)}" if node.this is not None else ""
    whens = " ".join(
        f"WHEN {pretty(i.this)} THEN {pretty(i.args['true'])}" for i in node.args["ifs"]
    )
    default = node.args.get("default")
    end = f" ELSE {pretty(default)}" if default is not None else ""
    return f"CASE{base} {whens}{end} END"
