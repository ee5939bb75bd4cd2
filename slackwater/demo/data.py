"""TPC-H data: generated once into a folder, read as Arrow tables."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa

from slackwater.errors import StateError, UserError
from slackwater.types import Schema, Struct, parse_type, to_arrow_schema

TABLES: dict[str, str] = {
    "nation": "n_nationkey BIGINT NOT NULL, n_name STRING, n_regionkey BIGINT, n_comment STRING",
    "customer": """c_custkey BIGINT NOT NULL, c_name STRING, c_address STRING, c_nationkey BIGINT,
        c_phone STRING, c_acctbal DECIMAL(15,2), c_mktsegment STRING, c_comment STRING""",
    "orders": """o_orderkey BIGINT NOT NULL, o_custkey BIGINT, o_orderstatus STRING,
        o_totalprice DECIMAL(15,2), o_orderdate DATE, o_orderpriority STRING, o_clerk STRING,
        o_shippriority INT, o_comment STRING""",
    "lineitem": """l_orderkey BIGINT NOT NULL, l_partkey BIGINT, l_suppkey BIGINT,
        l_linenumber INT NOT NULL, l_quantity DECIMAL(15,2), l_extendedprice DECIMAL(15,2),
        l_discount DECIMAL(15,2), l_tax DECIMAL(15,2), l_returnflag STRING, l_linestatus STRING,
        l_shipdate DATE, l_commitdate DATE, l_receiptdate DATE, l_shipinstruct STRING,
        l_shipmode STRING, l_comment STRING""",
}
GENERATOR = "tpchgen-cli"


def generate(folder: Path, scale: float) -> Path:
    """The folder with one Parquet file per table, generated unless it is there already."""
    target = folder / f"tpch-sf{scale:g}"
    if all((target / f"{name}.parquet").exists() for name in TABLES):
        return target
    target.mkdir(parents=True, exist_ok=True)
    command = [_generator(), "parquet", "--scale-factor", f"{scale:g}", "--output-dir", str(target)]
    command += ["--tables", ",".join(TABLES), "--overwrite", "--quiet"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise StateError(
            f"{GENERATOR} failed in '{target}': {done.stderr.strip()}",
            code="GENERATOR_FAILED",
            hint="Check the free disk space and the folder's permissions.",
        )
    return target


def schema(table: str) -> Schema:
    """The columns of a TPC-H table."""
    parsed = parse_type(f"STRUCT<{TABLES[table]}>")
    assert isinstance(parsed, Struct)
    return parsed.fields


def load(folder: Path, table: str) -> Any:
    """A generated table in memory, with the types of its columns in the warehouse."""
    from pyarrow import parquet

    read = parquet.read_table(folder / f"{table}.parquet")
    target = to_arrow_schema(schema(table))
    return pa.table(
        [column.cast(f.type) for column, f in zip(read.columns, target, strict=True)], schema=target
    )


def _generator() -> str:
    """The generator's program: beside this Python, or on the path."""
    beside = str(Path(sys.executable).parent)
    found = shutil.which(GENERATOR, path=beside) or shutil.which(GENERATOR)
    if found is None:
        raise UserError(
            f"{GENERATOR} is not installed.",
            code="NO_GENERATOR",
            hint="Install it with: pip install 'slackwater[demo]'",
        )
    return found
