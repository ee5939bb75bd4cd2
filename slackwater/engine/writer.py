"""How each operator is written as SQL, for either engine.

Each distinct operator is written once, under a name `n0`, `n1`, … in order from the inputs up: as a
common table expression, or where it is read. What its columns are called, `Labels` says.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import singledispatchmethod

from slackwater.algebra.expr import Column, Expr, SparkCall, conjunction
from slackwater.algebra.patterns import membership_key, null_aware_key
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
from slackwater.engine.labels import Labels
from slackwater.engine.null_safe import equal_keys
from slackwater.engine.outward import Input, joined
from slackwater.engine.programs import HEAVY, Part
from slackwater.engine.sharing import Sharing
from slackwater.engine.spark_sql import fill
from slackwater.engine.texts import Texts
from slackwater.errors import InternalError
from slackwater.planner.places import (
    COPY_LEFT,
    COPY_RIGHT,
    HASH_LEFT,
    HASH_RIGHT,
    MERGE,
    Meeting,
)
from slackwater.types import Schema

FEW_BYTES = 2_000_000
"""Inputs up to this size are sent whole to wherever they are joined, if changes are."""
MEETS = {
    COPY_LEFT: "BROADCAST",
    COPY_RIGHT: "BROADCAST",
    HASH_LEFT: "SHUFFLE_HASH",
    HASH_RIGHT: "SHUFFLE_HASH",
    MERGE: "MERGE",
}
"""What Spark calls the ways in which the sides of a join meet."""
Inputs = Mapping[str, str]
"""What stands in FROM for each scanned source."""


def delivery(relation: Relation) -> tuple[Relation, list[int], tuple[Expr, ...]]:
    """What to compute, which of its columns to deliver, and in which order."""
    if isinstance(relation, Sort):
        return relation.input, list(range(relation.width)), relation.keys
    if isinstance(relation, Project) and isinstance(relation.input, Sort):
        picks = [e.index for e in relation.exprs if isinstance(e, Column)]
        if len(picks) == len(relation.exprs):
            return relation.input.input, picks, relation.input.keys
    return relation, list(range(relation.width)), ()


@dataclass
class Writer:
    """Writes one statement, and before it those of parts that it reads."""

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
    labels: Labels = field(init=False)

    def __post_init__(self) -> None:
        self.texts = Texts(self._needs)
        self.labels = Labels(self._block)

    def statement(self, relation: Relation, names: Sequence[str] | None) -> str:
        """The statement that delivers a relation."""
        relation, picks, keys = delivery(relation)
        top = self.name_of(relation)
        labels = names or [f"c{i}" for i in range(len(picks))]
        row, quote = self.row(relation, top), self.dialect.quote
        items = [f"{row[i]} AS {quote(n)}" for i, n in zip(picks, labels, strict=True)]
        order = ""
        if keys:
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
        start = self._start(block)
        if start is not None and len(block.leaves) > 1 and not block.told:
            inputs = [
                Input(self.texts.table(leaf), self._quoted(leaf), self._is_few(leaf))
                for leaf in block.leaves
            ]
            return joined(block, start, inputs, self.dialect)
        row: list[str] = []
        names = []
        values = block.values() if self.dialect.scalar_subqueries else ()
        for i, leaf in enumerate(block.leaves):
            if i in values:
                (value,) = self.row(leaf, "v")
                row.append(f"(SELECT {value} FROM {self.texts.table(leaf)} AS v)")
                continue
            row += self.row(leaf, f"t{i}")
            names.append(f"{self.texts.table(leaf)} AS t{i}")
        where = self.dialect.predicate(conjunction(block.conditions), row)
        clause = f" WHERE {where}" if block.conditions else ""
        hint = self._meetings((f"t{i}", meets) for i, meets in block.told if i not in values)
        return row, f"FROM {' CROSS JOIN '.join(names)}{clause}", hint

    def _meetings(self, told: Iterable[tuple[str, str]]) -> str:
        """How some inputs meet others, for an engine that can be told."""
        hints = ", ".join(f"{MEETS[meets]}({name})" for name, meets in told)
        return f"/*+ {hints} */ " if hints and self.dialect.join_hints else ""

    def _start(self, block: Block) -> int | None:
        """From which input the others are joined outward: one that is a change, or cut down to one;
        in one piece, else, the one from which least is read. None where an engine is not told."""
        if not self.dialect.broadcast or not self.broadcast:
            return None
        small = [i for i, leaf in enumerate(block.leaves) if self.sharing.is_small(leaf)]
        if small or not self.dialect.one_piece:
            return small[0] if small else None
        return min(range(len(block.leaves)), key=lambda i: self._read(block.leaves[i]))

    def _read(self, node: Relation) -> int:
        """The bytes of what an input is made from."""
        return sum(self.broadcast.get(scan.source, 0) for scan in node.scans())

    def _is_few(self, node: Relation) -> bool:
        """Is it worth sending to wherever it is joined?"""
        if not self.broadcast:
            return False
        return self.sharing.is_small(node) or self._read(node) < FEW_BYTES

    def _selected(self, node: Relation) -> str:
        """SELECT the block's row."""
        block = self._block(node)
        assert block is not None
        row, source, hint = self._from(block)
        return f"SELECT {hint}{self.items(node, block.row, row)} {source}"

    def _quoted(self, node: Relation) -> list[str]:
        return [self.dialect.quote(label) for label in self.labels.of(node)]

    def row(self, relation: Relation, alias: str) -> list[str]:
        """The texts of a relation's columns under an alias."""
        return [f"{alias}.{label}" for label in self._quoted(relation)]

    def items(self, node: Relation, exprs: Sequence[Expr], row: list[str]) -> str:
        """A select list: the expressions as a relation's columns."""
        return self.labelled(node, [self.dialect.render(e, row) for e in exprs])

    def labelled(self, node: Relation, texts: Sequence[str]) -> str:
        """A select list of ready texts. A row without columns still needs one in SQL."""
        named = zip(texts, self._quoted(node), strict=True)
        return ", ".join(f"{text} AS {label}" for text, label in named) or "1 AS none"

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
        return f"SELECT {self.labelled(node, stored)} FROM {self.inputs[node.source]} AS s"

    @text.register
    def _(self, node: Values) -> str:
        if not node.rows:
            return empty(self.dialect, node.fields, self._quoted(node))
        rows = [[self.dialect.render(e, []) for e in row] for row in node.rows]
        if len(rows) == 1:
            return f"SELECT {self.labelled(node, rows[0])}"
        columns = ", ".join(self._quoted(node))
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
        if pair := self._tested_by_value(node):
            outer, inner = (self.dialect.render(side, rows) for side in pair)
            word = "NOT IN" if node.how == "anti" else "IN"
            kept = self.labelled(node, rows[: node.left.width])
            return (
                f"SELECT {kept} FROM {left} l WHERE {outer} {word} (SELECT {inner} FROM {right} r)"
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
        told = self.dialect.one_piece or self._is_few(node.right)
        hint = self.dialect.broadcast.format("r") if told else ""
        if isinstance(node, Meeting):
            hint = self._meetings([("r", node.meets)])
        return (
            f"SELECT {hint}{self.labelled(node, shown)} FROM {left} l {words[node.how]} {right} r"
            f" ON {condition}"
        )

    def _tested_by_value(self, node: Join) -> tuple[Expr, Expr] | None:
        """The value of a row that is tested by [NOT] IN, and the values it is looked for among.

        An empty subquery keeps every row of NOT IN, NULLs too; both engines know it. From IN Spark
        infers more than from a join; of a small right side it is told to send it to the left.
        """
        if node.how == "anti":
            return null_aware_key(node)
        if not self.dialect.infers_from_in or self._is_few(node.right):
            return None
        if isinstance(node, Meeting):
            return None
        return membership_key(node)

    def _semi_join(self, node: Join, equal: Expr, missed: int | None) -> str:
        """By `=`, and apart from it by keys that are NULL."""
        left, right = self.texts.table(node.left), self.texts.table(node.right)
        rows = self.row(node.left, "l") + self.row(node.right, "r")
        shown = self.labelled(node, rows[: node.width])
        join = f"SELECT {shown} FROM {left} l {self.dialect.semi_join}"
        text = f"{join} {right} r ON {self.dialect.predicate(equal, rows)}"
        if missed is None:
            return text
        nulls = f"(SELECT * FROM {right} WHERE {self._quoted(node.right)[missed]} IS NULL)"
        condition = self.dialect.predicate(node.condition, rows)
        return f"{text} UNION ALL {join} {nulls} r ON {condition}"

    @text.register
    def _(self, node: Aggregate) -> str:
        if not node.keys and not node.aggs:
            _, source, hint = self._from(self._block(node) or Block((node.input,), ()))
            return f"SELECT 1 AS none FROM (SELECT {hint}count(*) AS n {source}) AS g"
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
        shown = self.labelled(node, made)
        return f"SELECT {shown} FROM (SELECT {hint}{items} {source}{clause}) AS g"

    @text.register
    def _(self, node: Union) -> str:
        parts = [f"SELECT {self._renamed(node, p)} FROM {self.texts.named(p)}" for p in node.parts]
        return " UNION ALL ".join(parts)

    @text.register
    def _(self, node: SetOp) -> str:
        word = node.how.upper() + (" ALL" if node.all else "")
        sides = [
            f"SELECT {self._renamed(node, p)} FROM {self.texts.named(p)}"
            for p in (node.left, node.right)
        ]
        return f" {word} ".join(sides)

    @text.register
    def _(self, node: Distinct) -> str:
        name, row = self.below(node)
        return f"SELECT DISTINCT {self.labelled(node, row)} FROM {name}"

    @text.register
    def _(self, node: Window) -> str:
        name, row = self.below(node)
        calls = [self.dialect.render(call, row) for call in node.calls]
        return f"SELECT {self.labelled(node, [*row, *calls])} FROM {name}"

    @text.register
    def _(self, node: Sort) -> str:
        name, row = self.below(node)
        return f"SELECT {self.labelled(node, row)} FROM {name}"

    @text.register
    def _(self, node: TopK) -> str:
        name, row = self.below(node)
        keys = ", ".join(self.dialect.render(k, row) for k in node.keys)
        order = f" ORDER BY {keys}" if keys else ""
        limit = f" LIMIT {node.limit}" if node.limit is not None else ""
        offset = f" OFFSET {node.offset}" if node.offset else ""
        return f"SELECT {self.labelled(node, row)} FROM {name}{order}{limit}{offset}"

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
        each = self.dialect.number.format(numbers=numbers)
        return f"SELECT {self.labelled(node, texts)} FROM {name} {each}"

    @text.register
    def _(self, node: Bag) -> str:
        name, row = self.below(node)
        weight, keys = row[-1], row[:-1]
        group = f" GROUP BY {', '.join(keys)}" if keys else ""
        total = f"CAST(SUM({weight}) AS BIGINT) AS {_TOTAL}"
        summed = f"SELECT {', '.join([*keys, total])} FROM {name}{group} HAVING SUM({weight}) > 0"
        shown = self.labelled(node, [f"t.{label}" for label in self._quoted(node)])
        repeat = self.dialect.repeat.format(weight=f"t.{_TOTAL}")
        return f"SELECT {shown} FROM ({summed}) AS t {repeat}"

    @text.register
    def _(self, node: Generate) -> str:
        name, row = self.below(node)
        assert isinstance(node.generator, SparkCall)
        call = self.dialect.render(node.generator, row)
        added = self._quoted(node)[len(row) :]
        outer = "OUTER " if node.outer else ""
        shown = self.labelled(node, [*row, *(f"g.{label}" for label in added)])
        return f"SELECT {shown} FROM {name} LATERAL VIEW {outer}{call} g AS {', '.join(added)}"

    @text.register
    def _(self, node: Opaque) -> str:
        inputs = []
        for part in node.parts:
            fields = zip(self.row(part, self.texts.names[part]), part.schema, strict=True)
            shown = ", ".join(f"{c} AS {self.dialect.quote(f.name)}" for c, f in fields)
            inputs.append(f"(SELECT {shown} FROM {self.texts.named(part)})")
        columns = ", ".join(self._quoted(node))
        return f"SELECT * FROM ({fill(node.text, inputs)}) AS o({columns})"

    def _renamed(self, node: Relation, part: Relation) -> str:
        """The columns of one of several inputs as those of an operator over all."""
        return self.labelled(node, self.row(part, self.texts.names[part]))


_TOTAL = "__total"


def empty(dialect: Dialect, schema: Schema, labels: Sequence[str]) -> str:
    """No rows, with columns of the schema's types."""
    types = [f"CAST(NULL AS {dialect.type_name(f.type)})" for f in schema]
    nulls = [f"{null} AS {label}" for null, label in zip(types, labels, strict=True)]
    return f"SELECT {', '.join(nulls) or '1 AS none'} WHERE FALSE"
