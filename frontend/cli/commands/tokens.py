"""``convoy token ...``: lists, mints and revokes the user's own bearer tokens, which can be limited in scope."""

from typing import Annotated

import typer

from frontend.cli import human, session
from frontend.cli.client import Item, at
from frontend.cli.commands import get
from frontend.cli.problems import missing, usage

app = typer.Typer(no_args_is_help=True, help="Your tokens: list, mint, revoke.")
Name = Annotated[str, typer.Argument(metavar="NAME", help="A name that says what the token is for.")]
Life = Annotated[
    str, typer.Option("--life", help="How long it is valid, such as 12h or 30d. Default: the server's maximum.")
]
ReadOnly = Annotated[bool, typer.Option("--read-only", help="The token can only read.")]
Metrics = Annotated[bool, typer.Option("--metrics", help="The token can only read /metrics. For fleet admins.")]
Verbs = Annotated[list[str], typer.Option("--verb", help="Limit it to these verbs: read, apply, delete, suspend ...")]
Kinds = Annotated[list[str], typer.Option("--kind", help="Limit it to these kinds; Job means every kind of job.")]
Namespaces = Annotated[list[str], typer.Option("-n", "--namespace", help="Limit it to these namespaces.")]


@app.command("list")
def listing(context: typer.Context, output: get.How = get.Output.TABLE) -> None:
    """List your tokens that are not revoked."""
    run = session.session_of(context)
    items = [item for item in run.api.list("tokens/") if item["revoked_at"] is None]
    if output in (get.Output.JSON, get.Output.YAML):
        return run.screen.json(items) if output is get.Output.JSON else run.screen.yaml(items)
    if output is get.Output.NAME:
        return run.screen.line("\n".join(f"token/{item['id']}" for item in items))
    rows = [
        [str(item["id"]), item["name"], human.stamp(item["expires_at"]), _origin(item), _scope(item)] for item in items
    ]
    return run.screen.table(["ID", "NAME", "EXPIRES", "MINTED BY", "SCOPE"], rows)


@app.command()
def mint(
    context: typer.Context,
    name: Name,
    life: Life = "",
    read_only: ReadOnly = False,
    metrics: Metrics = False,
    verb: Verbs = [],  # noqa: B006 - typer reads it and never changes it
    kind: Kinds = [],  # noqa: B006
    namespace: Namespaces = [],  # noqa: B006
) -> None:
    """Mint a token and print it once. It cannot have more rights, or a longer life, than the token you use now."""
    run = session.session_of(context)
    if (read_only or metrics) and verb or metrics and kind:
        raise usage("--read-only and --metrics already set verbs and kinds", "leave out --verb and --kind")
    wanted = {
        "verbs": ["read"] if read_only or metrics else verb,
        "kinds": ["Metrics"] if metrics else kind,
        "namespaces": namespace,
    }
    body: Item = {"name": name, "scope": {field: names for field, names in wanted.items() if names} or None}
    if life:
        try:
            body["expires_in_s"] = int(human.seconds(life))
        except ValueError as e:
            raise usage(f"--life {life} is not a duration", "write it as 90s, 12h or 30d") from e
    token = run.api.post("tokens/", body)
    run.screen.line(str(token["token"]))
    run.screen.note(f"it expires {human.stamp(token['expires_at'])}; its scope is {_scope(token)}")


@app.command()
def revoke(
    context: typer.Context, ident: Annotated[str, typer.Argument(metavar="ID", help="Its id, as in the list.")]
) -> None:
    """Revoke a token at once, with all that it minted."""
    run = session.session_of(context)
    if not ident.isdigit():
        raise missing(f"there is no token {ident}", "`convoy token list` shows the ids")
    run.api.delete(at("tokens", ident))
    run.screen.line(f"token/{ident} revoked")


def _origin(item: Item) -> str:
    """A token ends with the one that minted it."""
    return f"token/{item['parent_id']}" if item["parent_id"] else item["minted_by"] or "-"


def _scope(item: Item) -> str:
    limits = item["scope"] or {}
    return "; ".join(f"{name} {', '.join(listed)}" for name, listed in limits.items()) or "everything you may do"
