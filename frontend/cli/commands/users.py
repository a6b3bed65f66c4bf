"""``convoy user ...``: creates and disables users, sets passwords, grants roles, and appoints team leads."""

import sys
from typing import Annotated

import typer

from frontend.cli import session
from frontend.cli.client import Item, at
from frontend.cli.commands import get
from frontend.cli.problems import missing, usage

app = typer.Typer(
    no_args_is_help=True,
    help="Users: list, create, disable, enable, password, reset-second-factor, revoke-tokens, grant, revoke, lead, unlead.",
)
Name = Annotated[str, typer.Argument(metavar="USER", help="The user's name.")]
Role = Annotated[str, typer.Argument(metavar="ROLE", help="fleet-admin, quota-admin, editor or viewer.")]
Path = Annotated[str, typer.Argument(metavar="PATH", help="The path of a node in the quota tree, such as root/team.")]
In = Annotated[str, typer.Option("-n", "--namespace", help="Only in this namespace. Default: in all namespaces.")]
FromStdin = Annotated[bool, typer.Option("--password-stdin", help="Read the password from standard input.")]


@app.command("list")
def listing(context: typer.Context, output: get.How = get.Output.TABLE) -> None:
    """List the users with their roles."""
    run = session.session_of(context)
    items = run.api.list("users/")
    if output in (get.Output.JSON, get.Output.YAML):
        return run.screen.json(items) if output is get.Output.JSON else run.screen.yaml(items)
    if output is get.Output.NAME:
        return run.screen.line("\n".join(f"user/{item['username']}" for item in items))
    rows = [
        [item["username"], "yes" if item["active"] else "no", _roles(item), item["last_login"] or "-"] for item in items
    ]
    return run.screen.table(["NAME", "ACTIVE", "ROLES", "LAST SIGN-IN"], rows)


@app.command()
def create(context: typer.Context, name: Name, password_stdin: FromStdin = False) -> None:
    """Create a user without roles. A user without a password can only use tokens."""
    run = session.session_of(context)
    run.api.post("users/", {"username": name, "password": _password() if password_stdin else ""})
    run.screen.line(f"user/{name} created")


@app.command()
def disable(context: typer.Context, name: Name) -> None:
    """Disable a user: ends all sessions, tokens and sign-in links."""
    run = session.session_of(context)
    run.api.post(at("users", name, "disable"))
    run.screen.line(f"user/{name} disabled")


@app.command()
def enable(context: typer.Context, name: Name) -> None:
    """Enable a disabled user."""
    run = session.session_of(context)
    run.api.post(at("users", name, "enable"))
    run.screen.line(f"user/{name} enabled")


@app.command()
def reset_second_factor(context: typer.Context, name: Name) -> None:
    """Remove the second factor of a user who lost their authenticator app and all recovery codes."""
    run = session.session_of(context)
    run.api.post(at("users", name, "reset-second-factor"))
    run.screen.line(f"user/{name} signs in with the password alone")


@app.command()
def password(context: typer.Context, name: Name, password_stdin: FromStdin = False) -> None:
    """Set a user's password. This ends all sessions and revokes all tokens of the user."""
    run = session.session_of(context)
    chosen = _password() if password_stdin else typer.prompt("New password", hide_input=True, confirmation_prompt=True)
    run.api.post(at("users", name, "password"), {"password": chosen})
    run.screen.line(f"user/{name} has a new password")


@app.command()
def revoke_tokens(context: typer.Context, name: Name) -> None:
    """Revoke all tokens of a user, those the user minted for others, and all that these minted."""
    run = session.session_of(context)
    answer = run.api.post(at("users", name, "revoke-tokens"))
    run.screen.line(f"user/{name}: {answer['revoked']} tokens revoked")


@app.command()
def grant(context: typer.Context, name: Name, role: Role, namespace: In = "") -> None:
    """Give a user a role."""
    run = session.session_of(context)
    run.api.post("grants/", {"user": name, "role": role, "namespace": namespace})
    run.screen.line(f"user/{name} is {role} in {namespace or 'all namespaces'}")


@app.command()
def revoke(context: typer.Context, name: Name, role: Role, namespace: In = "") -> None:
    """Remove a role from a user."""
    run = session.session_of(context)
    params = {"user__username": name, "role": role}
    rows = [row for row in run.api.list("grants/", params) if row["namespace"] == namespace]
    if not rows:
        raise missing(f"{name} is not {role} in {namespace or 'all namespaces'}")
    run.api.delete(at("grants", str(rows[0]["id"])))
    run.screen.line(f"user/{name} is no longer {role} in {namespace or 'all namespaces'}")


@app.command()
def lead(context: typer.Context, name: Name, path: Path) -> None:
    """Make a user a team lead, who can change the quota tree below a node."""
    run = session.session_of(context)
    run.api.post("leads/", {"user": name, "path": path})
    run.screen.line(f"user/{name} leads {path}")


@app.command()
def unlead(context: typer.Context, name: Name, path: Path) -> None:
    """Remove a user as team lead of a node."""
    run = session.session_of(context)
    rows = run.api.list("leads/", {"user__username": name, "path": path})
    if not rows:
        raise missing(f"{name} does not lead {path}")
    run.api.delete(at("leads", str(rows[0]["id"])))
    run.screen.line(f"user/{name} no longer leads {path}")


def _roles(item: Item) -> str:
    held = [f"{row['role']}" + (f" in {row['namespace']}" if row["namespace"] else "") for row in item["roles"]]
    return ", ".join((["superuser"] if item["superuser"] else []) + held) or "-"


def _password() -> str:
    text = sys.stdin.readline().rstrip("\n")
    if not text:
        raise usage("--password-stdin needs a password on standard input")
    return text
