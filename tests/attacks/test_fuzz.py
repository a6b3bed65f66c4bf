"""Random requests to REST, the Kubernetes-style API and the proxy: no answer is an error of the server, and nothing crashes.

A few with fixed seeds in every run; ``make fuzz MINUTES=10`` goes on for so long with new ones, as every role, and prints the
seed of a failure, or the seeds, the number of requests by role and status, and the memory before and after.
"""

import json
import os
import random
import resource
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from django.db import close_old_connections, transaction
from django.utils import timezone
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from hypothesis.errors import Unsatisfiable
from schemathesis import GenerationMode

from deploy.config.kube import application
from fleet.kube.resources import PYTORCH_JOBS
from fleet.limits.settings import Limits
from fleet.member.client import Access
from fleet.models import Cluster, Grant
from fleet.services.authorization import access
from fleet.services.members import member_clients
from jobs.models import Job
from quotas.models import QuotaGrant
from simulator.apiserver import ApiServer
from tests.attacks import kube_door as kube
from tests.attacks import kube_kinds
from tests.attacks.bodies import JSON, YAML, as_json
from tests.fleet.api import rest_contract as rest
from tests.support import books, quotas
from tests.support.members import join, members, north, serve
from tests.support.people import person, roles_in
from tests.support.world import POLICY

__all__ = ["members", "north"]
headers, one_connection = rest.headers, rest.one_connection
MINUTES = float(os.environ.get("CONVOY_FUZZ_MINUTES", "0"))
MOST_GROWN_KB = 600_000
"""Of memory, while it runs."""
_SEEDS, _EXAMPLES, _APIS = 2, 40, 4
NAMES = ["settings", "llama", "", "x" * 64, "A_b", "..", "%2e%2e", "a/b", "é"]
HOMES = [
    kube.MAPS,
    kube.JOBS,
    kube.UNITS,
    "/api/v1/events",
    "/api/v1/namespaces",
    "/apis/cluster.karmada.io/v1alpha1/clusters",
    "/apis/policy.one.alibabacloud.com/v1alpha1/namespaces/default/propagationpolicies",
    "/apis/scheduling.sigs.k8s.io/v1beta1/namespaces/kube-system/elasticquotatrees",
    "/apis/work.karmada.io/v1alpha2/resourcebindings",
    "/apis/scheduling.x-k8s.io/v1alpha1/namespaces/kube-queue/queues",
    kube.ACCESS,
    "/openapi/v3",
    "/apis",
]
TYPES = [
    "application/json", "application/yaml", "application/merge-patch+json", "application/json-patch+json",
    "application/strategic-merge-patch+json", "application/apply-patch+yaml", "application/vnd.kubernetes.protobuf",
    "text/plain", "",
]  # fmt: skip
TREE = {
    "apiVersion": "scheduling.sigs.k8s.io/v1beta1", "kind": "ElasticQuotaTree",
    "metadata": {"name": "elasticquotatree", "namespace": "kube-system"},
    "spec": {"root": {"name": "root", "min": quotas.PLENTY, "max": quotas.PLENTY, "children": []}},
}  # fmt: skip
POD = {
    "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"},
    "spec": {"containers": [{"name": "c", "image": "x", "securityContext": {"privileged": True}}]},
}  # fmt: skip
PROXIED = [
    "", "/version", "/api", "/apis", "/openapi/v3", "/api/v1/nodes", "/api/v1/namespaces/team/pods",
    "/api/v1/namespaces/team/secrets", "/api/v1/namespaces/team/configmaps", "/api/v1/namespaces/kube-system/pods",
    "/apis/kubeflow.org/v1/namespaces/team/pytorchjobs", "/apis/apps/v1/namespaces/team/deployments",
    "/api/v1/watch/pods", "/api/v1/namespaces/team/services/x/proxy",
]  # fmt: skip
PARTS = [
    "", "", "", "/a", "/a", "/a/status", "/a/scale", "/a/log", "/a/ephemeralcontainers", "/a/binding", "/%2e%2e", "//",
]  # fmt: skip
DOCUMENTS = [kube.MAP, kube.JOB, kube.yaml.safe_load(POLICY), TREE]

scalars = (
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20)
    | st.sampled_from(["²", "\x00", "\ud800", "1e999", "-1", "9" * 400, "1Ki", "0.0000001", "*", "$patch", "a" * 300])
)  # fmt: skip
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=9), inner, max_size=4),
    max_leaves=9,
)


def _paths(document: Any) -> Iterator[tuple[Any, ...]]:
    pairs = (
        document.items() if isinstance(document, dict) else enumerate(document) if isinstance(document, list) else ()
    )
    for key, inner in pairs:
        yield (key,)
        for rest_ in _paths(inner):
            yield (key, *rest_)


@st.composite
def mutated(draw: Any) -> Any:
    """A document that is valid but for a few places."""
    document = json.loads(json.dumps(draw(st.sampled_from(DOCUMENTS))))
    for _ in range(draw(st.integers(0, 3))):
        *parents, last = draw(st.sampled_from(sorted(_paths(document), key=str)))
        inner = document
        for part in parents:
            inner = inner[part]
        inner[last] = draw(values)
    return document


patches = st.lists(
    st.fixed_dictionaries(
        {},
        optional={
            "op": st.sampled_from(["add", "remove", "replace", "move", "copy", "test", "x"]),
            "path": st.sampled_from(
                ["", "/", "/data", "/data/k", "/metadata", "/metadata/finalizers/0", "/spec/-", "/~1"]
            )
            | scalars,
            "from": st.sampled_from(["", "/data", "/metadata"]) | scalars,
            "value": values,
        },
    ),
    max_size=5,
)
bodies = (
    st.one_of(mutated(), values, patches).map(lambda value: as_json(value))
    | st.sampled_from([*JSON.values(), *YAML.values()])
    | st.binary(max_size=60)
    | st.text(max_size=60).map(lambda text: text.encode("utf-8", "surrogatepass"))
)
queries = st.dictionaries(
    st.sampled_from([*kube.QUERIES, "force", "watch", "propagationPolicy", "gracePeriodSeconds", "pretty", "x"]),
    st.sampled_from([text for texts in kube.QUERIES.values() for text in texts] + ["1", "0", "true", "a=b", "x"])
    | st.text(max_size=9),
    max_size=3,
).filter(lambda query: query.get("watch") not in ("1", "true", "True"))


Statuses = Counter[tuple[str, int]]
"""How often a role had a status."""


def few(examples: int) -> Any:
    return settings(
        max_examples=examples,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )


def people(own: str) -> dict[str, Any]:
    """A user of each role by its name; in a short run the admin alone, who is refused least."""
    return {"admin": person("ada", superuser=True), **(others(own) if MINUTES else {})}


def others(own: str) -> dict[str, Any]:
    grants = {role: grant for role, grant in roles_in(own).items() if role != "admin"}
    users = {role: person(role, *([grant] if grant else [])) for role, grant in grants.items()}
    QuotaGrant.objects.create(user=users["lead"], path=f"root/{own}")
    return users


def of_all(names: Iterable[str]) -> st.SearchStrategy[str]:
    """One of them; the admin, with whom requests get furthest, as often as all others together."""
    return st.just("admin") | st.sampled_from(sorted(names))


def again(round_: Callable[[int], None], statuses: Statuses) -> None:
    """With fixed seeds, or with new ones until an equal share of the time is over."""
    if not MINUTES:
        for number in range(_SEEDS):
            round_(number)
        assert statuses.total() > 0
        return
    before, seeds = _resident_kb(), []
    end = time.monotonic() + MINUTES * 60 / _APIS
    while time.monotonic() < end:
        seeds.append(random.randrange(2**32))
        try:
            round_(seeds[-1])
        except BaseException:
            print(f"seed {seeds[-1]}")
            raise
    print(f"\n{statuses.total()} requests in {len(seeds)} rounds, seeds {seeds}")
    for role in sorted({role for role, _ in statuses}):
        print(role, {code: number for (each, code), number in sorted(statuses.items()) if each == role})
    print(f"resident memory {before} KiB before, {_resident_kb()} KiB after")


def _resident_kb() -> int:
    """0 where the system has no /proc."""
    file = Path("/proc/self/statm")
    return int(file.read_text().split()[1]) * resource.getpagesize() // 1024 if file.exists() else 0


def doors_of(users: Mapping[str, Any]) -> dict[str, kube.Door]:
    served = application()
    return {role: kube.Door(user, served) for role, user in users.items()}


@pytest.fixture(autouse=True)
def memory_is_bounded() -> Iterator[None]:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    yield
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < MOST_GROWN_KB


@pytest.mark.django_db(transaction=True)
def test_the_kubernetes_door_answers_whatever_comes() -> None:
    doors, statuses = doors_of(people("default")), Statuses()

    @few(_EXAMPLES * 4)
    @given(
        of_all(doors),
        st.sampled_from(["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "X"]),
        st.sampled_from(HOMES),
        st.sampled_from(NAMES) | st.text(max_size=9),
        st.sampled_from(TYPES),
        bodies,
        queries,
    )
    def ask(role: str, method: str, home: str, name: str, kind: str, body: bytes, query: dict[str, str]) -> None:
        path = f"{home}/{name}" if name else home
        code, answer = doors[role].ask(method, path, body, kind, urlencode(query, errors="surrogatepass"))
        statuses[role, code] += 1
        assert code < 500, (role, method, path, kind, body[:300], query, answer)
        assert code < 400 or answer.get("kind") == "Status", (method, path, answer)

    again(lambda number: seed(number)(ask)(), statuses)
    close_old_connections()


@pytest.mark.django_db(transaction=True)
def test_every_kind_of_the_kubernetes_door_answers_whatever_comes() -> None:
    cluster = books.a_cluster("north", gpus=8)
    Cluster.objects.filter(pk=cluster.pk).update(access=member_clients.stored(Access("https://127.0.0.1:1")))
    doors, statuses = doors_of(people("vision")), Statuses()
    targets = kube_kinds.targets(doors["admin"].catalog)

    @few(_EXAMPLES * 3)
    @given(of_all(doors), kube_kinds.stories(targets, values, st.just({}) | queries))
    def tell(role: str, story: tuple[kube_kinds.Target, list[kube_kinds.Request]]) -> None:
        for each in story[1]:
            code, answer = doors[role].ask(each.method, each.path, each.body, each.content_type, each.query)
            statuses[role, code] += 1
            assert code < 500, (role, each, answer)
            assert code < 400 or answer.get("kind") == "Status", (each, answer)

    again(lambda number: seed(number)(tell)(), statuses)
    of_admin = {code: number for (role, code), number in statuses.items() if role == "admin"}
    shallow = of_admin.get(404, 0) + of_admin.get(405, 0)
    assert of_admin.keys() >= {200, 201} and shallow * 3 < sum(of_admin.values()), of_admin
    close_old_connections()


@pytest.mark.django_db(transaction=True)
def test_the_proxy_answers_whatever_comes(north: ApiServer) -> None:
    """As an editor, whose bodies are judged before they are passed on, and as an admin; the member is a real API server."""
    join(north)
    serve(north, PYTORCH_JOBS)
    editor = {} if MINUTES else {"editor": person("edda", (Grant.Role.EDITOR, "team"))}
    doors, statuses = doors_of({**people("team"), **editor}), Statuses()

    @few(_EXAMPLES * 3)
    @given(
        of_all(doors),
        st.sampled_from(["GET", "GET", "POST", "POST", "PUT", "PATCH", "DELETE", "HEAD"]),
        st.sampled_from(PROXIED),
        st.sampled_from(PARTS) | st.sampled_from(PARTS) | st.text(max_size=20).map(lambda text: f"/{text}"),
        st.sampled_from(TYPES),
        bodies | st.sampled_from([as_json(document) for document in (POD, *DOCUMENTS)]),
        st.just({}) | queries,
    )
    def ask(role: str, method: str, home: str, end: str, kind: str, body: bytes, query: dict[str, str]) -> None:
        query.pop("watch", None)  # it would go on
        path, asked = kube.PROXY + home + end, urlencode(query, errors="surrogatepass")
        if len(asked) > Limits().url:  # refused in front of the application (`fleet.limits`)
            return
        code, answer = doors[role].exchange(method, path, body, kind, asked)
        statuses[role, code] += 1
        assert code < 500, (role, method, path, kind, body[:300], query, answer)

    again(lambda number: seed(number)(ask)(), statuses)

    assert {200, 403} <= {code for _, code in statuses}, "some are passed on, and some are not"
    close_old_connections()


@pytest.mark.django_db
def test_rest_answers_whatever_its_contract_allows_and_what_it_does_not(
    headers: dict[str, str], one_connection: None, north: ApiServer
) -> None:
    """The member answers: an answer of 503 for one that does not would be right, and none is expected here."""
    Cluster.objects.filter(name="north").update(access=member_clients.stored(north.access()))
    job = str(Job.objects.get().uid)
    operations = rest.OPERATIONS if MINUTES else rest.OPERATIONS[::6]
    of_roles, statuses = {"admin": headers, **(others_of_rest() if MINUTES else {})}, Statuses()

    def round_(number: int) -> None:
        for operation in operations:
            for mode in GenerationMode:
                with suppress(Unsatisfiable):
                    seed(number)(_asking(operation, mode, job, of_roles, statuses))()

    again(round_, statuses)


def others_of_rest() -> dict[str, dict[str, str]]:
    """The headers of each role but the admin's, and of a caller without a token."""
    tokens = {
        role: access.mint(user, "fuzz", life=None, now=timezone.now())[1] for role, user in others("default").items()
    }
    return {"stranger": {}, **{role: {"Authorization": f"Bearer {token}"} for role, token in tokens.items()}}


def _asking(
    operation: Any, mode: GenerationMode, job: str, of_roles: Mapping[str, dict[str, str]], statuses: Statuses
) -> Any:
    there = {"name": "north", "node": "north-0", "username": "ada", "id": job if "job" in operation.path else "1"}

    @few(8 if MINUTES else 4)
    @given(of_all(of_roles), operation.as_strategy(generation_mode=mode), st.booleans())
    def ask(role: str, case: Any, known: bool) -> None:
        if known:
            case.path_parameters = {name: there[name] for name in case.path_parameters}
        with transaction.atomic():
            answer = case.call(headers=of_roles[role], app=rest.APPLICATION)
            transaction.set_rollback(True)
        statuses[role, answer.status_code] += 1
        assert answer.status_code < 500, (role, case, answer.content[:500])

    return ask
