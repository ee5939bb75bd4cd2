"""The interactive prompt of `slackwater sql`."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from prompt_toolkit import PromptSession
from prompt_toolkit.completion import Completer, WordCompleter
from prompt_toolkit.history import FileHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from pygments.lexers.sql import SqlLexer

from slackwater.cli.exits import report
from slackwater.cli.output import Format, print_result
from slackwater.cli.scan import is_complete
from slackwater.errors import SlackwaterError

if TYPE_CHECKING:
    from slackwater import Warehouse
    from slackwater.cli.context import Session

KEYWORDS = (
    "SELECT FROM WHERE GROUP BY HAVING ORDER LIMIT JOIN LEFT RIGHT FULL OUTER INNER CROSS SEMI "
    "ANTI ON USING UNION ALL INTERSECT EXCEPT DISTINCT WITH AS CASE WHEN THEN ELSE END AND OR NOT "
    "IN EXISTS BETWEEN LIKE IS NULL OVER PARTITION ROWS RANGE QUALIFY VALUES INSERT INTO UPDATE "
    "SET DELETE MERGE MATCHED TRUNCATE TABLE CREATE REPLACE MATERIALIZED VIEW REFRESH ALTER DROP "
    "ADD COLUMN EXPLAIN SHOW TABLES VIEWS DESCRIBE COUNT SUM AVG MIN MAX CAST COALESCE DATE "
    "RESET SETTINGS WAREHOUSE TIMESTAMP BIGINT INT STRING DECIMAL DOUBLE BOOLEAN"
).split()
HELP = r"""Statements end with ';' and may span lines. Spark SQL, and:
  \d        tables and views         \d NAME   columns of a table or view
  \e NAME   explain a view           \h        this help
  \q        leave (or Ctrl-D)        Ctrl-C    drop what is typed"""


def history_file() -> Path:
    """Where the prompt keeps what was typed: `SLACKWATER_HISTORY`, or the user's state folder."""
    if chosen := os.environ.get("SLACKWATER_HISTORY"):
        return Path(chosen)
    state = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state")
    return state / "slackwater" / "history"


def run_prompt(own: Session, db: Warehouse, style: Format) -> None:
    """Read statements until the user leaves. An error is shown and the prompt goes on."""
    prompt = _prompt_session(db)
    own.out.print(f"Warehouse '{own.warehouse}'. \\h for help, \\q to leave.", style="dim")
    while True:
        try:
            text = prompt.prompt("slackwater> ").strip()
        except KeyboardInterrupt:
            continue
        except EOFError:
            return
        if text in (r"\q", "quit", "exit", "quit;", "exit;"):
            return
        try:
            run_line(own, db, text, style)
        except (SlackwaterError, KeyboardInterrupt) as error:
            report(error, own.debug)


def run_line(own: Session, db: Warehouse, text: str, style: Format) -> None:
    """Run what was entered: statements, or a command that begins with a backslash."""
    if not text.startswith("\\"):
        for statement, result in db.execute_script(text):
            print_result(own, result, style, statement)
        return
    command, _, name = text.rstrip("; ").partition(" ")
    match command, name.strip():
        case r"\d", "":
            print_result(own, db.tables(), style)
            print_result(own, db.views(), style)
        case r"\d", table:
            print_result(own, db.sql(f"DESCRIBE {table}"), style)
        case r"\e", view if view:
            own.out.print(str(db.explain(view)), markup=False)
        case _:
            own.out.print(HELP, markup=False)


def _prompt_session(db: Warehouse) -> PromptSession[str]:
    from prompt_toolkit.lexers import PygmentsLexer

    path = history_file()
    path.parent.mkdir(parents=True, exist_ok=True)
    return PromptSession(
        history=FileHistory(str(path)),
        completer=completer(db),
        complete_while_typing=False,
        multiline=True,
        lexer=PygmentsLexer(SqlLexer),
        key_bindings=_keys(),
        prompt_continuation=lambda width, line, wrapped: "…> ".rjust(width),
    )


def completer(db: Warehouse) -> Completer:
    """Completes keywords, and the tables and views that exist at that moment."""

    def words() -> list[str]:
        return [*_names(db), *KEYWORDS]

    return WordCompleter(words, ignore_case=True, match_middle=False)


def _names(db: Warehouse) -> Iterable[str]:
    status = db.status()
    return [str(entry["name"]) for entry in (*status["tables"], *status["views"])]


def _keys() -> KeyBindings:
    """Enter runs a complete statement or command, and begins a new line otherwise."""
    keys = KeyBindings()

    @keys.add("enter")
    def _(event: KeyPressEvent) -> Any:
        buffer = event.current_buffer
        text = buffer.text.strip()
        if not text or text.startswith("\\") or text in ("quit", "exit") or is_complete(text):
            buffer.validate_and_handle()
        else:
            buffer.insert_text("\n")

    return keys
