"""Reads address and credentials of the fleet where kubectl does: ``--kubeconfig``, ``$KUBECONFIG``, ``~/.kube/config``.

It only reads files. If several files have an entry of the same name, the first one counts.
"""

import base64
import binascii
import os
import ssl
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from frontend.cli.problems import Problem

VARIABLE = "KUBECONFIG"
_PARTS = ("clusters", "users", "contexts")


@dataclass(frozen=True, slots=True)
class Connection:
    """Address and credentials of the fleet. ``repr`` hides the credentials."""

    server: str
    namespace: str
    tls: ssl.SSLContext
    token: str = ""
    tls_server_name: str = ""

    def __repr__(self) -> str:
        return f"Connection(server={self.server!r})"


def find(file: str = "", context: str = "") -> Connection:
    """The connection of the given context, else of the current one."""
    paths = _paths(file)
    merged = _merged(paths)
    name = context or str(merged.get("current-context") or "")
    if not name:
        files = ", ".join(map(str, paths))
        raise Problem(
            f"{files} has no current context", hint="give --kubeconfig, or set KUBECONFIG to the fleet's kubeconfig"
        )
    entry = _named(merged, "contexts", name, "context")
    cluster = _named(merged, "clusters", str(entry.get("cluster") or ""), "cluster")
    user = _named(merged, "users", str(entry.get("user") or ""), "user")
    server = str(cluster.get("server") or "").rstrip("/")
    if not server.startswith("https://"):
        raise Problem(f"the server of context {name} is {server or 'missing'}: it must be an https address")
    return Connection(
        server=server,
        namespace=str(entry.get("namespace") or "default"),
        tls=_tls(cluster, user),
        token=_token(user),
        tls_server_name=str(cluster.get("tls-server-name") or ""),
    )


def _paths(file: str) -> list[Path]:
    if file:
        return [Path(file)]
    listed = [Path(path) for path in os.environ.get(VARIABLE, "").split(os.pathsep) if path]
    return listed or [Path.home() / ".kube" / "config"]


def _merged(paths: list[Path]) -> dict[str, Any]:
    """All files merged. Missing files are skipped, unless all are missing."""
    documents = [document for path in paths if (document := _read(path)) is not None]
    if not documents:
        files = ", ".join(map(str, paths))
        raise Problem(
            f"there is no kubeconfig at {files}", hint="give --kubeconfig, or write one with `convoy kubeconfig`"
        )
    merged: dict[str, Any] = {part: {} for part in _PARTS}
    for document in documents:
        merged.setdefault("current-context", document.get("current-context"))
        merged["current-context"] = merged["current-context"] or document.get("current-context")
        for part in _PARTS:
            for entry in document.get(part) or []:
                merged[part].setdefault(str(entry.get("name")), entry.get(part[:-1]) or {})
    return merged


def _read(path: Path) -> dict[str, Any] | None:
    try:
        document = yaml.safe_load(path.read_text())
    except FileNotFoundError:
        return None
    except (OSError, ValueError, yaml.YAMLError) as e:
        raise Problem(f"cannot read {path}: {str(e).splitlines()[0]}") from e
    if not isinstance(document, dict) or not all(isinstance(document.get(part) or [], list) for part in _PARTS):
        raise Problem(f"{path} is not a kubeconfig")
    return _absolute(document, path.parent)


def _absolute(document: dict[str, Any], folder: Path) -> dict[str, Any]:
    """The document with relative file names resolved against its own folder."""
    for part, keys in (
        ("clusters", ("certificate-authority",)),
        ("users", ("client-certificate", "client-key", "tokenFile")),
    ):
        for entry in document.get(part) or []:
            inner = entry.get(part[:-1]) or {}
            for key in keys:
                if inner.get(key):
                    inner[key] = str(folder / inner[key])
    return document


def _named(merged: dict[str, Any], part: str, name: str, word: str) -> dict[str, Any]:
    entry = merged[part].get(name)
    if entry is None:
        known = ", ".join(sorted(merged[part])) or "none"
        raise Problem(f"the kubeconfig has no {word} {name!r}; it has {known}")
    return dict(entry)


def _tls(cluster: dict[str, Any], user: dict[str, Any]) -> ssl.SSLContext:
    try:
        authority = _bytes(cluster, "certificate-authority")
        tls = ssl.create_default_context(cadata=authority.decode() if authority else None)
        if cluster.get("insecure-skip-tls-verify"):
            tls.check_hostname, tls.verify_mode = False, ssl.CERT_NONE
        certificate, key = _bytes(user, "client-certificate"), _bytes(user, "client-key")
        if certificate:
            with tempfile.NamedTemporaryFile() as private:
                private.write(certificate + b"\n" + key)
                private.flush()
                tls.load_cert_chain(private.name)
    except (ssl.SSLError, OSError, ValueError, binascii.Error) as e:
        raise Problem(f"the certificates of the kubeconfig cannot be read: {e}") from e
    return tls


def _bytes(holder: dict[str, Any], key: str) -> bytes:
    """The inline data of the entry, else the content of the file that it names."""
    if data := holder.get(f"{key}-data"):
        return base64.b64decode("".join(str(data).split()), validate=True)
    return Path(holder[key]).read_bytes() if holder.get(key) else b""


def _token(user: dict[str, Any]) -> str:
    if user.get("exec") or user.get("auth-provider"):
        raise Problem(
            "the user of this context needs a plugin, but `kubectl amc` needs a token: see `convoy kubeconfig`"
        )
    if user.get("token"):
        return str(user["token"])
    try:
        return Path(user["tokenFile"]).read_text().strip() if user.get("tokenFile") else ""
    except OSError as e:
        raise Problem(f"the token of the kubeconfig cannot be read: {e}") from e
