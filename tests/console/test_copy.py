"""What the console offers to be copied, run by a shell as it stands: kubectl, the command line, curl, against the product."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from django.utils import timezone
from playwright.sync_api import Page, expect

from fleet.models import Cluster
from fleet.services.authorization import access
from jobs.models import Job
from quotas.models import Queue
from tests.console.builders import go, sign_in
from tests.support import kubectl
from tests.support.world import pytorch_job

pytestmark = pytest.mark.django_db(transaction=True)
TREE = """
apiVersion: scheduling.sigs.k8s.io/v1beta1
kind: ElasticQuotaTree
metadata: {name: elasticquotatree, namespace: kube-system}
spec:
  root:
    name: root
    max: {cpu: 64, memory: 512Gi, nvidia.com/gpu: 4}
    min: {cpu: 64, memory: 512Gi, nvidia.com/gpu: 4}
    children:
      - name: vision
        namespaces: [vision]
        max: {cpu: 64, memory: 512Gi, nvidia.com/gpu: 4}
        min: {cpu: 32, memory: 256Gi, nvidia.com/gpu: 2}
"""
WAYS = ("kubectl", "convoy", "curl")


@dataclass
class Shell:
    folder: Path
    env: dict[str, str]

    def runs(self, command: str) -> str:
        """What it prints when the product accepts it: curl says so only when it is asked to fail."""
        given = command.replace("curl -sS", "curl -sS --fail-with-body")
        done = subprocess.run(
            ["/bin/sh", "-c", given], cwd=self.folder, env=self.env, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
        return done.stdout


@pytest.fixture
def shell(site: str, page: Page, aside: Callable, tmp_path: Path) -> Iterator[Shell]:
    from django.contrib.auth import get_user_model

    admin = aside(get_user_model().objects.get, username="ada")
    _, token = aside(access.mint, admin, "shell", life=None, now=timezone.now())
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    env = {"PATH": path, "HOME": str(tmp_path), "CONVOY_URL": site, "CONVOY_TOKEN": token, "NO_PROXY": "*"}
    with kubectl.served(tmp_path) as door:
        file = aside(door.as_user, "ada").file
        (tmp_path / ".convoy").mkdir()
        file.rename(tmp_path / ".convoy" / "kubeconfig")
        yield Shell(tmp_path, env)


def offered(page: Page, within=None) -> dict[str, str]:
    """The commands behind the button, by their way."""
    (within or page).get_by_role("button", name="Copy as a command").first.click()
    items = page.get_by_role("menu", name="Copy as a command").get_by_role("menuitem")
    expect(items.first).to_be_visible()
    found = {item.locator("span").first.inner_text(): item.locator("code").inner_text() for item in items.all()}
    page.keyboard.press("Escape")
    expect(items).to_have_count(0)
    return found


@pytest.fixture
def llama(world, aside, north) -> Job:
    aside(world.apply, pytorch_job("llama", duration="10h"))
    aside(world.expect, "llama", "Running", on="north")
    return aside(Job.objects.get, name="llama")


VIEWS = {
    "/fleet": ("north", WAYS),
    "/fleet/north": ("north", WAYS),
    "/jobs": ("llama", WAYS),
    "/jobs?namespace=default&kind=PyTorchJob": ("llama", WAYS),
    "/jobs?state=Running&cluster=north": ("llama", ("curl",)),
    "/jobs/{id}": ("llama", WAYS),
    "/policies": ("example-policy", WAYS),
    "/events": ("llama", WAYS),
    "/events?namespace=default&type=Warning": ("", ("kubectl", "curl")),
    "/incidents": ("", ("curl",)),
    "/audit": ("count", ("curl",)),
    "/access": ("ada", ("curl",)),
    "/system": ("database", ("curl",)),
}


def test_it_offers_every_view_as_commands_that_work(page, llama, shell):
    sign_in(page)
    for path, (told, ways) in VIEWS.items():
        go(page, path.format(id=llama.uid))
        commands = offered(page, page.locator("main header"))
        assert tuple(commands) == ways, path
        for way, command in commands.items():
            assert told in shell.runs(command), f"{path} by {way}: {command}"


ACTIONS = [("Suspend", {"suspended": True}), ("Resume", {"suspended": False})]


@pytest.mark.parametrize("way", WAYS)
def test_it_offers_what_is_done_to_a_job(world, page, aside, llama, shell, way):
    sign_in(page, at=f"/jobs/{llama.uid}")
    for action, after in ACTIONS:
        page.get_by_role("button", name="Actions for llama").click()
        page.get_by_role("menuitem", name=action, exact=True).click()
        dialog = page.get_by_role("dialog", name=f"{action} llama")
        shell.runs(offered(page, dialog)[way])
        dialog.get_by_role("button", name="Cancel").click()
        assert aside(Job.objects.filter(pk=llama.pk, **after).exists)
        page.reload()


@pytest.mark.parametrize("way", WAYS)
def test_it_offers_what_is_done_to_a_cluster(page, aside, llama, shell, way):
    sign_in(page, at="/fleet/north")
    for action, cordoned, drained in (("Cordon", True, False), ("Drain", True, True), ("Open again", False, False)):
        page.get_by_role("button", name=action, exact=True).click()
        if action == "Drain":
            expect(page.get_by_role("heading", name="Drain north", level=1)).to_be_visible()
        header = page.locator("main header")
        shell.runs(offered(page, header if action == "Drain" else page.get_by_role("dialog"))[way])
        cluster = aside(Cluster.objects.get, name="north")
        assert (cluster.cordoned, cluster.drained) == (cordoned, drained)
        page.goto("/fleet/north")


@pytest.mark.parametrize("way", ["convoy", "curl"])
def test_it_offers_what_is_done_to_a_queue(world, page, aside, north, shell, way):
    aside(world.apply, TREE)
    sign_in(page, at="/quotas")
    page.get_by_role("button", name="Queue of root/vision").click()
    page.get_by_role("menuitem", name="Hold").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Comment").fill("it's late")
    shell.runs(offered(page, dialog)[way])
    queue = aside(Queue.objects.get, path="root/vision")
    assert (queue.state, queue.state_comment) == ("Held", "it's late")
