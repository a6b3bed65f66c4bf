"""GitOps controllers against the fleet, by the calls they make: Argo CD and Flux apply on the server under a manager's name,
compare what is there with a dry run, and prune by their labels. Stock kubectl makes the calls; the controllers do not run here.
"""

from pathlib import Path

import pytest
import yaml

from jobs.models import Job, Policy
from tests.support.kubectl import served

pytestmark = pytest.mark.django_db(transaction=True)
EXAMPLES = Path(__file__).parents[3] / "docs" / "examples"
NAMES = sorted(path.stem for path in EXAMPLES.glob("*.yaml"))
MANAGERS = ("argocd-controller", "kustomize-controller")
INSTANCE = "app.kubernetes.io/instance=llama"


@pytest.fixture(scope="module")
def kubectl(django_db_blocker, tmp_path_factory):
    with served(tmp_path_factory.mktemp("door")) as door:
        yield door


@pytest.fixture
def sync(admin, kubectl):
    return kubectl.as_user("ada")


def labelled(text: str) -> str:
    documents = [each for each in yaml.safe_load_all(text) if each]
    for each in documents:
        each["metadata"].setdefault("labels", {})["app.kubernetes.io/instance"] = "llama"
    return yaml.safe_dump_all(documents)


@pytest.mark.parametrize("example", NAMES)
def test_nothing_differs_after_an_apply_by_either_way(sync, example):
    if example == "trainjob":
        sync.says("apply", "-f", str(EXAMPLES / "trainingruntime.yaml"))
    file = str(EXAMPLES / f"{example}.yaml")
    sync.says("apply", "-f", file)
    done = sync.tries("diff", "-f", file)
    assert (done.returncode, done.stdout) == (0, "")
    for manager in MANAGERS:
        side = ("--server-side", "--force-conflicts", f"--field-manager={manager}")
        sync.says("apply", *side, "-f", file)
        done = sync.tries("diff", *side, "-f", file)
        assert (done.returncode, done.stdout) == (0, "")


def test_a_sync_that_changes_nothing_writes_nothing(sync):
    side = ("--server-side", "--field-manager=argocd-controller", "-f", str(EXAMPLES / "policy.yaml"))
    sync.says("apply", *side)
    before = Policy.objects.get().resource_version
    sync.says("apply", *side)
    assert Policy.objects.get().resource_version == before


def test_what_left_the_repository_is_pruned_by_its_label(sync):
    policy = labelled((EXAMPLES / "policy.yaml").read_text())
    sync.says("apply", "-f", "-", given=policy + "\n---\n" + labelled((EXAMPLES / "job.yaml").read_text()))
    kinds = ("batch/v1/Job", "policy.one.alibabacloud.com/v1alpha1/PropagationPolicy")
    allowed = [f"--prune-allowlist={kind}" for kind in kinds]
    assert "pruned" in sync.says("apply", "--prune", *allowed, "-l", INSTANCE, "-f", "-", given=policy)
    assert not Job.objects.filter(deleting_at=None).exists() and Policy.objects.exists()


def test_it_deletes_in_the_foreground_as_argo_cd_does(sync):
    sync.says("apply", "--server-side", "-f", "-", given=labelled((EXAMPLES / "job.yaml").read_text()))
    sync.says("delete", "jobs.batch", "-l", INSTANCE, "--cascade=foreground", "--wait=false")
    assert not Job.objects.filter(deleting_at=None).exists()


def test_a_dry_run_names_the_fault_and_writes_nothing(sync):
    wrong = (EXAMPLES / "job.yaml").read_text().replace("containers:", "contaners:")
    refused = sync.refused("apply", "--server-side", "--dry-run=server", "-f", "-", given=wrong)
    assert "contaners" in refused or "containers" in refused
    assert not Job.objects.exists()
