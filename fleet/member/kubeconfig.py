"""A kubeconfig, read as text from strangers, becomes an `Access`, or a list of what is wrong with it field by field.

Only what the file itself carries is used. Whatever would run a program (`exec`, `auth-provider`), read a file of ours, skip
the check of the server's certificate, or send credentials in the clear is refused, with the way out. Opens no connection:
whether the server may be called at all is `fleet.member.addresses`' question.
"""

import base64
import binascii
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

from fleet.errors import FieldFault, InvalidInput, MalformedInput, TooLarge, invalid
from fleet.kube.requests import reader
from fleet.kube.requests.reader import Unreadable
from fleet.member.client import Access

LIMIT = 256 * 1024
"""Bytes of a kubeconfig: a thousand times a usual one."""

_FORBIDDEN_CLUSTER = {
    "insecure-skip-tls-verify": "the server's certificate is always checked; give certificate-authority-data instead",
    "certificate-authority": "files cannot be read from here; run `kubectl config view --flatten --raw`",
    "proxy-url": "members are called directly; give an address that can be reached without a proxy",
}
_FORBIDDEN_USER = {
    "exec": "plugins are never run here; give the token or client certificate of a service account",
    "auth-provider": "plugins are never run here; give the token or client certificate of a service account",
    "tokenFile": "files cannot be read from here; give the token itself",
    "client-certificate": "files cannot be read from here; run `kubectl config view --flatten --raw`",
    "client-key": "files cannot be read from here; run `kubectl config view --flatten --raw`",
    "username": "basic authentication is not accepted; give a token or a client certificate",
    "password": "basic authentication is not accepted; give a token or a client certificate",
    "as": "impersonation is not accepted; give credentials that have the rights themselves",
}

Section = dict[str, Any]


def parse(text: str, context: str = "") -> Access:
    """The access that the named context (else the current one) describes; raises `InvalidInput` naming every bad field."""
    document = _document(text)
    name = context or document.get("current-context") or ""
    if not name:
        raise invalid("kubeconfig.current-context", "is not set: set it, or name a context")
    _, chosen = _named(document, "contexts", "context", name)
    cluster_path, cluster = _named(document, "clusters", "cluster", chosen.get("cluster") or "")
    user_path, user = _named(document, "users", "user", chosen.get("user") or "")
    faults = (*_cluster_faults(cluster, cluster_path), *_user_faults(user, user_path))
    if faults:
        raise InvalidInput("; ".join(f"{f.field}: {f.detail}" for f in faults), faults)
    return Access(
        server=cluster["server"],
        ca_pem=_pem(cluster, "certificate-authority-data", cluster_path),
        token=user.get("token") or "",
        client_cert_pem=_pem(user, "client-certificate-data", user_path),
        client_key_pem=_pem(user, "client-key-data", user_path),
        tls_server_name=cluster.get("tls-server-name") or "",
    )


def _document(text: str) -> Section:
    if len(text.encode("utf-8", "replace")) > LIMIT:
        raise TooLarge(
            f"kubeconfig: is larger than {LIMIT // 1024} KiB: keep one context (`kubectl config view --minify`)",
            (FieldFault("kubeconfig", f"is larger than {LIMIT // 1024} KiB"),),
        )
    try:
        documents = reader.read_yaml(text)
    except Unreadable as e:
        detail = f"is not readable YAML: {e.problem}" + (f" (line {e.line})" if e.line else "")
        raise MalformedInput(f"kubeconfig: {detail}", (FieldFault("kubeconfig", detail),)) from e
    if len(documents) != 1 or not isinstance(documents[0], dict):
        raise MalformedInput("kubeconfig: must be an object", (FieldFault("kubeconfig", "must be an object"),))
    document: Section = documents[0]
    return document


def _named(document: Section, section: str, field: str, name: str) -> tuple[str, Section]:
    """The path and body of the entry called ``name``."""
    entries = document.get(section) or []
    if not isinstance(entries, list):
        raise invalid(f"kubeconfig.{section}", "must be a list")
    for i, entry in enumerate(entries):
        if isinstance(entry, dict) and entry.get("name") == name:
            path = f"kubeconfig.{section}[{i}].{field}"
            body = entry.get(field)
            if not isinstance(body, dict):
                raise invalid(path, "must be an object")
            return path, body
    known = ", ".join(str(e.get("name")) for e in entries if isinstance(e, dict)) or "none"
    raise invalid(f"kubeconfig.{section}", f"holds no entry named {name!r}; it has: {known}"[:500])


def _cluster_faults(cluster: Section, path: str) -> Iterator[FieldFault]:
    yield from _forbidden(cluster, path, _FORBIDDEN_CLUSTER)
    yield from _texts(cluster, path, ("server", "tls-server-name"))
    fault = server_fault(cluster.get("server"))
    if fault:
        yield FieldFault(f"{path}.server", fault)


def server_fault(server: object) -> str:
    """What is wrong with an API server's URL; empty when nothing is."""
    if not server or not isinstance(server, str):
        return "is required: the https:// URL of the API server"
    try:
        url = urlsplit(server)
        port_ok = url.port is None or url.port > 0
    except ValueError:
        return "is not a URL"
    if url.scheme != "https":
        return "must start with https://: credentials are never sent in the clear"
    if url.username is not None or url.password is not None:
        return "must not carry a user name or password"
    if not url.hostname or not port_ok or url.query or url.fragment or any(c <= " " for c in server):
        return "must be https://host[:port][/path]"
    return ""


def _user_faults(user: Section, path: str) -> Iterator[FieldFault]:
    yield from _forbidden(user, path, _FORBIDDEN_USER)
    yield from _texts(user, path, ("token",))
    token = user.get("token")
    if isinstance(token, str) and any(not "!" <= c <= "~" for c in token):
        yield FieldFault(f"{path}.token", "holds a blank or a character that no HTTP header can carry")
    has = {key: bool(user.get(f"client-{key}-data")) for key in ("certificate", "key")}
    if has["certificate"] != has["key"]:
        missing = "key" if has["certificate"] else "certificate"
        yield FieldFault(f"{path}.client-{missing}-data", "is required: certificate and key come as a pair")
    if not token and not any(has.values()) and not _FORBIDDEN_USER.keys() & user.keys():
        yield FieldFault(path, "holds no credentials: give a token, or client-certificate-data and client-key-data")


def _forbidden(body: Section, path: str, table: dict[str, str]) -> Iterator[FieldFault]:
    for key, remedy in table.items():
        if body.get(key):
            yield FieldFault(f"{path}.{key}", f"is not accepted: {remedy}")


def _texts(body: Section, path: str, keys: tuple[str, ...]) -> Iterator[FieldFault]:
    for key in keys:
        if body.get(key) is not None and not isinstance(body[key], str):
            yield FieldFault(f"{path}.{key}", "must be text")


def _pem(body: Section, key: str, path: str) -> str:
    data = body.get(key)
    if not data:
        return ""
    try:
        pem = base64.b64decode("".join(str(data).split()), validate=True).decode("ascii")
    except (binascii.Error, ValueError) as e:
        raise invalid(f"{path}.{key}", "is not base64 text of a PEM file") from e
    if "-----BEGIN " not in pem:
        raise invalid(f"{path}.{key}", "is not base64 text of a PEM file")
    return pem
