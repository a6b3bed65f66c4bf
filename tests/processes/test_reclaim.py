"""Reclaim over real processes: a team that submits more jobs alike than its min holds has its min, and the others wait."""

import json
from collections import Counter
from collections.abc import Iterator

import httpx
import pytest
import yaml

from tests.support import template
from tests.support.product import Product, wait

pytestmark = [pytest.mark.processes, pytest.mark.xdist_group("up")]
GPU = "nvidia.com/gpu"
JOB = """
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata:
  name: {name}
  namespace: {team}
  annotations: {{convoy.dev/checkpoint-grace: "5"}}
spec:
  pytorchReplicaSpecs:
    Master:
      replicas: 1
      template:
        metadata: {{annotations: {{convoy.dev/duration: 1h}}}}
        spec:
          containers:
            - {{name: pytorch, image: example.com/train, resources: {{limits: {{nvidia.com/gpu: 8}}}}}}
"""
POLICY = """
apiVersion: policy.karmada.io/v1alpha1
kind: ClusterPropagationPolicy
metadata: {name: everywhere}
spec:
  resourceSelectors: [{apiVersion: kubeflow.org/v1, kind: PyTorchJob}]
  placement: {clusterAffinity: {clusterNames: [north, south]}}
"""


@pytest.fixture(scope="module")
def product(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Product]:
    product = Product(tmp_path_factory.mktemp("reclaim") / "home")
    template.home_at(product.home.path)
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("CONVOY_DEMO_LIFE", "off")
        started = product.manage("up", "--detach")
    assert started.returncode == 0, started.stdout + started.stderr
    yield product
    product.manage("down")


@pytest.fixture
def api(product: Product) -> Iterator[httpx.Client]:
    door = json.loads((product.home.path / "cli.json").read_text())
    headers = {"Authorization": f"Bearer {door['token']}", "Content-Type": "application/yaml"}
    with httpx.Client(base_url=door["url"].rstrip("/") + "/api/v1/", headers=headers, timeout=180) as api:
        yield api


def apply(api: httpx.Client, *texts: str) -> None:
    answer = api.post("apply", content="\n---\n".join(texts))
    assert answer.is_success, answer.text


def tree(low: int, total: int) -> str:
    def node(name: str, low: int, **fields: object) -> dict[str, object]:
        return {"name": name, "min": {GPU: low}, "max": {GPU: total}, **fields}

    teams = [node("a", low, namespaces=["a"]), node("b", 0, namespaces=["b"])]
    root = node("root", total, children=teams)
    kind = {"apiVersion": "scheduling.sigs.k8s.io/v1beta1", "kind": "ElasticQuotaTree"}
    return yaml.safe_dump(
        {**kind, "metadata": {"name": "elasticquotatree", "namespace": "kube-system"}, "spec": {"root": root}}
    )


def states(api: httpx.Client, team: str) -> Counter[str]:
    jobs = api.get("jobs/", params={"namespace": team, "page_size": 100}).json()["results"]
    return Counter(job["state"] for job in jobs)


def test_a_team_with_five_jobs_alike_has_its_min_from_borrowers_that_hold_all(api: httpx.Client) -> None:
    for job in api.get("jobs/").json()["results"]:
        api.delete(f"jobs/{job['id']}/").raise_for_status()
    wait(lambda: not api.get("jobs/").json()["count"])
    apply(api, tree(16, 24), POLICY)
    apply(api, *(JOB.format(name=f"b{i}", team="b") for i in range(3)))
    wait(lambda: states(api, "b") == {"Running": 3})
    apply(api, *(JOB.format(name=f"a{i}", team="a") for i in range(5)))
    wait(lambda: states(api, "a") == {"Running": 2, "Queued": 3})
    assert states(api, "b") == {"Running": 1, "Queued": 2}
