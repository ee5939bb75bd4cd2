"""The rules that fill the memo: how each relation of an expression follows from others.

Every law of `tvr/laws/` is a rule here as it is: it asks for its inputs' rows and changes, and
gets references to their groups.
"""

from __future__ import annotations

from collections.abc import Iterator

from slackwater.algebra.expr import substitute
from slackwater.algebra.relation import (
    Aggregate,
    Bag,
    Join,
    Project,
    Relation,
    Scan,
    Union,
    Values,
)
from slackwater.tvr import zset
from slackwater.tvr.delta import LAWS, Deltas
from slackwater.tvr.laws import joins, linear
from slackwater.tvr.laws.keyed import affected, over
from slackwater.tvr.memo import (
    CHANGED,
    ROWS,
    SUMS,
    SUMS_CHANGED,
    WEIGHTED,
    Memo,
    Ref,
    Rule,
)
from slackwater.tvr.restrict import restrict, semi_join
from slackwater.tvr.rules import Operators
from slackwater.tvr.states.rows import local_keys
from slackwater.tvr.states.sums import SumState, is_invertible
from slackwater.tvr.time import CHANGE, split
from slackwater.types import WEIGHT


class Inputs(Deltas):
    """What a law asks for, as references to groups. `narrow`: inputs that are not stored are
    restricted to the keys of a change before they are joined with it."""

    def __init__(self, memo: Memo, narrow: bool = False) -> None:
        super().__init__(memo.changed, references=memo.promises.references)
        self._memo = memo
        self._narrow = narrow

    def z(self, node: Relation, old: bool = False) -> Relation:
        return self._memo.ref(node, WEIGHTED, old)

    def rows(self, node: Relation, old: bool = False) -> Relation:
        return self._memo.ref(node, ROWS, old)

    def sure(self, relation: Relation) -> Relation:
        return self._memo.ref(relation, CHANGED)

    def is_linear(self, node: Relation) -> bool:
        return not self._narrow

    @property
    def narrows(self) -> bool:
        return self._narrow


def _carries(form: Relation) -> bool:
    """Is the operator computed from its inputs' weighted rows, and its change from theirs?"""
    return isinstance(form, (*linear.LINEAR, Union)) or is_inner(form)


def _narrows(form: Relation) -> bool:
    """Is it a projection of what is no such operator, so that there is less of it to keep?"""
    return isinstance(form, Project) and not _carries(form.input)


def is_inner(node: Relation) -> bool:
    """Is it an inner join?"""
    return isinstance(node, Join) and node.how == "inner"


# Of a relation restricted to keys there is one way down to stored rows: its operators over
# restricted inputs. That it can also be merged from what it was and its change, or turned from rows
# into weighted ones and back, would only multiply the groups.


def _over_rows(memo: Memo, ref: Ref, form: Relation) -> Relation:
    """An operator over its inputs' rows. Where these are to be restricted, what merely carries them
    is part of it; a block of joins always is."""
    old, restricted = ref.trait.old, ref.trait.wanted is not None

    def rows_of(node: Relation, above: Relation) -> Relation:
        carried = memo.pruned and restricted and _carries(node)
        if carried or _is_inside(memo, node, above):
            return node.with_children(lambda below: rows_of(below, node))
        return memo.ref(node, ROWS, old)

    return form.with_children(lambda below: rows_of(below, form))


# A block is a projection of an inner join, in a form that a rewrite has given. It is one operator:
# the join inside is no relation of its own, since the projection is as good to keep.


def _is_inside(memo: Memo, node: Relation, above: Relation) -> bool:
    """Is it the join of the block of which the operator above is the projection?"""
    return memo.pruned and isinstance(above, Project) and is_inner(node) and not memo.is_own(node)


# -- rows


def recompute(memo: Memo, ref: Ref, form: Relation) -> Iterator[Relation]:
    """Q@t = Q(R@t); restricted to keys, from inputs that are, as far as keys can be followed"""
    whole = _over_rows(memo, ref, form)
    if ref.trait.wanted is None:
        yield whole
    else:
        yield restrict(whole, ref.trait.keys, ref.trait.wanted)


def select_keys(memo: Memo, ref: Ref, form: Relation) -> Iterator[Relation]:
    """R|K = R ⋉ K"""
    assert ref.trait.wanted is not None
    yield semi_join(ref.at(ref.trait.whole), ref.trait.keys, ref.trait.wanted)


def without_weights(memo: Memo, ref: Ref, form: Relation) -> Iterator[Relation]:
    """Rows are what rows with weights stand for"""
    restricted = ref.trait.wanted is not None and not isinstance(form, Scan)
    if not (memo.pruned and restricted):
        yield Bag(_like(ref, memo.ref(form, WEIGHTED, ref.trait.old)))


def with_weights(memo: Memo, ref: Ref, form: Relation) -> Iterator[Relation]:
    """Each row with weight one; restricted, not what carries its inputs' weights, unless it is what
    leaves columns out of rows that may be kept"""
    carried = ref.trait.wanted is not None and _carries(form) and not _narrows(form)
    if not (memo.pruned and carried):
        yield zset.with_weight(_like(ref, memo.ref(form, ROWS, ref.trait.old)))


def carry_weights(memo: Memo, ref: Ref, form: Relation) -> Iterator[Relation]:
    """Operators that are linear in an input carry its weights along"""
    found = _carried(memo, form, ref.trait.old)
    if found is not None and ref.trait.wanted is not None:
        found = restrict(found, ref.trait.keys, ref.trait.wanted)
    if found is not None:
        yield found


def _carried(memo: Memo, form: Relation, old: bool) -> Relation | None:
    inputs = Inputs(memo)
    match form:
        case Union():
            return linear.added(form, [inputs.z(p, old) for p in form.parts])
        case Join(how="inner"):
            inner = joins.flatten(form)
            return joins.outward(inner, [inputs.z(r, old) for r in inner.inputs], 0)
        case Join(how="left" | "semi" | "anti"):
            return joins.by_left_rows(form, inputs.z(form.left, old), inputs.rows(form.right, old))
        case _ if isinstance(form, linear.LINEAR):
            below = form.inputs[0]
            inside = _carried(memo, below, old) if _is_inside(memo, below, form) else None
            return _over_z(form, inside or inputs.z(below, old))
    return None


def _over_z(form: Relation, z: Relation) -> Relation:
    """A linear operator over rows with weights; projections of projections are one."""
    if not isinstance(form, Project):
        return linear.over_weighted(form, z)
    if isinstance(z, Union):
        return zset.plus([_over_z(form, part) for part in z.parts])
    exprs, names = (*form.exprs, zset.weight(z)), (*form.names, WEIGHT)
    if not isinstance(z, Project):
        return Project(z, exprs, names)
    return Project(z.input, tuple(substitute(e, z.exprs) for e in exprs), names)


def merge(memo: Memo, ref: Ref, form: Relation) -> Iterator[Relation]:
    """R@t' = R@t + ΔR"""
    if memo.pruned and ref.trait.wanted is not None and _carries(form):
        return
    before, change = memo.ref(form, WEIGHTED, old=True), memo.ref(form, CHANGED)
    yield zset.plus([_like(ref, before), _like(ref, change)])


def _like(ref: Ref, other: Ref) -> Relation:
    """Another relation of the same expression, restricted as one is."""
    if ref.trait.wanted is None:
        return other
    return restrict(other, ref.trait.keys, ref.trait.wanted)


# -- changes


def laws_of_outer_joins(memo: Memo, ref: Ref, form: Relation) -> Iterator[Relation]:
    """Δ(L ⟕ R) by every law: rows without a partner are there at once, and go with the first"""
    return laws(memo, ref, form)


def laws(memo: Memo, ref: Ref, form: Relation) -> Iterator[Relation]:
    """ΔQ by every law of its operator"""
    inputs = Inputs(memo)
    if isinstance(form, Union):
        yield linear.added(form, [inputs.sure(p) for p in form.parts if inputs.changes(p)])
    elif isinstance(form, linear.LINEAR):
        below = form.inputs[0]
        inside = _by_law(memo, below) if _is_inside(memo, below, form) else [inputs.sure(below)]
        for change in inside:
            yield _over_z(form, change)
    else:
        yield from _by_law(memo, form)


def _by_law(memo: Memo, form: Relation) -> Iterator[Relation]:
    """The change of an operator by its laws; of an inner join, unless all are wanted, by its own
    alone: its change follows from those of its inputs, whatever they come from. What is read of
    them is restricted to keys where promises may tell it, too."""
    laws = LAWS[type(form)]
    if memo.pruned and is_inner(form):
        laws = (joins.delta_inner,)
    told = memo.promises.references and not is_inner(form)
    narrowing = memo.is_own(form) or not memo.pruned or told
    for law in laws:
        for narrow in (False, True) if narrowing else (False,):
            found = law(Inputs(memo, narrow), form)
            if found is not None:
                yield found


def affected_keys(memo: Memo, ref: Ref, form: Relation) -> Iterator[Relation]:
    """ΔQ = Q(R'|K) − Q@t|K, K the keys in ΔR: what was is read, not computed"""
    keys = local_keys(form)
    if keys is None:
        return
    inputs = Inputs(memo)
    below, own = keys
    wanted = affected(inputs, form.inputs, [below])
    after = over(form, [restrict(inputs.rows(form.inputs[0]), below, wanted)])
    before = restrict(memo.ref(form, WEIGHTED, old=True), own, wanted)
    yield zset.consolidate(zset.plus([zset.with_weight(after), zset.negate(before)]))


def difference(memo: Memo, ref: Ref, form: Relation) -> Iterator[Relation]:
    """ΔR = R@t' − R@t"""
    if memo.pruned and _carries(form) and not _narrows(form):
        return  # its change follows from those of its inputs, whatever they come from
    after, before = memo.ref(form, WEIGHTED), memo.ref(form, WEIGHTED, old=True)
    yield zset.plus([after, zset.negate(before)])


def no_change(memo: Memo, ref: Ref, form: Relation) -> Iterator[Relation]:
    """ΔR = 0: one of its forms reads nothing that changes, though others do"""
    yield Values((), ref.fields)


# -- partial sums


def _sums(form: Relation) -> SumState | None:
    """The partial sums of an aggregate that can be kept as such."""
    if isinstance(form, Aggregate) and is_invertible(form):
        return SumState(form, "#")
    return None


def _referring(memo: Memo, state: SumState, relation: Relation) -> Relation:
    """What is computed from stored sums, over the groups of those sums instead."""

    def replaced(node: Relation) -> Relation:
        if not isinstance(node, Scan) or not node.source.startswith("#"):
            return node
        time = split(node.source)[1]
        if time == CHANGE:
            return memo.ref(state.node, SUMS_CHANGED, schema=state.schema)
        return memo.ref(state.node, SUMS, time == "@old", state.schema)

    found: Relation = relation.rewrite(replaced)
    return found


def summed(memo: Memo, ref: Ref, form: Relation) -> Iterator[Relation]:
    """S@t = γ(R@t), as partial sums; ΔS = γ(ΔR)"""
    state = _sums(form)
    if state is None:
        return
    if ref.trait.kind == SUMS_CHANGED:
        yield state.change(Inputs(memo))
    else:
        yield state.initial(_AtTime(memo, ref.trait.old))


def merge_sums(memo: Memo, ref: Ref, form: Relation) -> Iterator[Relation]:
    """S@t' = S@t ⊕ ΔS"""
    state = _sums(form)
    if state is not None:
        before = memo.ref(form, SUMS, old=True, schema=state.schema)
        change = memo.ref(form, SUMS_CHANGED, schema=state.schema)
        yield zset.plus([_like(ref, before), _like(ref, change)])


def rows_of_sums(memo: Memo, ref: Ref, form: Relation) -> Iterator[Relation]:
    """Q@t from S@t"""
    state = _sums(form)
    if state is not None:
        yield _referring(memo, state, state.rows("@old" if ref.trait.old else "@new"))


def change_of_sums(memo: Memo, ref: Ref, form: Relation) -> Iterator[Relation]:
    """ΔQ from S@t and ΔS: of each group that changes, less what it was, plus what it is"""
    state = _sums(form)
    if state is not None:
        yield _referring(memo, state, state.delta(Inputs(memo)))


class _AtTime(Inputs):
    """All inputs at one time."""

    def __init__(self, memo: Memo, old: bool) -> None:
        super().__init__(memo)
        self._old = old

    def z(self, node: Relation, old: bool = False) -> Relation:
        return super().z(node, self._old)


OPERATORS = Operators(but=(Scan,))
AGGREGATES = Operators((Aggregate,))
CARRYING = Operators((*linear.LINEAR, Union, Join), joins=("inner", "left", "semi", "anti"))
RETRACTING = Operators((Join,), joins=("left", "full"))
OTHERS = Operators(joins=("inner", "right", "semi", "anti"), but=(Scan,))
EVERY_KIND = (ROWS, WEIGHTED, CHANGED, SUMS, SUMS_CHANGED)

FOLLOWING = "following"
"""What all methods share: inner joins, groups and whatever else is followed by its changes."""

RULES = (
    Rule("recompute", "recompute", (ROWS,), recompute, OPERATORS),
    Rule("select_keys", "", EVERY_KIND, select_keys, restricted=True, first=True),
    Rule("without_weights", "", (ROWS,), without_weights, first=True),
    Rule("with_weights", "", (WEIGHTED,), with_weights, OPERATORS, first=True),
    Rule("carry_weights", "", (WEIGHTED,), carry_weights, CARRYING),
    Rule("merge", FOLLOWING, (WEIGHTED,), merge, after=True, first=True),
    Rule("laws", FOLLOWING, (CHANGED,), laws, OTHERS, False, True),
    Rule("laws_of_outer_joins", "im1", (CHANGED,), laws_of_outer_joins, RETRACTING, False, True),
    Rule("affected_keys", FOLLOWING, (CHANGED,), affected_keys, OPERATORS, False, True),
    Rule("change_of_sums", FOLLOWING, (CHANGED,), change_of_sums, AGGREGATES, False, True),
    Rule("difference", "recompute", (CHANGED,), difference, OPERATORS, False, True, first=True),
    Rule("no_change", "", (CHANGED,), no_change, after=False, first=True),
    Rule("summed", "", (SUMS, SUMS_CHANGED), summed, AGGREGATES, restricted=False),
    Rule("merge_sums", FOLLOWING, (SUMS,), merge_sums, AGGREGATES, after=True),
    Rule("rows_of_sums", "", (ROWS,), rows_of_sums, AGGREGATES, restricted=False),
)
"""The laws of every operator, and how rows, changes and sums of one expression follow from each
other."""
