"""``convoy namespace ...``: policies for what the pods of a namespace may request."""

from typing import Annotated

import typer

from frontend.cli import session
from frontend.cli.client import Item, at
from frontend.cli.commands import get

app = typer.Typer(no_args_is_help=True, help="Policies of namespaces: list, set, unset.")
Name = Annotated[str, typer.Argument(metavar="NAMESPACE")]
Level = Annotated[str, typer.Option("--pod-security", help="baseline, restricted or privileged.")]
Accounts = Annotated[
    list[str], typer.Option("--service-account", help="Allow only this one and default. Repeatable; default: any.")
]
Capabilities = Annotated[
    list[str], typer.Option("--capability", help="Allow a capability that the level does not, such as IPC_LOCK.")
]
Paths = Annotated[list[str], typer.Option("--host-path", help="Allow pods to mount this directory of nodes.")]
Network = Annotated[bool, typer.Option("--host-network", help="Allow pods to use the node's network.")]
Node = Annotated[bool, typer.Option("--node-name", help="Allow pods to set nodeName.")]


@app.command("list")
def listing(context: typer.Context, output: get.How = get.Output.TABLE) -> None:
    """List the namespaces that have a policy. All others have the defaults (baseline)."""
    run = session.session_of(context)
    items = run.api.list("namespaces/")
    if output in (get.Output.JSON, get.Output.YAML):
        return run.screen.json(items) if output is get.Output.JSON else run.screen.yaml(items)
    if output is get.Output.NAME:
        return run.screen.line("\n".join(f"namespace/{item['name']}" for item in items))
    return run.screen.table(["NAME", "POD SECURITY", "EXCEPTIONS"], [_row(item) for item in items])


@app.command("set")
def set_policy(
    context: typer.Context,
    name: Name,
    pod_security: Level = "baseline",
    service_account: Accounts = [],  # noqa: B006 - typer reads it and never changes it
    capability: Capabilities = [],  # noqa: B006
    host_path: Paths = [],  # noqa: B006
    host_network: Network = False,
    node_name: Node = False,
) -> None:
    """Replace the policy of a namespace. Options that are not given get their defaults."""
    run = session.session_of(context)
    body = {
        "pod_security": pod_security,
        "service_accounts": service_account,
        "capabilities": capability,
        "host_paths": host_path,
        "host_network": host_network,
        "node_name": node_name,
    }
    run.api.put(at("namespaces", name), body)
    run.screen.line(f"namespace/{name} has level {pod_security}")


@app.command()
def unset(context: typer.Context, name: Name) -> None:
    """Remove the policy of a namespace, so that the defaults apply."""
    run = session.session_of(context)
    run.api.delete(at("namespaces", name))
    run.screen.line(f"namespace/{name} has the defaults")


def _row(item: Item) -> list[str]:
    accounts = (f"account {account}" for account in item["service_accounts"])
    listed = [*accounts, *item["capabilities"], *item["host_paths"]]
    flags = [word for field, word in (("host_network", "host network"), ("node_name", "node name")) if item[field]]
    return [item["name"], item["pod_security"], ", ".join(listed + flags) or "-"]
