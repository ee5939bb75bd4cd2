"""The command line. Nothing heavy is imported before a command needs it."""

from __future__ import annotations


def main() -> None:
    """Run the command line; the entry point of the `slackwater` script."""
    from slackwater.cli.app import app

    app()
