"""``convoy login`` and ``convoy config``: which server one speaks to, and as whom."""

import socket
import sys
from typing import Annotated

import typer

from frontend.cli import config, session
from frontend.cli.client import Api
from frontend.cli.config import Target
from frontend.cli.problems import Exit, usage

SHOWN = 8


def login(
    context: typer.Context,
    url: Annotated[str, typer.Argument(help="Such as https://convoy.example.com; default: the one in use.")] = "",
    token: Annotated[str, typer.Option(help="A bearer token; - reads it from stdin.")] = "",
    username: Annotated[str, typer.Option(help="Sign in with a password instead and mint a token.")] = "",
) -> None:
    """Sign in and remember the server and the token, readable by you alone."""
    run = session.session_of(context)
    server = config.resolve(url or run.server).url
    if not server:
        raise usage("say which server", "for example: convoy login https://convoy.example.com")
    text = _minted(server, username) if username else token or run.token or _ask("Token", "--token")
    target = Target(server, sys.stdin.readline().strip() if text == "-" else text.strip())
    me = Api(target).get("me/")
    path = config.save(target)
    run.screen.line(f"signed in to {server} as {me['username']}")
    run.screen.note(f"saved in {path}")


def _minted(server: str, username: str) -> str:
    password = _ask("Password", "--token")
    return Api(Target(server)).session(username, password, f"convoy-cli on {socket.gethostname()}"[:63])


def _ask(what: str, instead: str) -> str:
    """From the terminal, unseen; a script pipes it in."""
    if not sys.stdin.isatty():
        answer = sys.stdin.readline().rstrip("\n")
        if not answer:
            raise usage(f"a {what.lower()} is needed", f"give {instead}, or pipe it in")
        return answer
    return str(typer.prompt(what, hide_input=True, err=True))


def show_config(context: typer.Context) -> None:
    """Show which server and token are used, and where they were found."""
    run = session.session_of(context)
    target = run.target
    run.screen.line(f"server: {target.url or '<none>'}" + (f"   (from {target.source})" if target.url else ""))
    masked = f"{target.token[:SHOWN]}..." if len(target.token) > 2 * SHOWN else "***"
    run.screen.line(f"token:  {masked}   (from {target.token_source})" if target.token else "token:  <none>")
    if not target.url:
        run.screen.note(f"hint: {config.LOGIN_HINT}")
        raise typer.Exit(Exit.ERROR)
