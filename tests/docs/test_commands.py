"""A doctest for shells: the commands of README and of the pages for users, run as they are written, in a fresh clone.

Real: the clone, its installation, the product as `up` starts it, and every command. Simulated: the members.
"""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from deploy.bootstrap.home import ROOT
from tests.docs.pages import PAGES, blocks, commands
from tests.docs.shell import Shell

pytestmark = pytest.mark.docs

NOT_RUN = {
    "python3 manage.py up": "the shell's clone is up, with the console that these tests built by the same code",
    "python3 manage.py test": "this is a test",
    "python3 manage.py up --members DIR": "joins real clusters",
    ".venv/bin/convoy cluster join north --kubeconfig FILE": "joins a real cluster",
    ".venv/bin/convoy cluster drain north": "of the real cluster that was joined",
    "G=/sys/fs/cgroup/cpu/convoy-half; mkdir -p $G": "takes root and cgroups of version 1",
    "echo 10000 > $G/cpu.cfs_period_us; echo $(($(nproc) * 5000)) > $G/cpu.cfs_quota_us": "as above",
    "(echo $BASHPID > $G/cgroup.procs; exec .venv/bin/python manage.py test tests/scale/test_wakeup.py -m bench -s -n 0)": (
        "as above"
    ),
    "rmdir $G": "as above",
}
REFUSED = {
    "kubectl logs --previous tensorboard-master-0": "previous terminated container",
}
ENDLESS = re.compile(r"\s(-w|-f)\b(?! \S+\.yaml)|port-forward|attach")
JOBS = "kubectl apply -f docs/examples/policy.yaml"
RUNS = "kubectl wait --for=condition=Running pytorchjob/{} --timeout=180s"
READY = "kubectl wait --for=condition=Ready pod -l training.kubeflow.org/job-name={} --timeout=180s"
DEMO = [
    "kubectl delete pytorchjobs,jaxjobs,mpijobs.v2beta1.kubeflow.org --all --all-namespaces --timeout=180s",
    "kubectl delete elasticquotatrees --all --all-namespaces",
    "kubectl apply -f deploy/demo/quota-tree.yaml -f deploy/demo/pytorchjob.yaml",
    RUNS.format("pytorch-test"),
    READY.format("pytorch-test"),
]
"""The fleet as `up` shows it, without what the pages before have left."""
BEFORE = {
    "docs/cli.md": [JOBS],
    "docs/python.md": [JOBS],
    "docs/quota-tree.md": [
        "kubectl delete pytorchjob pytorch-test",
        "sed -n '/^```yaml/,/^```/p' docs/quotas.md | sed '1d; /^```/,$d' > tree.yaml",
        f"{JOBS} -n vision",
        "convoy submit pytorchjob -n vision --name=llama --gpus=9 --workers=1 --image=example.com/llama -- python train.py",
        "export CONVOY=http://127.0.0.1:$CONVOY_PORT",
        "export TOKEN=$(kubectl config view --raw -o jsonpath='{.users[0].user.token}')",
    ],
}
AFTER = {
    "kubectl apply -f deploy/demo/tensorboard.yaml": f"{RUNS.format('tensorboard')} && {READY.format('tensorboard')}",
}
"""What a reader waits for before the next command."""


def title(page: Path) -> str:
    return str(page.relative_to(ROOT))


def written(page: Path) -> list[str]:
    return [command for block in blocks(page) if block.language == "sh" for command in commands(block)]


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shell]:
    shell = Shell.in_fresh_clone(tmp_path_factory.mktemp("fresh") / "convoy")
    shell.run("python3 manage.py up --detach", timeout_s=1800)
    yield shell
    shell.run("python3 manage.py down")


@pytest.mark.parametrize("page", [page for page in PAGES if {*written(page)} - {*NOT_RUN}], ids=title)
def test_the_commands_of_the_page_run_as_they_are_written(clone, page):
    begin(clone, page)
    for command in written(page):
        follow(clone, command)


def begin(shell: Shell, page: Path) -> None:
    shell.variables.clear()
    for command in [*DEMO, *BEFORE.get(title(page), [])]:
        shell.run(command)


def follow(shell: Shell, command: str) -> None:
    if command in NOT_RUN:
        return
    if command in REFUSED:
        assert REFUSED[command] in shell.refused(command)
    elif ENDLESS.search(command):
        shell.watched(command)
    else:
        shell.run(command)
    if command in AFTER:
        shell.run(AFTER[command])


def test_the_python_of_its_page_runs_in_the_clone(clone):
    page = next(page for page in PAGES if page.name == "python.md")
    text = "\n".join(block.text for block in blocks(page) if block.language == "python")
    begin(clone, page)
    (clone.folder / "page.py").write_text(text)
    clone.run("python page.py")


def test_every_exception_is_still_on_a_page():
    assert {*NOT_RUN, *REFUSED, *AFTER} <= {command for page in PAGES for command in written(page)}
