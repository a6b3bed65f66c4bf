"""The API of a simulated member: `fleet.kube.server` over a store in memory, with its accounts."""

import asyncio
import hmac
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from fleet.kube.requests.status import KubeError, not_found
from fleet.kube.resources import PODS
from fleet.kube.server import paths, reviews
from fleet.kube.server import request as http
from fleet.kube.server.app import Answer, Server
from fleet.kube.server.kinds import History, Kind, Namespaces, Object
from fleet.kube.server.request import Receive, Request, Scope, Send
from fleet.kube.server.watching import Frame, Opening, WatchOptions
from simulator.apiserver import accounts, gpu_metrics, metrics, pod_logs, pod_streams, watching
from simulator.apiserver.accounts import Account, Tokens
from simulator.apiserver.faults import Faults
from simulator.apiserver.objects import rules
from simulator.apiserver.objects.catalog import Catalog, Target
from simulator.apiserver.objects.store import Store
from simulator.apiserver.pod_logs import LogSource
from simulator.apiserver.watching import Surroundings
from simulator.streaming.source import PodSource

_NO_FAULTS = Faults()


@dataclass(frozen=True, slots=True)
class User:
    account: Account | None
    """None: an administrator, who may do everything."""
    faults: Faults
    """The faults that apply to this user's requests."""


class StoreHistory(History):
    def __init__(self, store: Store) -> None:
        self._store = store

    def version(self) -> int:
        return self._store.version

    def floor(self) -> int:
        return self._store.floor


class Application(Server[Kind]):
    any_text = True

    def __init__(
        self,
        catalog: Catalog,
        store: Store,
        faults: Faults,
        *,
        token: str,
        inner_token: str,
        version: str,
        logs: LogSource | None,
        measured: bool,
    ) -> None:
        """The member's own components use the inner token, and are exempt from faults."""
        super().__init__(catalog, StoreHistory(store), version=version)
        self.catalog: Catalog = catalog
        self._store = store
        self._faults = faults
        self.accept(token)
        self._inner_token = inner_token.encode()
        self._logs = logs
        self._gpus = gpu_metrics.Exporters(store)
        for kind in metrics.measured(store) if measured else ():
            self.catalog.add(kind)
        self.stopped = asyncio.Event()
        self._wakers: set[Callable[[], None]] = set()
        """Makes open watches check the faults and `stopped`."""
        self._tokens = Tokens()

    def accept(self, token: str) -> None:
        """Replaces the token."""
        self._token = token.encode()

    def stop(self) -> None:
        """Ends all open streams. Call it on the event loop."""
        self.stopped.set()
        self.wake()

    def wake(self) -> None:
        """Makes open watches check the faults, because one has changed. Call it on the event loop."""
        for wake in tuple(self._wakers):
            wake()

    def is_inner(self, scope: Scope) -> bool:
        """Whether the request is from the member's own components."""
        authorization = dict(scope["headers"]).get(b"authorization", b"")
        return hmac.compare_digest(authorization, b"Bearer " + self._inner_token)

    def authenticate(self, request: Request) -> User:
        token = request.bearer.encode("latin-1")
        if hmac.compare_digest(token, self._inner_token):
            return User(None, _NO_FAULTS)
        account = None if hmac.compare_digest(token, self._token) else self._tokens.account(token, _now())
        if not account and not hmac.compare_digest(token, self._token):
            raise KubeError(401, "Unauthorized")
        if (code := self._faults.error_code()) is not None:
            details = {"retryAfterSeconds": 1} if code == 429 else None
            raise KubeError(code, "the server is having a bad moment (simulated)", details=details)
        return User(account, self._faults)

    def authorize(self, user: User, verb: str, target: Target) -> Namespaces:
        resource = target.kind.served.resource
        if not self._may(user.account, verb, resource.group, resource.plural, target.namespace):
            name = user.account.user if user.account else ""
            words = f'{resource.plural} is forbidden: User "{name}" cannot {verb} resource "{resource.plural}"'
            where = f' in API group "{resource.group}" in the namespace "{target.namespace}"'
            raise KubeError(403, words + where, reason="Forbidden")
        return frozenset({target.namespace}) if target.namespace else None

    def _may(self, account: Account | None, verb: str, group: str, plural: str, namespace: str) -> bool:
        if account is None:
            return True
        denied = f"{account.namespace}/{account.name}" in self._faults.denied
        return not denied and account.may(verb, group, plural, namespace)

    def review(self, kind: str, spec: Object, user: User) -> Object | None:
        """An administrator may do everything. ServiceAccounts have the permissions in `accounts.RIGHTS`."""
        if kind == reviews.WHOAMI:
            groups = ["system:authenticated"] if user.account else ["system:masters", "system:authenticated"]
            return {"userInfo": {"username": user.account.user if user.account else "admin", "groups": groups}}
        account = user.account
        if kind == reviews.RULES:
            return {
                **(_EVERYTHING if account is None or account.is_fleet else accounts.rules(account)),
                "incomplete": False,
            }
        if kind != reviews.ACCESS:
            account = accounts.from_user(str(spec.get("user", "")))
        attributes = reviews.attributes_of(spec)
        verb, group, plural, namespace = (attributes.get(field, "") for field in _ATTRIBUTES)
        return {"allowed": self._may(account, verb, group, plural, namespace)}

    def now(self) -> datetime:
        return rules.now()

    def pick(self, letters: str) -> str:
        return secrets.choice(letters)

    async def watch(self, options: WatchOptions, frame: Frame) -> Opening:
        kind = self.catalog.of(options.kind.served.resource)
        surroundings = Surroundings(options.user.faults, self.stopped.is_set, self._wakers)
        return await watching.begin(options, frame, kind, self._store, surroundings)

    def connect(self, request: Request, target: Target, user: User) -> Answer | None:
        """Answers the subresources log, binding and token."""
        match target.subresource:
            case "log":
                return pod_logs.log(request, target, self._current(target), self._logs, self._ending(user))
            case "binding":
                return 201, self.catalog.of(PODS).bind(target.namespace, target.name, request.body())
            case "token":
                return 201, self._issue(request, target)
        return None

    async def forward(self, scope: Scope, request: Request, receive: Receive, send: Send) -> bool:
        """Streams into pods take the connection; exporters of GPU readings are reached through the server."""
        if request.method == "GET" and (pod := gpu_metrics.exporter_of(request.path)):
            target = paths.parse(pod, self.catalog)
            self.authorize(self.authenticate(request), "get", target)
            await http.answer(send, 200, self._gpus.text(self._current(target)), [])
            return True
        if not pod_streams.is_wanted(request.path):
            return False
        user, target = self.authenticate(request), paths.parse(request.path, self.catalog)
        self.authorize(user, "create", target)
        source = self._logs if isinstance(self._logs, PodSource) else None
        await pod_streams.answer(scope, send, target, self._current(target), source, self.stopped)
        return True

    def _current(self, target: Target) -> Object:
        current = target.kind.get(target.namespace, target.name)
        if current is None:
            raise not_found(target.kind.served.resource, target.name)
        return current

    def _ending(self, user: User) -> Callable[[], bool]:
        return lambda: self.stopped.is_set() or user.faults.away

    def _issue(self, request: Request, target: Target) -> Object:
        """Answers a TokenRequest. Every namespace has a ServiceAccount ``default``, which a controller creates in a real
        cluster.
        """
        if target.name != "default":
            self._current(target)
        body = request.body()
        seconds = (body.get("spec") or {}).get("expirationSeconds") if isinstance(body, dict) else None
        if isinstance(seconds, int) and not accounts.SHORTEST_S <= seconds <= accounts.LONGEST_S:
            raise KubeError(422, f"spec.expirationSeconds: Invalid value: {seconds}: {_LIMITS}", reason="Invalid")
        token, expires = self._tokens.issue(Account(target.namespace, target.name), seconds, _now())
        stamp = rules.timestamp(datetime.fromtimestamp(expires, rules.now().tzinfo))
        return {**(body if isinstance(body, dict) else {}), "status": {"token": token, "expirationTimestamp": stamp}}


_LIMITS = "may not specify a duration less than 10 minutes or larger than 2^32 seconds"
_ATTRIBUTES = ("verb", "group", "resource", "namespace")
_EVERYTHING: Object = {
    "resourceRules": [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}],
    "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}],
}


def _now() -> float:
    return rules.now().timestamp()
