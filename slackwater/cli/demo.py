"""`slackwater demo`: a TPC-H warehouse under a stream of changes, with a live display."""

from __future__ import annotations

import dataclasses
import shutil
import time
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from slackwater.cli import exits
from slackwater.cli.context import Session, session
from slackwater.cli.demo_view import Stage, print_batch, print_batch_line, print_summary
from slackwater.engine.spark_settings import SHORT_LIVED
from slackwater.errors import UserError

if TYPE_CHECKING:
    from slackwater import Warehouse
    from slackwater.demo.play import Tally
    from slackwater.demo.stream import Stream

MARKER = ".slackwater-demo"
BRIEF = {"spark.driver.extraJavaOptions": SHORT_LIVED}


def demo(
    ctx: typer.Context,
    folder: Annotated[Path, typer.Option(help="Where data and results go.")] = Path("demo-data"),
    scale: Annotated[float, typer.Option(help="TPC-H scale factor; 1 is 1 GB.")] = 0.13,
    batches: Annotated[int, typer.Option(min=1, help="How many change batches.")] = 10,
    share: Annotated[float, typer.Option(help="Share of orders that a batch touches.")] = 0.002,
    seed: Annotated[int, typer.Option(help="Of the stream of changes.")] = 7,
    spark_pass: Annotated[
        bool, typer.Option(help="Play the stream a second time, all on Spark.")
    ] = True,
) -> None:
    """Keep six TPC-H views fresh while ten batches of changes come in, then verify them."""
    own = session(ctx)
    begun = time.perf_counter()
    prepare(folder)
    data, stream = _data(own, folder, scale, batches, share, seed)
    placements = [own.placement, "spark"] if spark_pass else [own.placement]
    tallies, equal = _passes(own, folder, data, stream, list(dict.fromkeys(placements)))
    first = folder / f"warehouse-{own.placement}"
    print_summary(own, tallies, equal, first, time.perf_counter() - begun)
    if not all(equal.values()):
        raise typer.Exit(exits.DIFFERENT)


def prepare(folder: Path) -> None:
    """An own folder, with the warehouses of an earlier demo removed; never somebody else's."""
    marker = folder / MARKER
    if folder.exists() and any(folder.iterdir()) and not marker.exists():
        raise UserError(
            f"Folder '{folder}' is not empty and was not made by the demo.",
            code="BAD_FOLDER",
            hint="Choose another one with --folder.",
        )
    folder.mkdir(parents=True, exist_ok=True)
    marker.touch()
    for old in folder.glob("warehouse-*"):
        shutil.rmtree(old)


def _data(
    own: Session, folder: Path, scale: float, batches: int, share: float, seed: int
) -> tuple[Path, Stream]:
    from slackwater.demo.data import generate, load
    from slackwater.demo.stream import make_stream

    with own.err.status(f"Generating TPC-H data at scale factor {scale:g}"):
        data = generate(folder, scale)
        stream = make_stream(load(data, "orders"), load(data, "lineitem"), batches, share, seed)
    rows = sum(batch.rows for batch in stream.batches)
    own.out.print(
        f"TPC-H at scale factor {scale:g}: {stream.orders.num_rows:,} orders, "
        f"{stream.lineitem.num_rows:,} lineitem rows; then {batches} batches with {rows:,} "
        f"changed rows (seed {seed})."
    )
    return data, stream


def _passes(
    own: Session, folder: Path, data: Path, stream: Stream, placements: list[str]
) -> tuple[dict[str, Tally], dict[str, bool]]:
    """Each pass in a warehouse of its own, all on one Spark session; views equal in all?"""
    tallies: dict[str, Tally] = {}
    equal: dict[str, bool] = {}
    with ExitStack() as opened:
        spark: Any = None
        for placement in placements:
            where = dataclasses.replace(
                own,
                warehouse=str(folder / f"warehouse-{placement}"),
                placement=placement,
                catalog_url=None,
            )
            db = opened.enter_context(where.open(create=True, spark=spark, spark_config=BRIEF))
            tallies[placement] = _pass(own, db, data, stream, placement)
            verified = _verified(own, dataclasses.replace(where, placement="auto"))
            equal = {view: same and equal.get(view, True) for view, same in verified.items()}
            spark = db.spark if placement != placements[-1] else None
    return tallies, equal


def _verified(own: Session, where: Session) -> dict[str, bool]:
    """Which views equal their recompute, wherever that runs: Spark's work is checked, too."""
    from slackwater.demo.views import VIEWS

    with own.err.status("Verifying"), where.open() as db:
        return {view: db.verify(view).equal for view in VIEWS}


def _pass(own: Session, db: Warehouse, data: Path, stream: Stream, placement: str) -> Tally:
    """Load, create the views, play the stream; shown step by step."""
    from slackwater.demo import play
    from slackwater.demo.views import VIEWS

    tally = play.Tally()
    own.out.rule(f"placement = {placement}", align="left")
    show = print_batch if placement == own.placement else print_batch_line
    with Stage(own, db, total=len(stream.batches) + 2) as stage:
        stage.next("load")
        play.create_tables(db)
        for name, rows, seconds in play.load_tables(db, data, stream):
            own.out.print(f"loaded {name:<9}{rows:>9,} rows in {seconds:5.2f} s {stage.engines()}")
        stage.next("first computation of six views")
        play.create_views(db)
        tally.add(tuple(db.refresh(*VIEWS)), initial=True)
        for done in play.play(db, stream.batches):
            tally.add(done.reports)
            stage.next(f"batch {done.batch.number} of {len(stream.batches)}")
            show(own, done, tally)
    return tally
