"""``convoy agent``: becomes the agent of a member cluster, a program of its own that speaks to that cluster alone."""

import os
import sys

import typer

PASSED_ON = {"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []}


def agent(context: typer.Context) -> None:
    """Run the agent of a member cluster, or print what installs it: `convoy agent --manifest | kubectl apply -f -`."""
    sys.stdout.flush()
    os.execv(sys.executable, [sys.executable, "-m", "agent.main", *context.args])  # noqa: S606
