"""Segments on disk: written, adopted, checked, and honest about a full disk."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from slackwater.catalog.model import Run, Segment
from slackwater.engine import files, segment_writer
from slackwater.engine.storage import Storage
from slackwater.errors import InternalError, StateError
from slackwater.types import WEIGHT

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SCHEMA = pa.schema([pa.field("id", pa.int64(), False), ("name", pa.string()), (WEIGHT, pa.int64())])
RUN = Run("r1", "secret", "data/r1", "test")


@pytest.fixture
def storage(tmp_path: Path) -> Storage:
    return Storage(tmp_path / "warehouse")


def rows(*weights: int, first: int = 0) -> pa.RecordBatch:
    ids = list(range(first, first + len(weights)))
    return pa.record_batch([ids, [f"n{i}" for i in ids], list(weights)], schema=SCHEMA)


def read(storage: Storage, segments: tuple[Segment, ...]) -> pa.Table:
    return pa.concat_tables(pq.read_table(storage.path(s)) for s in segments)


def test_rows_come_back_with_their_weights(storage: Storage) -> None:
    (segment,) = storage.write(RUN, "t1", [rows(1, 3), rows(-2, first=2)], SCHEMA)
    assert segment.path.startswith("data/r1/t1/")
    assert (segment.rows, segment.min_weight, segment.max_weight) == (3, -2, 3)
    assert segment.bytes == storage.path(segment).stat().st_size
    assert read(storage, (segment,)).to_pydict() == {
        "id": [0, 1, 2],
        "name": ["n0", "n1", "n2"],
        WEIGHT: [1, 3, -2],
    }
    storage.check(segment)


def test_what_is_worth_it_is_compressed(storage: Storage) -> None:
    (few,) = storage.write(RUN, "t1", [rows(1, 3)], SCHEMA)
    (many,) = storage.write(RUN, "t1", [rows(*[1] * 2000)], SCHEMA)
    footers = [pq.read_metadata(storage.path(segment)) for segment in (few, many)]
    found = [footer.row_group(0).column(0).compression for footer in footers]
    assert found == ["UNCOMPRESSED", "ZSTD"]
    assert few.stats == {"id": [0, 1]}
    assert many.stats == {"id": [0, 1999]}


def test_names_of_directories_are_synced_once(
    storage: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[str] = []
    monkeypatch.setattr(
        files, "sync", lambda path: synced.append(path.relative_to(storage.root).as_posix())
    )
    (first,) = storage.write(RUN, "t1", [rows(1)], SCHEMA)
    place = first.path.rpartition("/")[0]
    assert synced == [place, "data/r1/t1", "data/r1", "data", "."]
    synced.clear()
    (second,) = storage.write(RUN, "t1", [rows(2)], SCHEMA)
    assert synced == [second.path.rpartition("/")[0], "data/r1/t1"]
    synced.clear()
    storage.write(RUN, "t2", [rows()], SCHEMA)
    assert synced == []


def test_no_rows_make_no_file(storage: Storage) -> None:
    assert storage.write(RUN, "t1", [], SCHEMA) == ()
    assert storage.write(RUN, "t1", [rows()], SCHEMA) == ()
    assert not list(storage.root.rglob("*.parquet"))


def test_writing_twice_in_a_run_overwrites_nothing(storage: Storage) -> None:
    first = storage.write(RUN, "t1", [rows(1)], SCHEMA)
    second = storage.write(RUN, "t1", [rows(2)], SCHEMA)
    assert read(storage, first + second)[WEIGHT].to_pylist() == [1, 2]


def test_row_groups_and_files_are_bounded(
    storage: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(segment_writer, "ROW_GROUP_ROWS", 100)
    monkeypatch.setattr(segment_writer, "FILE_BYTES", 4000)
    batches = [rows(*[1] * 70, first=70 * i) for i in range(30)]
    segments = storage.write(RUN, "t1", iter(batches), SCHEMA)
    assert len(segments) > 2
    assert sum(s.rows for s in segments) == 2100
    assert read(storage, segments)["id"].to_pylist() == list(range(2100))
    for segment in segments:
        footer = pq.read_metadata(storage.path(segment))
        assert all(footer.row_group(i).num_rows <= 100 for i in range(footer.num_row_groups))
        assert segment.bytes < 8000


def test_wide_rows_make_short_row_groups(storage: Storage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(segment_writer, "ROW_GROUP_BYTES", 10_000)
    wide = pa.record_batch([[1] * 5, ["x" * 4000] * 5, [1] * 5], schema=SCHEMA)
    (segment,) = storage.write(RUN, "t1", [wide] * 4, SCHEMA)
    assert pq.read_metadata(storage.path(segment)).num_row_groups == 4


def test_a_large_batch_is_cut_into_row_groups(storage: Storage) -> None:
    count = segment_writer.ROW_GROUP_ROWS * 2 + 5
    batch = pa.record_batch([range(count), ["x"] * count, [1] * count], schema=SCHEMA)
    (segment,) = storage.write(RUN, "t1", [batch], SCHEMA)
    footer = pq.read_metadata(storage.path(segment))
    sizes = [footer.row_group(i).num_rows for i in range(footer.num_row_groups)]
    assert sizes == [segment_writer.ROW_GROUP_ROWS] * 2 + [5]


def test_rows_without_weights_are_our_bug(storage: Storage) -> None:
    with pytest.raises(InternalError, match="no __w column"):
        storage.write(RUN, "t1", [], pa.schema([("id", pa.int64())]))


def test_an_error_in_the_input_leaves_no_file(storage: Storage) -> None:
    def broken() -> Iterator[pa.RecordBatch]:
        yield pa.record_batch([range(200_000), ["x"] * 200_000, [1] * 200_000], schema=SCHEMA)
        raise ValueError("bad row")

    with pytest.raises(ValueError, match="bad row"):
        storage.write(RUN, "t1", broken(), SCHEMA)
    assert not list(storage.root.rglob("*.parquet"))


def test_files_and_folders_are_synced(storage: Storage, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[str] = []
    real = os.fsync

    def spy(handle: int) -> None:
        synced.append(os.readlink(f"/proc/self/fd/{handle}"))
        real(handle)

    monkeypatch.setattr(os, "fsync", spy)
    (segment,) = storage.write(RUN, "t1", [rows(1)], SCHEMA)
    path = storage.path(segment)
    above = [p for p in path.parents if p.is_relative_to(storage.root)]
    assert synced == [str(path), *map(str, above)]


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT])
def test_a_full_disk_is_told(storage: Storage, monkeypatch: pytest.MonkeyPatch, code: int) -> None:
    def full(_handle: int) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(StateError) as error:
        storage.write(RUN, "t1", [rows(1)], SCHEMA)
    assert error.value.code == "DISK_FULL"
    assert not list(storage.root.rglob("*.parquet"))


def test_a_really_full_disk_is_told(storage: Storage, monkeypatch: pytest.MonkeyPatch) -> None:
    """/dev/full refuses every write, as a full disk does."""
    real = Path.open

    def on_full_disk(path: Path, mode: str = "r", *rest: Any, **more: Any) -> Any:
        return real(Path("/dev/full"), "wb") if mode == "xb" else real(path, mode, *rest, **more)

    monkeypatch.setattr(Path, "open", on_full_disk)
    with pytest.raises(StateError) as error:
        storage.write(RUN, "t1", [rows(*[1] * 200_000)], SCHEMA)
    assert error.value.code == "DISK_FULL"


def test_missing_and_truncated_segments_are_found(storage: Storage) -> None:
    (segment,) = storage.write(RUN, "t1", [rows(1, 1)], SCHEMA)
    path = storage.path(segment)
    os.truncate(path, segment.bytes - 1)
    with pytest.raises(StateError, match="should have") as error:
        storage.check(segment)
    assert error.value.code == "SEGMENT_TRUNCATED"
    path.unlink()
    with pytest.raises(StateError) as error:
        storage.check(segment)
    assert error.value.code == "SEGMENT_MISSING"
    assert error.value.hint


def test_external_files_keep_their_place_and_are_never_deleted(
    storage: Storage, tmp_path: Path
) -> None:
    outside = tmp_path / "lake" / "x.parquet"
    outside.parent.mkdir()
    outside.write_text("data")
    segment = Segment(str(outside), 1, 4, 1, 1)
    assert storage.path(segment) == outside
    storage.check(segment)
    for path in (str(outside), "../lake/x.parquet", "data/../../lake/x.parquet", "data"):
        assert storage.delete(path) == 0
    assert outside.exists()
    for directory in ("data", "..", "data/r1/t1", "published/x", str(tmp_path)):
        with pytest.raises(InternalError):
            storage.delete_directory(directory)


def test_adopting_takes_what_holds_rows(storage: Storage) -> None:
    place = storage.fresh_directory(RUN, "t1")
    (place / "_temporary").mkdir(parents=True)
    pq.write_table(pa.table(rows(2, -1)), place / "part-0.parquet")
    pq.write_table(pa.table(rows()), place / "part-1.parquet")
    pq.write_table(pa.table(rows(5)), place / "part-2.parquet", write_statistics=False)
    pq.write_table(pa.table(rows(9)), place / "_temporary" / "part-3.parquet")
    (place / "_SUCCESS").touch()
    (place / ".part-0.parquet.crc").touch()
    segments = storage.adopt(RUN, "t1", place)
    found = [(Path(s.path).name, s.rows, s.min_weight, s.max_weight) for s in segments]
    assert found == [("part-0.parquet", 2, -1, 2), ("part-2.parquet", 1, 5, 5)]
    for segment in segments:
        storage.check(segment)


def test_adopting_finds_the_weight_behind_nested_columns(storage: Storage) -> None:
    place = storage.fresh_directory(RUN, "t1")
    place.mkdir(parents=True)
    nested = pa.table({"s": [{WEIGHT: 70, "b": 80}], WEIGHT: [3]})
    pq.write_table(nested, place / "part-0.parquet")
    (segment,) = storage.adopt(RUN, "t1", place)
    assert (segment.min_weight, segment.max_weight) == (3, 3)


def test_adopting_refuses_broken_files_and_foreign_places(storage: Storage) -> None:
    place = storage.fresh_directory(RUN, "t1")
    place.mkdir(parents=True)
    (place / "part-0.parquet").write_text("PAR1 not really")
    with pytest.raises(StateError) as error:
        storage.adopt(RUN, "t1", place)
    assert error.value.code == "SEGMENT_TRUNCATED"
    for foreign in ("data/r2", "data/r1/../r2", storage.root):
        with pytest.raises(InternalError):
            storage.adopt(RUN, "t1", foreign)


def test_files_that_spark_wrote_are_adopted(storage: Storage, spark: SparkSession) -> None:
    place = storage.fresh_directory(RUN, "t1")
    frame = spark.range(0, 100, 1, 4).filter("id < 50").selectExpr("id", "id % 3 + 1 AS __w")
    frame.write.parquet(str(place))
    segments = storage.adopt(RUN, "t1", place)
    assert sum(s.rows for s in segments) == 50
    assert {(s.min_weight, s.max_weight) for s in segments} == {(1, 3)}
    assert sorted(read(storage, segments)["id"].to_pylist()) == list(range(50))


def test_free_space_is_known(storage: Storage) -> None:
    assert storage.free_bytes > 0
