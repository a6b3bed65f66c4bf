"""``convoy alias arena``: installs the program ``arena``, so that command lines written for arena run as they are."""

import shlex
import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from frontend.cli import session
from frontend.cli.problems import Exit, Problem

MARK = "# Written by `convoy alias`: arena's command lines over the fleet."
_MODE = 0o755


class Program(StrEnum):
    ARENA = "arena"


def alias(
    context: typer.Context,
    program: Annotated[Program, typer.Argument(help="The program.")],
    directory: Annotated[
        str, typer.Option("--dir", metavar="DIR", help="Where to install it. Default: beside `convoy`.")
    ] = "",
    remove: Annotated[bool, typer.Option("--remove", help="Remove it again.")] = False,
) -> None:
    """Install the program `arena`: the command lines of arena, run over the fleet."""
    run = session.session_of(context)
    place = Path(directory).expanduser() if directory else Path(sys.executable).parent
    path = place / program.value
    if path.is_symlink() or (path.exists() and not _is_ours(path)):
        hint = f"remove it, or choose another directory: convoy alias {program.value} --dir DIR"
        raise Problem(f"{path} is another program", hint=hint, exit_code=Exit.CONFLICT)
    try:
        if remove:
            path.unlink(missing_ok=True)
        else:
            _write(path)
    except OSError as e:
        hint = f"choose another directory: convoy alias {program.value} --dir ~/.local/bin"
        raise Problem(f"cannot write {path}: {e.strerror}", hint=hint) from e
    run.screen.line(f"{path} {'removed' if remove else 'installed'}")


def _is_ours(path: Path) -> bool:
    try:
        return MARK in path.read_text(errors="replace")[:500]
    except OSError:
        return False


def _write(path: Path) -> None:
    """Replaces the file in one step. -P keeps Python from importing what is in the caller's directory."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_suffix(".new")
    draft.write_text(f'#!/bin/sh\n{MARK}\nexec {shlex.quote(sys.executable)} -P -m frontend.cli.arena.main "$@"\n')
    draft.chmod(_MODE)
    draft.replace(path)
