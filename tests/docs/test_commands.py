"""A doctest for shells: the commands of README and of the pages, run as they are written, in a fresh clone.

Real: the clone, its installation, the product as `up` starts it, and every command. Simulated: the members.
"""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from tests.docs.pages import DEVELOPMENT, PAGES, blocks, shell_of, title
from tests.docs.shell import Shell
from tests.docs.unrun import BLOCKS as NOT_RUN_BLOCKS
from tests.docs.unrun import COMMANDS as NOT_RUN
from tests.docs.unrun import PAGES as NOT_FOLLOWED

pytestmark = pytest.mark.docs

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
PLACEHOLDERS = {"docs/development/debugging.md": {"JOB": "pytorch-test"}}
"""Words of a page that stand for a name of the reader's own."""
STAYS = {".venv/bin/python -m simulator.main --home /tmp/lab --config fleet.yaml": "simulated members are ready"}
"""What goes on beside the commands after it, and how it says that it is ready."""
AFTER = {
    ".venv/bin/convoy apply -f deploy/demo/elastic.yaml": ".venv/bin/convoy wait elastic --for Running --timeout=180s",
    ".venv/bin/convoy cluster reclaim spot --job elastic --notice=30s": (
        "timeout 60 sh -c 'until .venv/bin/convoy notices elastic | grep elastic-worker; do sleep 1; done'"
    ),
    "kubectl apply -f deploy/demo/tensorboard.yaml": f"{RUNS.format('tensorboard')} && {READY.format('tensorboard')}",
}
"""What a reader waits for before the next command."""


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shell]:
    shell = Shell.in_fresh_clone(tmp_path_factory.mktemp("fresh") / "convoy")
    shell.run("python3 manage.py up --detach", timeout_s=1800)
    try:
        yield shell
    finally:
        shell.end()
        shell.run("python3 manage.py down")


def begin(shell: Shell, page: Path) -> None:
    shell.variables.clear()
    for command in [*DEMO, *BEFORE.get(title(page), [])]:
        shell.run(command)


def follow(shell: Shell, command: str, placeholders: Mapping[str, str]) -> None:
    if command in NOT_RUN:
        return
    for word, name in placeholders.items():
        command = re.sub(rf"\b{word}\b", name, command)
    if command in STAYS:
        shell.leaves_running(command, STAYS[command])
    elif command in REFUSED:
        assert REFUSED[command] in shell.refused(command)
    elif ENDLESS.search(command):
        shell.watched(command)
    else:
        shell.run(command)
    if command in AFTER:
        shell.run(AFTER[command])


PYTHON = {
    "docs/python.md": "python page.py",
    "docs/clients.md": "kubectl apply -f deploy/demo/tensorboard.yaml && {ready} && python page.py",
    "docs/development/debugging.md": "python manage.py shell < page.py",
}
"""How the Python of a page is run."""


@pytest.mark.parametrize("page", [page for page in [*PAGES, *DEVELOPMENT] if title(page) in PYTHON], ids=title)
def test_the_python_of_the_page_runs_in_the_clone(clone, page):
    python = [block for block in blocks(page) if block.language == "python" and block.name not in NOT_RUN_BLOCKS]
    text = "\n".join(block.text for block in python)
    for word, name in PLACEHOLDERS.get(title(page), {}).items():
        text = re.sub(rf"\b{word}\b", name, text)
    begin(clone, page)
    (clone.folder / "page.py").write_text(text)
    clone.run(PYTHON[title(page)].format(ready=AFTER["kubectl apply -f deploy/demo/tensorboard.yaml"]))


def test_the_manifests_of_the_pages_are_taken_by_the_fleet(clone):
    yaml = [block for page in PAGES for block in blocks(page) if block.language == "yaml"]
    for block in yaml:
        if block.name not in NOT_RUN_BLOCKS:
            (clone.folder / "page.yaml").write_text(block.text)
            clone.run("kubectl apply --dry-run=server -f page.yaml")


FOLLOWED = [
    page for page in [*PAGES, *DEVELOPMENT] if title(page) not in NOT_FOLLOWED and {*shell_of(page)} - {*NOT_RUN}
]


@pytest.mark.parametrize("page", FOLLOWED, ids=title)
def test_the_commands_of_the_page_run_as_they_are_written(clone, page):
    """After all else: the last page joins a cluster and breaks it."""
    begin(clone, page)
    for command in shell_of(page):
        follow(clone, command, PLACEHOLDERS.get(title(page), {}))


def test_every_exception_is_still_on_a_page():
    every = {command for page in [*PAGES, *DEVELOPMENT] for command in shell_of(page)}
    assert {*NOT_RUN, *REFUSED, *STAYS, *AFTER} <= every
