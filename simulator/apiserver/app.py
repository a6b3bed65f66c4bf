"""HTTP in, HTTP out: who is asking, what a path means, which verb is called. A raw ASGI application."""

import asyncio
import contextlib
import hmac
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from fleet.kube import crds, discovery, openapi
from fleet.kube.discovery import Served
from fleet.kube.options import APPLY_PATCH
from fleet.kube.resources import ACCESS_REVIEWS
from fleet.kube.status import KubeError
from simulator.apiserver import accounts, lists, metrics, streams
from simulator.apiserver.accounts import Account, Tokens
from simulator.apiserver.faults import Faults
from simulator.apiserver.operations import Operations
from simulator.apiserver.paths import Target, parse
from simulator.apiserver.request import Receive, Request, Scope, Send, encoded, request
from simulator.apiserver.streams import LogSource

_OPEN_PATHS = ("/healthz", "/livez", "/readyz", "/version")
_COLLECT_S = 0.05
"""How long after its creation an object without living owners is looked for."""
_NO_FAULTS = Faults()
_NOT_ALLOWED = KubeError(405, "the server does not allow this method on the requested resource")


class Application:
    def __init__(
        self,
        operations: Operations,
        faults: Faults,
        *,
        token: str,
        inner_token: str,
        version: str,
        logs: LogSource | None,
        measured: bool,
    ) -> None:
        """Who comes with the inner token meets no faults."""
        self._ops = operations
        self._faults = faults
        self.accept(token)
        self._inner_token = inner_token.encode()
        self._version = version
        self._logs = logs
        self._measured = measured
        self._stopped = asyncio.Event()
        self._wakers: set[Callable[[], None]] = set()
        self._tokens = Tokens()

    def accept(self, token: str) -> None:
        """The token that is good from now on."""
        self._token = token.encode()

    def stop(self) -> None:
        """Ends whatever goes on; called on the event loop."""
        self._stopped.set()
        self.wake()

    def wake(self) -> None:
        """Makes open streams look around, because a fault was switched; called on the event loop."""
        for wake in tuple(self._wakers):
            wake()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        given = _bearer(dict(scope["headers"]).get(b"authorization", b""))
        inner = hmac.compare_digest(given, self._inner_token)
        asked = request(scope, receive, send, _NO_FAULTS if inner else self._faults)
        if asked.gone:
            await asked.hang_up()
            return
        try:
            await asked.read()
            await self._pause(asked.faults.slow_s)
            admin = inner or hmac.compare_digest(given, self._token)
            account = None if admin else self._tokens.account(given, _now())
            # As at a real API server: credentials that are refused do not make a caller anonymous.
            anonymous = asked.path in _OPEN_PATHS and not given
            if not (admin or account or anonymous):
                raise KubeError(401, "Unauthorized")
            if (code := asked.faults.error_code()) is not None:
                raise KubeError(code, "the server is having a bad moment (simulated)")
            await self._answer(asked, account)
        except KubeError as e:
            await asked.answer(e.code, e.as_status())

    async def _pause(self, seconds: float) -> None:
        if seconds:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._stopped.wait(), seconds)

    async def _answer(self, asked: Request, account: Account | None) -> None:
        """``account``: the ServiceAccount that asks; None is an administrator, who may do everything."""
        document = self._document(asked) if asked.method == "GET" else None
        if isinstance(document, str):
            return await asked.whole(200, document.encode(), b"text/plain")
        if document is not None and document.get("kind") == "APIGroupDiscoveryList":
            return await asked.whole(200, encoded(document), discovery.AGGREGATED.encode())
        if document is not None:
            return await asked.answer(200, document)
        if account is not None:
            self._authorise(asked, account)
        if asked.method == "POST" and (review := _REVIEWS.get(asked.path)):
            return await asked.answer(201, _reviewed(asked, *review))
        if asked.method == "POST" and asked.path == ACCESS_REVIEWS.path():
            return await asked.answer(
                201, _reviewed(asked, ACCESS_REVIEWS.kind, {"allowed": _review_allows(asked, self._faults)})
            )
        if self._measured and asked.method == "GET" and asked.path.startswith(metrics.ROOT):
            wanted = lists.wanted(asked.query, metrics.SERVED[0])
            return await asked.answer(200, metrics.answer(asked.path, self._ops.store, wanted, datetime.now(UTC)))
        target = parse(asked.path, self._ops.catalog)
        if target.subresource == "log" and asked.method == "GET":
            pod = self._ops.get(target.served, target.namespace, target.name)
            return await streams.log(asked, target, pod, self._logs, self._stopped.is_set)
        if asked.method == "GET" and not target.name and asked.truth("watch"):
            return await streams.watch(asked, target, self._ops.store, self._stopped.is_set, self._wakers)
        code, answer = self._verb(asked, target) if target.name else self._collection_verb(asked, target)
        if asked.method == "GET" and asked.wants_table:
            answer = lists.printed(target.served, answer, whole=asked.wants_objects)
        return await asked.answer(code, answer)

    def _authorise(self, asked: Request, account: Account) -> None:
        """KubeError: the ServiceAccount may not do that."""
        target = parse(asked.path, self._ops.catalog)
        resource = target.served.resource
        verb = accounts.verb_of(asked.method, target.name, watch=asked.truth("watch"))
        if not _may(account, verb, resource.group, resource.plural, target.namespace, self._faults):
            words = f'{resource.plural} is forbidden: User "{account.user}" cannot {verb} resource "{resource.plural}"'
            where = f' in API group "{resource.group}" in the namespace "{target.namespace}"'
            raise KubeError(403, words + where, reason="Forbidden")

    def _document(self, asked: Request) -> dict[str, Any] | str | None:
        """Everything that is not an object: health, version, discovery, OpenAPI."""
        path = asked.path.rstrip("/")
        if path in ("/healthz", "/livez", "/readyz"):
            return "ok"
        if path == "/version":
            return discovery.version(self._version)
        if path in ("/api", "/apis") and discovery.wants_aggregated(asked.accept):
            core = path == "/api"
            known = (each for each in self._served() if (each.resource.group == "") == core)
            return discovery.aggregated(known, metrics.verbs)
        if path == "/api":
            return discovery.core_versions()
        if path == "/apis":
            return discovery.groups(self._served())
        if path.startswith("/openapi/v3"):
            root = path.removeprefix("/openapi/v3").strip("/")
            return self._kinds_document(root) if root else openapi.index(self._ops.catalog)
        parts = path.strip("/").split("/")
        if self._measured and parts[:2] == ["apis", metrics.GROUP] and len(parts) < 4:
            return metrics.discovered(len(parts) == 2)
        if parts[0] == "apis" and len(parts) == 2 and (versions := self._ops.catalog.versions(parts[1])):
            return discovery.group(parts[1], versions)
        if path == "/api/v1" or (parts[0] == "apis" and len(parts) == 3):
            group, version = ("", "v1") if parts[0] == "api" else (parts[1], parts[2])
            served = self._ops.catalog.of_version(group, version)
            if served:
                return discovery.resource_list(f"{group}/{version}" if group else version, served)
        return None

    def _served(self) -> list[Served]:
        return [*self._ops.catalog, *(metrics.SERVED if self._measured else ())]

    def _kinds_document(self, root: str) -> dict[str, Any] | None:
        """Kinds of training are explained by what their definitions have in common."""
        served = [replace(s, document=crds.explained(s.resource, s.document)) for s in self._ops.catalog]
        found = openapi.document(root, served)
        if found is not None:
            found["components"]["schemas"] = {**crds.components(), **found["components"]["schemas"]}
        return found

    def _verb(self, asked: Request, target: Target) -> tuple[int, dict[str, Any]]:
        ops, where, part = self._ops, (target.served, target.namespace, target.name), target.subresource
        if part == "scale":
            return 200, self._scale(asked, target)
        match asked.method:
            case "POST" if part == "token":
                return 201, self._issue(asked, target)
            case "POST" if part == "binding":
                return 201, ops.bind(*where, asked.body())
            case "GET" if part not in ("binding", "token"):
                return 200, ops.get(*where)
            case "PUT" if part in ("", "status"):
                return 200, ops.update(*where, asked.body(), part, asked.write())
            case "PATCH" if part in ("", "status"):
                write = asked.write()
                if asked.content_type == APPLY_PATCH:
                    return ops.apply(*where, asked.body(), part, write)
                return 200, ops.patch(*where, asked.body(), part, asked.content_type, write)
            case "DELETE" if not part:
                return 200, ops.delete(*where, _options(asked))
        raise _NOT_ALLOWED

    def _issue(self, asked: Request, target: Target) -> dict[str, Any]:
        """A TokenRequest. Every namespace has a ServiceAccount ``default``, as where a controller makes it."""
        if target.name != "default":
            self._ops.get(target.served, target.namespace, target.name)
        body = asked.body()
        seconds = (body.get("spec") or {}).get("expirationSeconds") if isinstance(body, dict) else None
        token, expires = self._tokens.issue(Account(target.namespace, target.name), seconds, _now())
        stamp = datetime.fromtimestamp(expires, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        return {**(body if isinstance(body, dict) else {}), "status": {"token": token, "expirationTimestamp": stamp}}

    def _scale(self, asked: Request, target: Target) -> dict[str, Any]:
        ops, where = self._ops, (target.served, target.namespace, target.name)
        match asked.method:
            case "GET":
                return ops.scale(*where)
            case "PUT" | "PATCH":
                style = asked.content_type if asked.method == "PATCH" else ""
                return ops.rescale(*where, asked.body(), style, asked.write())
        raise _NOT_ALLOWED

    def _collection_verb(self, asked: Request, target: Target) -> tuple[int, dict[str, Any]]:
        ops, served, namespace = self._ops, target.served, target.namespace
        match asked.method:
            case "GET":
                return 200, lists.page(ops.store, served, namespace, asked.query)
            case "POST":
                write = asked.write()
                made = ops.create(served, namespace, asked.body(), write)
                if not write.options.dry and made["metadata"].get("ownerReferences"):
                    asyncio.get_running_loop().call_later(_COLLECT_S, ops.collect, served, made)
                return 201, made
            case "DELETE":
                gone = lists.page(ops.store, served, namespace, asked.query)
                ops.delete_collection(served, namespace, lists.wanted(asked.query, served), _options(asked))
                return 200, gone
        raise _NOT_ALLOWED


_ATTRIBUTES = ("verb", "group", "resource", "namespace")
_EVERYTHING = {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}
_EVERYWHERE = {"verbs": ["*"], "nonResourceURLs": ["*"]}
_REVIEWS: dict[str, tuple[str, dict[str, Any]]] = {
    "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews": ("SelfSubjectAccessReview", {"allowed": True}),
    "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews": (
        "SelfSubjectRulesReview",
        {"resourceRules": [_EVERYTHING], "nonResourceRules": [_EVERYWHERE], "incomplete": False},
    ),
    "/apis/authentication.k8s.io/v1/selfsubjectreviews": (
        "SelfSubjectReview",
        {"userInfo": {"username": "admin", "groups": ["system:masters", "system:authenticated"]}},
    ),
}
"""The one user is an administrator; ServiceAccounts have the rights of `accounts.RIGHTS`, which a fault may take away."""


def _bearer(authorization: bytes) -> bytes:
    """The token of the header; the scheme's case does not matter, as clients write both."""
    scheme, _, token = authorization.partition(b" ")
    return token.strip() if scheme.lower() == b"bearer" else b""


def _now() -> float:
    return datetime.now(UTC).timestamp()


def _may(account: Account, verb: str, group: str, plural: str, namespace: str, faults: Faults) -> bool:
    denied = f"{account.namespace}/{account.name}" in faults.denied
    return not denied and account.may(verb, group, plural, namespace)


def _review_allows(asked: Request, faults: Faults) -> bool:
    """The answer to a SubjectAccessReview."""
    spec = asked.body().get("spec") or {}
    account, attributes = accounts.from_user(str(spec.get("user", ""))), spec.get("resourceAttributes") or {}
    if account is None:
        return True
    verb, group, plural, namespace = (str(attributes.get(field, "")) for field in _ATTRIBUTES)
    return _may(account, verb, group, plural, namespace, faults)


def _reviewed(asked: Request, kind: str, status: dict[str, Any]) -> dict[str, Any]:
    review = asked.body()
    identity = {"kind": kind, "apiVersion": "/".join(asked.path.split("/")[2:4])}
    return {**(review if isinstance(review, dict) else {}), **identity, "status": status}


def _options(asked: Request) -> dict[str, Any]:
    given = asked.body()
    options = dict(given) if isinstance(given, dict) else {}
    if asked.query.get("dryRun"):
        options["dryRun"] = ["All"]
    if "propagationPolicy" in asked.query:
        options["propagationPolicy"] = asked.query["propagationPolicy"]
    if (seconds := asked.query.get("gracePeriodSeconds", "")).isdigit():
        options["gracePeriodSeconds"] = int(seconds)
    return options
