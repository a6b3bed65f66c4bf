"""``convoy login`` and ``convoy config``: sign in to a server, and show which server and token are used."""

import socket
import sys
from typing import Annotated

import typer

from frontend.cli import browser_login, config, session
from frontend.cli.client import Api
from frontend.cli.config import Target
from frontend.cli.problems import Exit, usage

SHOWN = 8


def login(
    context: typer.Context,
    url: Annotated[
        str, typer.Argument(help="The server, such as https://convoy.example.com. Default: the current one.")
    ] = "",
    token: Annotated[str, typer.Option(help="A bearer token; - reads it from stdin.")] = "",
    username: Annotated[str, typer.Option(help="Sign in with a password instead, and mint a token.")] = "",
    code: Annotated[str, typer.Option(help="With --username: of your second factor, or a recovery code.")] = "",
    browser: Annotated[
        bool | None,
        typer.Option(
            "--browser/--no-browser",
            help="Sign in with a browser: on this machine, or elsewhere with a URL and a code.",
        ),
    ] = None,
    life: Annotated[
        str, typer.Option("--life", help="How long a token from a browser sign-in is valid, such as 12h or 30d.")
    ] = "12h",
) -> None:
    """Sign in, and save the server and the token in a file that only you can read.

    At a terminal, the command opens the console in your browser, where you sign in as usual.
    """
    run = session.session_of(context)
    server = config.resolve(url or run.server).url
    if not server:
        raise usage("say which server", "for example: convoy login https://convoy.example.com")
    if username:
        text = _mint(server, username, code)
    elif token or run.token:
        text = token or run.token
    elif browser is None and not sys.stdin.isatty():
        text = _prompt("Token", "--token")
    else:
        text = browser_login.token(server, _name(), life, run.screen, opens=browser is not False)
    target = Target(server, sys.stdin.readline().strip() if text == "-" else text.strip())
    me = Api(target).get("me/")
    path = config.save(target)
    run.screen.line(f"signed in to {server} as {me['username']}")
    run.screen.note(f"saved in {path}")


def _mint(server: str, username: str, code: str) -> str:
    password = _prompt("Password", "--token")
    return Api(Target(server)).session(username, password, code, _name())


def _name() -> str:
    return f"convoy-cli on {socket.gethostname()}"[:63]


def _prompt(label: str, alternative: str) -> str:
    """Reads a secret: from the terminal without echo, or from a pipe."""
    if not sys.stdin.isatty():
        answer = sys.stdin.readline().rstrip("\n")
        if not answer:
            raise usage(f"a {label.lower()} is needed", f"give {alternative}, or pipe it in")
        return answer
    return str(typer.prompt(label, hide_input=True, err=True))


def show_config(context: typer.Context) -> None:
    """Show which server and token are used, and where they are configured."""
    run = session.session_of(context)
    target = run.target
    run.screen.line(f"server: {target.url or '<none>'}" + (f"   (from {target.source})" if target.url else ""))
    masked = f"{target.token[:SHOWN]}..." if len(target.token) > 2 * SHOWN else "***"
    run.screen.line(f"token:  {masked}   (from {target.token_source})" if target.token else "token:  <none>")
    if not target.url:
        run.screen.note(f"hint: {config.LOGIN_HINT}")
        raise typer.Exit(Exit.ERROR)
