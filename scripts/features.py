"""Write the table of what works, from docs/features.toml, into the README."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
README = ROOT / "README.md"
LIST = ROOT / "docs" / "features.toml"
BEGIN, END = "<!-- features -->\n", "<!-- /features -->"


def features() -> list[dict[str, Any]]:
    """The listed features, in order."""
    return list(tomllib.loads(LIST.read_text(encoding="utf-8"))["feature"])


def render(listed: list[dict[str, Any]]) -> str:
    """The features as a Markdown table."""
    lines = ["| area | what | state |", "|---|---|---|"]
    lines += [f"| {f['area']} | {f['what']} | {f['state']} |" for f in listed]
    return "\n".join(lines) + "\n"


def with_table(readme: str) -> str:
    """The README's text with the table between its marks brought up to date."""
    before, rest = readme.split(BEGIN)
    _, after = rest.split(END)
    return f"{before}{BEGIN}{render(features())}{END}{after}"


if __name__ == "__main__":
    README.write_text(with_table(README.read_text(encoding="utf-8")), encoding="utf-8")
