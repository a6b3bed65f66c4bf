"""``convoy completion``: prints the script that completes verbs, flags and names in a shell."""

from enum import StrEnum
from typing import Annotated

import typer
from typer._completion_shared import get_completion_script

from frontend.cli import session


class Shell(StrEnum):
    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"
    POWERSHELL = "powershell"
    PWSH = "pwsh"


def completion(
    context: typer.Context, shell: Annotated[Shell, typer.Argument(help="The shell the script is for.")]
) -> None:
    """Print the completion script of a shell: `source <(convoy completion bash)`. --install-completion installs it."""
    run = session.session_of(context)
    script = get_completion_script(prog_name="convoy", complete_var="_CONVOY_COMPLETE", shell=shell.value)
    run.screen.bytes(script.encode() + b"\n")
