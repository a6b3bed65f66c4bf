"""``convoy kubeconfig``: adds a context for kubectl to a kubeconfig, with a token of its own."""

import base64
import json
import os
import socket
from pathlib import Path
from typing import Annotated, Any

import typer
import yaml

from frontend.cli import human, session
from frontend.cli.problems import Problem, usage

PARTS = ("clusters", "users", "contexts")
DEFAULT_LIFE = "30d"
EXEC_API = "client.authentication.k8s.io/v1"


def kubeconfig(
    context: typer.Context,
    output: Annotated[
        str, typer.Option("-o", "--output", help="The file. Default: KUBECONFIG, else ~/.kube/config; - prints it.")
    ] = "",
    name: Annotated[str, typer.Option("--context", help="The name of the context.")] = "convoy",
    life: Annotated[
        str,
        typer.Option(
            "--token-life",
            help="How long the token is valid, such as 12h. Default: 30d, or until the token that you are signed in with ends.",
        ),
    ] = "",
    namespace: Annotated[str, typer.Option("-n", "--namespace", help="The namespace of the context.")] = "",
    by_exec: Annotated[
        bool, typer.Option("--exec", help="Write no token: kubectl runs `convoy credential` to get it.")
    ] = False,
) -> None:
    """Add a context with a new token to a kubeconfig, and make it the current context."""
    run = session.session_of(context)
    if by_exec:
        return _write_exec(run, output, name, namespace)
    try:
        life_s = int(human.seconds(life or DEFAULT_LIFE))
    except ValueError as e:
        raise usage(f"--token-life {life} is not a duration", "write it as 90s, 12h or 30d") from e
    path = None if output == "-" else _path(output)
    present = _read(path) if path else {}
    server = run.api.get("kubernetes/")
    about = {"name": f"kubectl on {socket.gethostname()}"[:63], "expires_in_s": life_s, "or_shorter": not life}
    token = run.api.post("tokens/", about)
    document = merged(present, name, _entries(server, {"token": str(token["token"])}, namespace))
    if path is None:
        return run.screen.yaml(document)
    _write(path, document)
    run.screen.line(f"context {name} written to {path}")
    return run.screen.note(
        f"its token expires {human.stamp(token['expires_at'])}; try: kubectl --context {name} get pytorchjobs"
    )


def _write_exec(run: session.Session, output: str, name: str, namespace: str) -> None:
    """Writes a context whose token comes from `convoy credential`: the one that the command line is signed in with."""
    path = None if output == "-" else _path(output)
    helper = {"apiVersion": EXEC_API, "command": "convoy", "args": ["--server", run.target.url, "credential"]}
    user = {"exec": {**helper, "interactiveMode": "Never", "provideClusterInfo": False}}
    entries = _entries(run.api.get("kubernetes/"), user, namespace)
    document = merged(_read(path) if path else {}, name, entries)
    if path is None:
        return run.screen.yaml(document)
    _write(path, document)
    return run.screen.line(f"context {name} written to {path}; kubectl runs `convoy credential` for its token")


def credential(context: typer.Context) -> None:
    """Print the current token in the format of a kubectl exec plugin."""
    run = session.session_of(context)
    if not run.target.token:
        raise Problem("you are not signed in", hint="convoy login")
    run.screen.line(
        json.dumps({"apiVersion": EXEC_API, "kind": "ExecCredential", "status": {"token": run.target.token}})
    )


def merged(present: dict[str, Any], name: str, entries: dict[str, Any]) -> dict[str, Any]:
    """The present document with our cluster, user and context, which replace entries of the same name."""
    entries["contexts"] |= {"cluster": name, "user": name}
    document = {"apiVersion": "v1", "kind": "Config", **present}
    for part in PARTS:
        others = [entry for entry in present.get(part) or [] if entry.get("name") != name]
        document[part] = [*others, {"name": name, part[:-1]: entries[part]}]
    return {**document, "current-context": name}


def _entries(server: dict[str, Any], user: dict[str, Any], namespace: str) -> dict[str, Any]:
    cluster = {"server": server["server"]}
    if server["certificate_authority"]:
        cluster["certificate-authority-data"] = base64.b64encode(server["certificate_authority"].encode()).decode()
    return {"clusters": cluster, "users": user, "contexts": {"namespace": namespace} if namespace else {}}


def _path(output: str) -> Path:
    """The given file, else the first file that kubectl would read."""
    listed = [path for path in os.environ.get("KUBECONFIG", "").split(os.pathsep) if path]
    return Path(output or (listed[0] if listed else Path.home() / ".kube" / "config"))


def _read(path: Path) -> dict[str, Any]:
    try:
        document = yaml.safe_load(path.read_text()) or {}
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, yaml.YAMLError) as e:
        raise Problem(f"cannot read {path}: {str(e).splitlines()[0]}", hint="give another file with --output") from e
    parts = [document.get(part) or [] for part in PARTS] if isinstance(document, dict) else [None]
    if not all(isinstance(part, list) and all(isinstance(entry, dict) for entry in part) for part in parts):
        raise Problem(f"{path} is not a kubeconfig: nothing was written", hint="give another file with --output")
    return dict(document)


def _write(path: Path, document: dict[str, Any]) -> None:
    """Replaces the file atomically. It is created with permissions that let only its owner read it."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    draft = path.with_name(f"{path.name}.convoy-new")
    draft.unlink(missing_ok=True)
    with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as out:
        yaml.safe_dump(document, out, sort_keys=False)
    draft.replace(path)
