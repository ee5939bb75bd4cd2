"""Any relation as one SQL statement, for either engine.

Each distinct operator is written once, under a name `n0`, `n1`, … with columns `c0`, `c1`, …, in
order from the inputs up: as a common table expression, or where it is read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, singledispatchmethod

from slackwater.algebra.expr import Column, Expr, SparkCall, conjunction
from slackwater.algebra.patterns import null_aware_key
from slackwater.algebra.relation import (
    Aggregate,
    Bag,
    Distinct,
    Expand,
    Filter,
    Generate,
    Join,
    Opaque,
    Project,
    Relation,
    Scan,
    SetOp,
    Sort,
    TopK,
    Union,
    Values,
    Window,
)
from slackwater.engine.blocks import Block, block_of
from slackwater.engine.dialects import Dialect
from slackwater.engine.null_safe import equal_keys
from slackwater.engine.outward import joined
from slackwater.engine.programs import HEAVY, Part, Program
from slackwater.engine.sharing import Sharing, reads_change
from slackwater.engine.spark_sql import fill
from slackwater.engine.templates import Template, place_of
from slackwater.engine.texts import Texts
from slackwater.errors import InternalError
from slackwater.types import Schema

FEW_BYTES = 2_000_000
"""Inputs up to this size are sent whole to wherever they are joined, if changes are."""
MOST_TEMPLATES = 500
"""So many statements are remembered without their inputs."""
Inputs = Mapping[str, str]
"""What stands in FROM for each scanned source."""


def compile_query(
    relation: Relation, dialect: Dialect, inputs: Inputs, names: Sequence[str] | None = None
) -> str:
    """The statement that computes a relation; columns are named `names`, or c0, c1, …"""
    compiler = _Compiler(dialect, inputs)
    return compiler.statement(relation, names)


def compile_program(
    relation: Relation,
    dialect: Dialect,
    inputs: Inputs,
    names: Sequence[str] | None = None,
    prefix: str = "",
    broadcast: Mapping[str, int] | None = None,
    made: Mapping[str, int] | None = None,
    most: int = HEAVY[0],
) -> Program:
    """The same as few statements: what the change of a relation reads several times comes first,
    so that an engine plans the rest with its true size. `prefix` makes names unique. Where the
    change is small, `broadcast` gives the bytes of each source. `made` says how much there is
    behind sources that are statements themselves, `most` how much later statements may repeat.

    Where statements repeat themselves, all but the inputs is written once."""
    wanted = None if names is None else tuple(names)
    if dialect.repeats and not broadcast and not made:
        return _template(relation, dialect, wanted, prefix, most).filled(inputs)
    return _program(relation, dialect, inputs, wanted, prefix, broadcast or {}, made or {}, most)


@lru_cache(MOST_TEMPLATES)
def _template(
    relation: Relation, dialect: Dialect, names: tuple[str, ...] | None, prefix: str, most: int
) -> Template:
    places = {scan.source: place_of(scan.source) for scan in relation.scans()}
    return Template(_program(relation, dialect, places, names, prefix, {}, {}, most))


def _program(
    relation: Relation,
    dialect: Dialect,
    inputs: Inputs,
    names: tuple[str, ...] | None,
    prefix: str,
    broadcast: Mapping[str, int],
    made: Mapping[str, int],
    most: int,
) -> Program:
    apart = reads_change(relation)
    compiler = _Compiler(dialect, inputs, prefix, broadcast, apart, made, most)
    sql = compiler.statement(relation, names)
    return Program(tuple(compiler.parts), sql, compiler.sharing.size(_delivery(relation)[0]))


def _delivery(relation: Relation) -> tuple[Relation, list[int], tuple[Expr, ...]]:
    """What to compute, which of its columns to deliver, and in which order."""
    if isinstance(relation, Sort):
        return relation.input, list(range(relation.width)), relation.keys
    if isinstance(relation, Project) and isinstance(relation.input, Sort):
        picks = [e.index for e in relation.exprs if isinstance(e, Column)]
        if len(picks) == len(relation.exprs):
            return relation.input.input, picks, relation.input.keys
    return relation, list(range(relation.width)), ()


@dataclass
class _Compiler:
    dialect: Dialect
    inputs: Inputs
    prefix: str = ""
    broadcast: Mapping[str, int] = field(default_factory=dict)
    apart: bool = False  # are shared parts statements of their own?
    made: Mapping[str, int] = field(default_factory=dict)
    most: int = HEAVY[0]
    parts: list[Part] = field(default_factory=list)
    blocks: dict[Relation, Block | None] = field(default_factory=dict)
    sharing: Sharing = field(init=False)
    texts: Texts = field(init=False)

    def __post_init__(self) -> None:
        self.texts = Texts(self._needs)

    def statement(self, relation: Relation, names: Sequence[str] | None) -> str:
        """The statement that delivers a relation."""
        relation, picks, keys = _delivery(relation)
        top = self.name_of(relation)
        labels = names or [f"c{i}" for i in range(len(picks))]
        quote = self.dialect.quote
        items = [f"{top}.c{i} AS {quote(n)}" for i, n in zip(picks, labels, strict=True)]
        order = ""
        if keys:
            row = self.row(relation, top)
            order = " ORDER BY " + ", ".join(self.dialect.render(k, row) for k in keys)
        select = f"SELECT {', '.join(items) or '1'} FROM {self.texts.named(relation)}{order}"
        return self.texts.with_clause([relation]) + select

    def name_of(self, top: Relation) -> str:
        """The name under which a relation and all it needs are written."""
        cuts_heavy = self.apart and not self.dialect.cte_hints
        self.sharing = Sharing(top, cuts_heavy, self.made, self.most)
        stack = [(top, False)]
        while stack:
            node, ready = stack.pop()
            if node in self.texts.names:
                continue
            if ready:
                self._write(node)
            else:
                stack.append((node, True))
                stack.extend((child, False) for child in reversed(self._needs(node)))
        return self.texts.names[top]

    def _write(self, node: Relation) -> None:
        text = self.text(node)
        name = f"{self.prefix}n{len(self.texts.names)}"
        if self.apart and self.sharing.is_once(node):
            sql, size = self.texts.with_clause(self._needs(node)) + text, self.sharing.size(node)
            part = Part(name, sql, size, self.sharing.is_small(node), self.most)
            self.parts.append(part)
            if part.heavy:
                self.sharing.cut(node)
        elif self.dialect.cte_hints or self.sharing.is_shared(node):
            self.texts.define(node, text, self._hint(node))
        else:
            self.texts.inline(node, text)
        self.texts.names[node] = name

    def _needs(self, node: Relation) -> Sequence[Relation]:
        """What must be written before an operator: its inputs, or those of its block."""
        found = self._block(node)
        return node.inputs if found is None else found.leaves

    def _block(self, node: Relation) -> Block | None:
        if node not in self.blocks:
            self.blocks[node] = block_of(node, self.sharing.is_shared)
        return self.blocks[node]

    def _hint(self, node: Relation) -> str:
        if not self.dialect.cte_hints:
            return ""
        return "MATERIALIZED " if self.sharing.is_once(node) else "NOT MATERIALIZED "

    def _from(self, block: Block) -> tuple[list[str], str, str]:
        """The columns of a block's inputs, its FROM and WHERE, and a hint for its SELECT."""
        small = [i for i, leaf in enumerate(block.leaves) if self.sharing.is_small(leaf)]
        if self.dialect.broadcast and self.broadcast and small and len(block.leaves) > 1:
            texts = [self.texts.table(leaf) for leaf in block.leaves]
            few = [self._is_few(leaf) for leaf in block.leaves]
            return joined(block, small[0], texts, few, self.dialect)
        row: list[str] = []
        names = []
        for i, leaf in enumerate(block.leaves):
            row += self.row(leaf, f"t{i}")
            names.append(f"{self.texts.table(leaf)} AS t{i}")
        where = self.dialect.predicate(conjunction(block.conditions), row)
        clause = f" WHERE {where}" if block.conditions else ""
        return row, f"FROM {' CROSS JOIN '.join(names)}{clause}", ""

    def _is_few(self, node: Relation) -> bool:
        """Is it worth sending to wherever it is joined?"""
        if not self.broadcast:
            return False
        read = sum(self.broadcast.get(scan.source, 0) for scan in node.scans())
        return self.sharing.is_small(node) or read < FEW_BYTES

    def _selected(self, node: Relation) -> str:
        """SELECT the block's row."""
        block = self._block(node)
        assert block is not None
        row, source, hint = self._from(block)
        return f"SELECT {hint}{self.items(block.row, row)} {source}"

    def row(self, relation: Relation, alias: str) -> list[str]:
        """The texts of a relation's columns under an alias."""
        return [f"{alias}.c{i}" for i in range(relation.width)]

    def items(self, exprs: Sequence[Expr], row: list[str], start: int = 0) -> str:
        """A select list: the expressions as c0, c1, …"""
        return self.labelled([self.dialect.render(e, row) for e in exprs], start)

    def labelled(self, texts: Sequence[str], start: int = 0) -> str:
        """A select list of ready texts. A row without columns still needs one in SQL."""
        return ", ".join(f"{t} AS c{start + i}" for i, t in enumerate(texts)) or "1 AS none"

    def below(self, node: Relation, position: int = 0) -> tuple[str, list[str]]:
        """An input as it stands in FROM, and its row."""
        child = node.inputs[position]
        return self.texts.named(child), self.row(child, self.texts.names[child])

    @singledispatchmethod
    def text(self, node: Relation) -> str:
        raise InternalError(f"no SQL for {type(node).__name__}")

    @text.register
    def _(self, node: Scan) -> str:
        if node.source not in self.inputs:
            raise InternalError(f"'{node.name}' has no input")
        stored = [self.dialect.stored(f, f"s.{self.dialect.quote(f.name)}") for f in node.fields]
        return f"SELECT {self.labelled(stored)} FROM {self.inputs[node.source]} AS s"

    @text.register
    def _(self, node: Values) -> str:
        if not node.rows:
            return empty(self.dialect, node.fields)
        rows = [[self.dialect.render(e, []) for e in row] for row in node.rows]
        if len(rows) == 1:
            return f"SELECT {self.labelled(rows[0])}"
        columns = ", ".join(f"c{i}" for i in range(node.width))
        body = ", ".join(f"({', '.join(row)})" for row in rows)
        return f"SELECT * FROM (VALUES {body}) AS v({columns})"

    @text.register(Filter)
    @text.register(Project)
    def _(self, node: Relation) -> str:
        return self._selected(node)

    @text.register
    def _(self, node: Join) -> str:
        if node.how == "inner":
            return self._selected(node)
        left, right = self.texts.table(node.left), self.texts.table(node.right)
        rows = self.row(node.left, "l") + self.row(node.right, "r")
        if node.how == "anti" and (pair := null_aware_key(node)):
            outer = self.dialect.render(pair[0], rows)
            inner = self.dialect.render(pair[1], rows)
            kept = self.labelled(rows[: node.left.width])
            # an empty subquery keeps every row, NULLs too; both engines know NOT IN
            return (
                f"SELECT {kept} FROM {left} l WHERE {outer} NOT IN (SELECT {inner} FROM {right} r)"
            )
        if self.dialect.prunes_by_equality and (found := equal_keys(node)):
            return self._semi_join(node, *found)
        condition = self.dialect.predicate(node.condition, rows)
        words = {
            "left": "LEFT JOIN",
            "right": "RIGHT JOIN",
            "full": "FULL JOIN",
            "semi": self.dialect.semi_join,
            "anti": self.dialect.anti_join,
        }
        shown = rows[: node.width]
        hint = self.dialect.broadcast.format("r") if self._is_few(node.right) else ""
        return (
            f"SELECT {hint}{self.labelled(shown)} FROM {left} l {words[node.how]} {right} r"
            f" ON {condition}"
        )

    def _semi_join(self, node: Join, equal: Expr, missed: int | None) -> str:
        """By `=`, and apart from it by keys that are NULL."""
        left, right = self.texts.table(node.left), self.texts.table(node.right)
        rows = self.row(node.left, "l") + self.row(node.right, "r")
        join = f"SELECT {self.labelled(rows[: node.width])} FROM {left} l {self.dialect.semi_join}"
        text = f"{join} {right} r ON {self.dialect.predicate(equal, rows)}"
        if missed is None:
            return text
        nulls = f"(SELECT * FROM {right} WHERE c{missed} IS NULL)"
        condition = self.dialect.predicate(node.condition, rows)
        return f"{text} UNION ALL {join} {nulls} r ON {condition}"

    @text.register
    def _(self, node: Aggregate) -> str:
        if not node.keys and not node.aggs:
            _, source, hint = self._from(self._block(node) or Block((node.input,), ()))
            return f"SELECT {self.labelled([])} FROM (SELECT {hint}count(*) AS n {source}) AS g"
        group = ", ".join(str(i + 1) for i in range(len(node.keys)))
        clause = f" GROUP BY {group}" if group else ""
        return self._grouped(node, clause) or f"{self._selected(node)}{clause}"

    def _grouped(self, node: Aggregate, clause: str) -> str:
        """Aggregates by themselves, and around them what is made of them; empty where all is as
        well said at once."""
        block = self._block(node)
        if self.dialect.grouped is None or block is None:
            return ""
        row, source, hint = self._from(block)
        keys = len(node.keys)
        found = self.dialect.grouped(block.row[:keys], block.row[keys:], row, "g")
        if found is None:
            return ""
        calls, made = found
        items = ", ".join(f"{call} AS a{i}" for i, call in enumerate(calls))
        return f"SELECT {self.labelled(made)} FROM (SELECT {hint}{items} {source}{clause}) AS g"

    @text.register
    def _(self, node: Union) -> str:
        parts = [
            f"SELECT {self.labelled(self.row(p, self.texts.names[p]))} FROM {self.texts.named(p)}"
            for p in node.parts
        ]
        return " UNION ALL ".join(parts)

    @text.register
    def _(self, node: SetOp) -> str:
        word = node.how.upper() + (" ALL" if node.all else "")
        sides = [
            f"SELECT {self.labelled(self.row(p, self.texts.names[p]))} FROM {self.texts.named(p)}"
            for p in (node.left, node.right)
        ]
        return f" {word} ".join(sides)

    @text.register
    def _(self, node: Distinct) -> str:
        name, row = self.below(node)
        return f"SELECT DISTINCT {self.labelled(row)} FROM {name}"

    @text.register
    def _(self, node: Window) -> str:
        name, row = self.below(node)
        calls = self.items(node.calls, row, start=len(row))
        return f"SELECT {', '.join([self.labelled(row), calls] if row else [calls])} FROM {name}"

    @text.register
    def _(self, node: Sort) -> str:
        name, row = self.below(node)
        return f"SELECT {self.labelled(row)} FROM {name}"

    @text.register
    def _(self, node: TopK) -> str:
        name, row = self.below(node)
        keys = ", ".join(self.dialect.render(k, row) for k in node.keys)
        order = f" ORDER BY {keys}" if keys else ""
        limit = f" LIMIT {node.limit}" if node.limit is not None else ""
        offset = f" OFFSET {node.offset}" if node.offset else ""
        return f"SELECT {self.labelled(row)} FROM {name}{order}{limit}{offset}"

    @text.register
    def _(self, node: Expand) -> str:
        """One scan: each row meets the numbers of the projections."""
        name, row = self.below(node)
        texts = []
        for alternatives in zip(*node.projections, strict=True):
            if all(a is alternatives[0] for a in alternatives):
                texts.append(self.dialect.render(alternatives[0], row))
                continue
            whens = " ".join(
                f"WHEN {i} THEN {self.dialect.render(a, row)}" for i, a in enumerate(alternatives)
            )
            texts.append(f"CASE e.i {whens} END")
        numbers = ", ".join(f"({i})" for i in range(len(node.projections)))
        return f"SELECT {self.labelled(texts)} FROM {name} CROSS JOIN (VALUES {numbers}) AS e(i)"

    @text.register
    def _(self, node: Bag) -> str:
        name, row = self.below(node)
        weight, keys = row[-1], row[:-1]
        group = f" GROUP BY {', '.join(keys)}" if keys else ""
        total = f"CAST(SUM({weight}) AS BIGINT) AS w"
        summed = f"SELECT {', '.join([*keys, total])} FROM {name}{group} HAVING SUM({weight}) > 0"
        shown = self.labelled([f"t.c{i}" for i in range(len(keys))])
        return f"SELECT {shown} FROM ({summed}) AS t {self.dialect.repeat.format(weight='t.w')}"

    @text.register
    def _(self, node: Generate) -> str:
        name, row = self.below(node)
        assert isinstance(node.generator, SparkCall)
        call = self.dialect.render(node.generator, row)
        made = ", ".join(f"c{len(row) + i}" for i in range(len(node.added)))
        outer = "OUTER " if node.outer else ""
        shown = self.labelled([*row, *(f"g.c{len(row) + i}" for i in range(len(node.added)))])
        return f"SELECT {shown} FROM {name} LATERAL VIEW {outer}{call} g AS {made}"

    @text.register
    def _(self, node: Opaque) -> str:
        inputs = []
        for part in node.parts:
            fields = zip(self.row(part, self.texts.names[part]), part.schema, strict=True)
            shown = ", ".join(f"{c} AS {self.dialect.quote(f.name)}" for c, f in fields)
            inputs.append(f"(SELECT {shown} FROM {self.texts.named(part)})")
        columns = ", ".join(f"c{i}" for i in range(node.width))
        return f"SELECT * FROM ({fill(node.text, inputs)}) AS o({columns})"


def empty(dialect: Dialect, schema: Schema) -> str:
    """No rows, with columns c0, c1, … of the schema's types."""
    nulls = [f"CAST(NULL AS {dialect.type_name(f.type)}) AS c{i}" for i, f in enumerate(schema)]
    return f"SELECT {', '.join(nulls) or '1 AS none'} WHERE FALSE"
