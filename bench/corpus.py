"""The TPC-H and TPC-DS corpora: data, schemas, and query texts in Spark's dialect.

`schema.sql` beside the query texts is the one place where the tables' types are written. TPC-H
columns are all NOT NULL; of TPC-DS the primary keys are. Generated data is kept, since it is a
function of kind and scale factor alone, in the folder that `SLACKWATER_DATA` names or in the
user's cache.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import duckdb

from slackwater.errors import UserError
from slackwater.types import BIGINT, INT, Field, Schema, parse_type

KINDS = ("tpch", "tpcds")
QUERIES = Path(__file__).parent / "queries"


def data_folder() -> Path:
    """Where generated data is kept."""
    if named := os.environ.get("SLACKWATER_DATA"):
        return Path(named)
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) / "slackwater" / "data"


def queries(kind: str) -> dict[str, str]:
    """Query texts by name (`q1`, `q2`, …), in order."""
    files = _folder(kind).glob("q*.sql")
    ordered = sorted(files, key=lambda file: int(file.stem[1:]))
    return {file.stem: file.read_text() for file in ordered}


def ddl(kind: str) -> dict[str, str]:
    """The CREATE TABLE statement of each table."""
    text = (_folder(kind) / "schema.sql").read_text()
    statements = [part.strip() for part in text.split(";") if part.strip()]
    return {statement.split()[2]: statement for statement in statements}


def keys(kind: str) -> str:
    """The statements that declare keys and references."""
    return (_folder(kind) / "keys.sql").read_text()


def schemas(kind: str) -> dict[str, Schema]:
    """The schema of each table."""
    return {table: _schema(statement) for table, statement in ddl(kind).items()}


def _schema(statement: str) -> Schema:
    lines = re.findall(r"^  (\w+) (.+?)( NOT NULL)?,?$", statement, re.M)
    return tuple(Field(name, parse_type(t), not required) for name, t, required in lines)


def generate(kind: str, scale: float, folder: Path | None = None) -> dict[str, Path]:
    """The Parquet file of each table at a scale factor, generated when it is not there yet."""
    target = (folder or data_folder()) / f"{kind}-{scale:g}"
    if not target.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=target.parent) as work:
            made = Path(work) / "made"
            made.mkdir()
            _generate(kind, scale, made)
            _publish(made, target)
    return {table: target / f"{table}.parquet" for table in ddl(kind)}


def _publish(made: Path, target: Path) -> None:
    """Move complete data into place; another process that was faster wins."""
    try:
        made.rename(target)
    except OSError:
        if not target.exists():
            raise


def _generate(kind: str, scale: float, folder: Path) -> None:
    if kind == "tpch":
        _generate_tpch(scale, folder)
    else:
        _generate_tpcds(scale, folder)


def _generate_tpch(scale: float, folder: Path) -> None:
    beside = Path(sys.executable).with_name("tpchgen-cli")
    program = str(beside) if beside.exists() else shutil.which("tpchgen-cli")
    if program is None:
        raise _not_installed("tpchgen-cli")
    command = [program, "parquet", "--quiet", "-s", f"{scale:g}", "-o", str(folder)]
    subprocess.run(command, check=True, capture_output=True)


def _generate_tpcds(scale: float, folder: Path) -> None:
    if scale < 0.01:
        raise UserError(
            f"TPC-DS data cannot be generated at scale factor {scale:g}.",
            code="BAD_SCALE",
            hint="At 0.001 dsdgen was still busy after minutes; use 0.01 or more.",
        )
    with duckdb.connect() as con:
        con.load_extension(str(_tpcds_extension()))
        con.execute(f"CALL dsdgen(sf = {scale:g})")
        for table, schema in schemas("tpcds").items():
            columns = ", ".join(_as_declared(field) for field in schema)
            con.execute(f"COPY (SELECT {columns} FROM {table}) TO '{folder}/{table}.parquet'")


def _tpcds_extension() -> Path:
    """The extension file that the package carries: nothing is downloaded."""
    found = importlib.util.find_spec("duckdb_extension_tpcds")
    if found is None or found.origin is None:
        raise _not_installed("duckdb-extension-tpcds")
    version = f"v{duckdb.__version__}"
    return Path(found.origin).parent / "extensions" / version / "tpcds.duckdb_extension"


def _as_declared(field: Field) -> str:
    """dsdgen makes nearly every integer a BIGINT; the schema says what it is."""
    if field.type in (INT, BIGINT):
        return f"{field.name}::{field.type.sql} AS {field.name}"
    return field.name


def _folder(kind: str) -> Path:
    if kind not in KINDS:
        raise UserError(
            f"Corpus '{kind}' is not known.", code="BAD_CORPUS", hint=f"Use {' or '.join(KINDS)}."
        )
    return QUERIES / kind


def _not_installed(package: str) -> UserError:
    return UserError(
        f"{package} is not installed; it makes the data.",
        code="MISSING_PACKAGE",
        hint="Install the extra: pip install 'slackwater[dev]'.",
    )
