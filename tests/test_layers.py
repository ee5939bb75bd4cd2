"""The layers of the package: each imports only from those above it in `LAYERS`.

Further seams: PySpark, sqlglot and PySpark's private handles stay where they belong.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "slackwater"
LAYERS = (
    "errors",
    "faults",
    "collecting",
    "timing",
    "types",
    "tree",
    "algebra",
    "catalog",
    "sources",
    "sql",
    "tvr",
    "stats",
    "planner",
    "engine",
    "online",
    "matrix",
    "signal",
    "result",
    "work",
    "warehouse",
    "__init__",  # the public names, for whoever stands below
    "demo",
    "service",
    "cli",
    "__main__",
)
MAY_IMPORT = {
    "pyspark": ("engine/spark.py",),
    "py4j": ("engine/spark.py",),
    "sqlglot": ("sql/", "engine/compile.py"),
    "duckdb": ("engine/",),
    "sqlalchemy": ("catalog/",),
    "typer": ("cli/",),
    "prompt_toolkit": ("cli/",),
}
PRIVATE_HANDLE = re.compile(r"\b_(jvm|jdf|jsc|jsparkSession|jconf|jc|jschema|gateway|sc)\b")


@dataclass(frozen=True)
class Import:
    """One imported module, and whether only the type checker reads it."""

    module: str
    line: int
    for_types: bool


def files() -> list[Path]:
    return sorted(PACKAGE.rglob("*.py"))


def layer(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imports(path: Path) -> Iterator[Import]:
    """Every import of a file, also those inside functions; relative ones made absolute."""
    tree = ast.parse(path.read_text())
    for_types = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
        for inner in ast.walk(node)
    }
    package = ("slackwater", *path.relative_to(PACKAGE).parent.parts)
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for name in node.names:
                yield Import(name.name, node.lineno, id(node) in for_types)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else ()
            module = ".".join((*base, node.module)) if node.module else ".".join(base)
            for name in node.names:
                yield Import(f"{module}.{name.name}", node.lineno, id(node) in for_types)


def imported_layer(module: str) -> str:
    """`slackwater.sql.bind` is layer `sql`; a name taken from `slackwater` itself is public."""
    part = (*module.split("."), "")[1]
    return part if part in LAYERS else "__init__"


@pytest.mark.parametrize("path", files(), ids=lambda p: str(p.relative_to(PACKAGE)))
def test_imports_only_from_layers_above(path: Path) -> None:
    own = layer(path)
    assert own in LAYERS, f"add {own!r} to LAYERS, where it belongs"
    for found in imports(path):
        if found.module.split(".")[0] == "slackwater":
            other = imported_layer(found.module)
            assert LAYERS.index(other) <= LAYERS.index(own), (
                f"{path.relative_to(PACKAGE)}:{found.line}: layer {own!r} imports {found.module}"
            )


@pytest.mark.parametrize("library", MAY_IMPORT)
def test_library_stays_in_its_place(library: str) -> None:
    """Imports for the type checker alone are free."""
    wrong = [
        f"{name}:{found.line}"
        for path in files()
        if not (name := str(path.relative_to(PACKAGE))).startswith(MAY_IMPORT[library])
        for found in imports(path)
        if found.module.split(".")[0] == library and not found.for_types
    ]
    assert not wrong


def test_private_handles_of_pyspark_only_in_engine_spark() -> None:
    wrong = [
        f"{path.relative_to(PACKAGE)}:{number}"
        for path in files()
        if path != PACKAGE / "engine" / "spark.py"
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if PRIVATE_HANDLE.search(line)
    ]
    assert not wrong


def test_files_stay_small() -> None:
    """A second look at 400 lines (STYLE); beyond 600 a file is split."""
    too_long = {
        str(path.relative_to(PACKAGE)): lines
        for path in files()
        if (lines := len(path.read_text().splitlines())) > 600
    }
    assert not too_long
