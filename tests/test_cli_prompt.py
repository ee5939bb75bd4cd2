"""The interactive prompt, driven by keys."""

from __future__ import annotations

from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from prompt_toolkit.application import create_app_session
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.output import DummyOutput
from rich.console import Console

from slackwater.cli.context import Session
from slackwater.cli.output import Format
from slackwater.cli.prompt import completer, history_file, run_prompt

if TYPE_CHECKING:
    from slackwater import Warehouse


@pytest.fixture
def history(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "state" / "history"
    monkeypatch.setenv("SLACKWATER_HISTORY", str(path))
    return path


@pytest.fixture
def typed(db: Warehouse, history: Path) -> Any:
    """Type keys into the prompt; what it printed."""

    def play(keys: str) -> str:
        shown = StringIO()
        own = Session("wh", out=Console(file=shown, width=100))
        with create_pipe_input() as pipe, create_app_session(input=pipe, output=DummyOutput()):
            pipe.send_text(keys)
            run_prompt(own, db, Format.table)
        return shown.getvalue()

    return play


def test_runs_statements_over_several_lines(typed: Any) -> None:
    shown = typed("CREATE TABLE t (a INT);\rSELECT 41 +\r1 AS x;\r\\q\r")
    assert "42" in shown


def test_goes_on_after_an_error(typed: Any, capsys: pytest.CaptureFixture[str]) -> None:
    shown = typed("SELECT nope;\rSELECT 7 AS x;\r\\q\r")
    assert "7" in shown
    assert "nope" in capsys.readouterr().err


def test_commands_show_tables_columns_and_help(typed: Any) -> None:
    shown = typed("CREATE TABLE t (a INT, b STRING);\r\\d\r\\d t\r\\h\r\\q\r")
    assert "t" in shown.split()
    assert "STRING" in shown.upper()
    assert "this help" in shown


def test_leaves_at_the_end_of_the_input(typed: Any) -> None:
    typed("\x04")


def test_keeps_its_history(typed: Any, history: Path) -> None:
    typed("SELECT 1 AS x;\r\\q\r")
    assert "SELECT 1 AS x;" in history.read_text()
    assert history_file() == history


def test_completes_keywords_and_tables(db: Warehouse) -> None:
    db.sql("CREATE TABLE customers (a INT)")
    found = completer(db).get_completions(Document("SELECT * FROM cus"), CompleteEvent())
    assert "customers" in [c.text for c in found]
    found = completer(db).get_completions(Document("sel"), CompleteEvent())
    assert "SELECT" in [c.text for c in found]
