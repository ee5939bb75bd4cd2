"""Publication: plain Parquet behind a pointer, repeated when interrupted."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from slackwater.catalog.model import (
    CreateView,
    Drop,
    FinishRun,
    ReplaceSegments,
    SetAsOf,
    View,
)
from slackwater.catalog.store import Catalog
from slackwater.engine.publish import (
    Pointer,
    current,
    publish_missing,
    publish_view,
    published_folder,
    safe_name,
    unpublish,
)
from slackwater.engine.storage import Storage
from slackwater.errors import InternalError
from slackwater.types import WEIGHT, schema_from_json, to_arrow_schema
from tests.catalogs import SCHEMA, now, python, view

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ARROW = to_arrow_schema(SCHEMA).append(pa.field(WEIGHT, pa.int64()))

PUBLISH = """
import sys
from pathlib import Path
from slackwater.catalog.store import Catalog
from slackwater.engine.publish import publish_missing
from slackwater.engine.storage import Storage
with Catalog.open(sys.argv[1]) as catalog:
    publish_missing(Storage(Path(sys.argv[2])), catalog.snapshot())
"""


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/catalog.db"


@pytest.fixture
def catalog(url: str):
    with Catalog.open(url) as opened:
        yield opened


@pytest.fixture
def storage(tmp_path: Path) -> Storage:
    return Storage(tmp_path / "warehouse")


def refresh(catalog: Catalog, storage: Storage, target: View, rows: list[tuple]) -> View:
    """Commit rows (id, name, weight) as the view's content; the view as it is then."""
    run = catalog.begin_run("refresh")
    columns = [list(c) for c in zip(*rows, strict=True)] if rows else [[], [], []]
    batch = pa.record_batch(columns, schema=ARROW)
    segments = storage.write(run, target.id, [batch], ARROW)
    updates = [ReplaceSegments(target.id, segments), SetAsOf(target.id, {}, now())]
    if target.id not in catalog.snapshot():
        updates.insert(0, CreateView(target))
    catalog.commit([run.requirement], [*updates, FinishRun(run.id)])
    found = catalog.snapshot().get(target.id)
    assert isinstance(found, View)
    return found


def publish(catalog: Catalog, storage: Storage, target: View) -> Pointer:
    snapshot = catalog.snapshot()
    return publish_view(storage, target, snapshot.segments(target.id), snapshot.commit)


def published(storage: Storage, name: str) -> list[tuple]:
    """What another tool would read."""
    folder = published_folder(storage, name)
    pointer = current(folder)
    assert pointer is not None
    rows = pa.concat_tables(pq.read_table(folder / f) for f in pointer.files)
    assert rows.column_names == [f.name for f in SCHEMA]
    assert rows.num_rows == pointer.rows
    return [tuple(row.values()) for row in rows.to_pylist()]


def test_rows_are_published_without_weights(catalog: Catalog, storage: Storage) -> None:
    gross = refresh(catalog, storage, view("gross"), [(1, "a", 1), (2, None, 1)])
    pointer = publish(catalog, storage, gross)
    assert (pointer.version, pointer.commit, pointer.rows) == (1, 1, 2)
    assert published(storage, "gross") == [(1, "a"), (2, None)]


def test_rows_are_repeated_by_their_weight(catalog: Catalog, storage: Storage) -> None:
    gross = refresh(catalog, storage, view("gross"), [(1, "a", 3), (2, "b", 1), (3, "c", 2)])
    publish(catalog, storage, gross)
    assert published(storage, "gross") == [(1, "a")] * 3 + [(2, "b")] + [(3, "c")] * 2


def test_an_empty_view_is_published_with_its_schema(catalog: Catalog, storage: Storage) -> None:
    gross = refresh(catalog, storage, view("gross"), [])
    publish(catalog, storage, gross)
    assert published(storage, "gross") == []


def test_deletions_must_be_consolidated_first(catalog: Catalog, storage: Storage) -> None:
    gross = refresh(catalog, storage, view("gross"), [(1, "a", 2), (1, "a", -1)])
    with pytest.raises(InternalError, match="deletes rows"):
        publish(catalog, storage, gross)
    consolidated = pa.record_batch([[1], ["a"], [1]], schema=ARROW)
    publish_view(storage, gross, (), 1, read=lambda *_: [consolidated])
    assert published(storage, "gross") == [(1, "a")]


def test_publishing_again_writes_nothing(catalog: Catalog, storage: Storage) -> None:
    gross = refresh(catalog, storage, view("gross"), [(1, "a", 1)])
    first = publish(catalog, storage, gross)
    assert publish(catalog, storage, gross) == first


def test_the_pointer_never_goes_back(catalog: Catalog, storage: Storage) -> None:
    old = refresh(catalog, storage, view("gross"), [(1, "old", 1)])
    before = catalog.snapshot()
    new = refresh(catalog, storage, old, [(1, "new", 1)])
    publish(catalog, storage, new)
    late = publish_view(storage, old, before.segments(old.id), before.commit)
    assert late.version == 2
    assert published(storage, "gross") == [(1, "new")]


def test_the_latest_two_versions_are_kept(catalog: Catalog, storage: Storage) -> None:
    gross = view("gross")
    for i in range(4):
        gross = refresh(catalog, storage, gross, [(i, "x", 1)])
        publish(catalog, storage, gross)
    folder = published_folder(storage, "gross")
    assert sorted(p.name for p in folder.iterdir()) == ["CURRENT", "v=3", "v=4"]


def test_a_view_of_the_same_name_takes_the_place(catalog: Catalog, storage: Storage) -> None:
    old = view("gross")
    for i in range(3):
        old = refresh(catalog, storage, old, [(i, "old", 1)])
    publish(catalog, storage, old)
    catalog.commit(updates=[Drop(old.id)])
    new = refresh(catalog, storage, view("Gross"), [(9, "new", 1)])
    publish(catalog, storage, new)
    assert published(storage, "gross") == [(9, "new")]
    unpublish(storage, old)  # late
    assert published(storage, "gross") == [(9, "new")]


def test_dropped_views_are_removed(catalog: Catalog, storage: Storage) -> None:
    one = refresh(catalog, storage, view("one"), [(1, "a", 1)])
    two = refresh(catalog, storage, view("two"), [(1, "a", 1)])
    assert publish_missing(storage, catalog.snapshot()) == 2
    before = catalog.snapshot()
    catalog.commit(updates=[Drop(one.id), Drop(two.id)])
    unpublish(storage, one)
    three = refresh(catalog, storage, view("three"), [(1, "a", 1)])
    publish(catalog, storage, three)
    assert publish_missing(storage, before) == 1  # an old snapshot brings `one` back, at most
    assert publish_missing(storage, catalog.snapshot()) == 2
    folders = [p.name for p in (storage.root / "published").iterdir() if p.name != ".locks"]
    assert folders == [safe_name("three")]


def test_views_never_refreshed_are_not_published(catalog: Catalog, storage: Storage) -> None:
    catalog.commit(updates=[CreateView(view("new"))])
    assert publish_missing(storage, catalog.snapshot()) == 0


@pytest.mark.parametrize("point", ["publish.writing", "publish.before_pointer", "publish.after"])
def test_a_killed_publication_is_repeated(
    catalog: Catalog, storage: Storage, url: str, point: str
) -> None:
    gross = refresh(catalog, storage, view("gross"), [(1, "old", 1)])
    publish(catalog, storage, gross)
    refresh(catalog, storage, gross, [(1, "new", 1)])
    process = python(PUBLISH, url, str(storage.root), SLACKWATER_CRASH_AT=point)
    process.communicate(timeout=60)
    assert process.returncode == -signal.SIGKILL
    expected = "new" if point == "publish.after" else "old"
    assert published(storage, "gross") == [(1, expected)]
    publish_missing(storage, catalog.snapshot())
    assert published(storage, "gross") == [(1, "new")]
    left = {p.name for p in published_folder(storage, "gross").iterdir()}
    assert left == {"CURRENT", "v=1", "v=2"}


@pytest.mark.parametrize("name", ["../x", "/etc/passwd", "..", " ", "a" * 3000, "ü/ß", "con"])
def test_any_name_is_safe(catalog: Catalog, storage: Storage, name: str) -> None:
    folder = published_folder(storage, name)
    assert folder.parent == storage.root / "published"
    assert len(folder.name) <= 49
    assert folder.name.isascii()
    publish(catalog, storage, refresh(catalog, storage, view(name), [(1, "a", 1)]))
    assert published(storage, name) == [(1, "a")]


def test_different_names_never_share_a_folder() -> None:
    names = ["../x", ".._x", "_x", "x", "x ", "x/", "a" * 41, "a" * 42]
    assert len({safe_name(n) for n in names}) == len(names)
    assert safe_name("Sales") == safe_name("SALES")


EVERY_TYPE = """
SELECT 1Y AS a, 2S AS b, 3 AS c, 4L AS d, 1.5F AS e, 2.5D AS f, 'x' AS g, X'01' AS h, true AS i,
  12.30BD AS j, DATE '9999-12-31' AS k, TIMESTAMP '9999-12-31 23:59:59.123456' AS l,
  TIMESTAMP_NTZ '0001-01-01 00:00:00' AS m, array(1, null) AS n, map('k', 1, 'l', null) AS o,
  named_struct('p', 1, 'q', array('r')) AS s, CAST(null AS INT) AS u
"""


@pytest.mark.parametrize("timestamps", ["INT96", "TIMESTAMP_MICROS"])
def test_every_type_that_spark_wrote_is_published(
    catalog: Catalog, storage: Storage, spark: SparkSession, timestamps: str
) -> None:
    frame = spark.sql(f"SELECT *, 2L AS {WEIGHT} FROM ({EVERY_TYPE})")
    run = catalog.begin_run("refresh")
    place = storage.fresh_directory(run, "v1")
    key = "spark.sql.parquet.outputTimestampType"
    spark.conf.set(key, timestamps)
    try:
        frame.write.parquet(str(place))
    finally:
        spark.conf.unset(key)
    segments = storage.adopt(run, "v1", place)
    json = frame.drop(WEIGHT).schema.jsonValue()
    publish_view(storage, View("v1", "all", schema_from_json(json), 1), segments, 1)
    folder = published_folder(storage, "all")
    expected = spark.sql(f"{EVERY_TYPE} UNION ALL {EVERY_TYPE}")
    found = spark.read.parquet(str(folder / "v=1"))
    names = [f"CAST({c} AS STRING)" for c in found.columns if c != "h"]
    assert found.selectExpr(*names).collect() == expected.selectExpr(*names).collect()
