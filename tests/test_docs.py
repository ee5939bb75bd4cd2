"""The documents tell the truth: their examples run, their tables match, their links lead
somewhere."""

from __future__ import annotations

import ast
import doctest
import importlib.util
import re
from pathlib import Path
from typing import Any

import pytest

from slackwater.cli.exits import TABLE as EXIT_CODES

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(r"^```(python|pycon)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
STATES = {"works", "partly", "later"}


def _features_script() -> Any:
    spec = importlib.util.spec_from_file_location("features", ROOT / "scripts" / "features.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


FEATURES = _features_script().features()


def pages_with_examples() -> list[Path]:
    return [page for page in PAGES if BLOCK.search(page.read_text())]


@pytest.mark.parametrize("page", pages_with_examples(), ids=lambda p: p.name)
def test_examples_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All blocks of a page, in order, in one namespace and an empty folder."""
    monkeypatch.chdir(tmp_path)
    text = page.read_text()
    names: dict[str, Any] = {}
    for match in BLOCK.finditer(text):
        line = text.count("\n", 0, match.start()) + 1
        if match[1] == "pycon":
            _run_session(match[2], names, page, line)
        else:
            exec(compile("\n" * line + match[2], str(page), "exec"), names)


def _run_session(code: str, names: dict[str, Any], page: Path, line: int) -> None:
    exec("from decimal import Decimal", names)
    test = doctest.DocTestParser().get_doctest(code, names, page.name, str(page), line)
    runner = doctest.DebugRunner(optionflags=doctest.ELLIPSIS)
    runner.run(test, clear_globs=False)


def test_readme_lists_the_features() -> None:
    """On failure: python scripts/features.py."""
    readme = (ROOT / "README.md").read_text()
    assert readme == _features_script().with_table(readme)


@pytest.mark.parametrize("feature", FEATURES, ids=lambda f: f["what"][:40])
def test_feature_is_shown_by_tests_that_exist(feature: dict[str, Any]) -> None:
    assert feature["state"] in STATES
    assert bool(feature["tests"]) == (feature["state"] != "later")
    for name in feature["tests"]:
        file, _, function = name.partition("::")
        path = ROOT / "tests" / file
        assert path.exists(), f"{path} does not exist"
        functions = {
            node.name
            for node in ast.walk(ast.parse(path.read_text()))
            if isinstance(node, ast.FunctionDef)
        }
        assert not function or function in functions, f"{name} does not exist"


def test_readme_lists_the_exit_codes() -> None:
    readme = (ROOT / "README.md").read_text()
    for code, meaning in EXIT_CODES:
        assert f"| {code} | {meaning} |" in readme


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text()):
        if "://" not in target:
            assert (page.parent / target).exists(), f"{page.name}: {target}"
