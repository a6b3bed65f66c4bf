"""What of the pages is not run as it is written, and why. A test says of every other block that it is run, and counts these."""

COMMANDS = {
    "python3 manage.py up": "the shell's clone is up, with the console that these tests built by the same code",
    "python3 manage.py test": "this is a test",
    "python3 manage.py up --members DIR": "joins real clusters",
    ".venv/bin/convoy cluster join north --kubeconfig FILE": "joins a real cluster",
    ".venv/bin/convoy cluster drain north": "of the real cluster that was joined",
    "kubectl --context north apply -f deploy/member-manifests/convoy-fleet.yaml": "in a real cluster; tests/realkube uses it",
    "kubectl --context north -n convoy-system create token convoy-fleet --duration 24h": "as above",
    "G=/sys/fs/cgroup/cpu/convoy-half; mkdir -p $G": "takes root and cgroups of version 1",
    "echo 10000 > $G/cpu.cfs_period_us; echo $(($(nproc) * 5000)) > $G/cpu.cfs_quota_us": "as above",
    "(echo $BASHPID > $G/cgroup.procs; exec .venv/bin/python manage.py test tests/scale/test_wakeup.py -m bench -s -n 0)": (
        "as above"
    ),
    "rmdir $G": "as above",
    "python3 -m venv /srv/dlrover && /srv/dlrover/bin/pip install -r tests/clients/requirements-dlrover.txt": (
        "installed and used by tests/clients/test_dlrover_real.py"
    ),
    "CONVOY_PROCESS_IMAGES=training:torch=/srv/dlrover python3 manage.py up": "as above",
}
PAGES = {
    "CONTRIBUTING.md": "its commands are the product's start, the tests and the linters themselves, as `.ci/run` runs them",
    "docs/development/endpoint.md": "changes the code by hand, at places that the text names",
    "docs/development/filter.md": "as above",
    "docs/development/kind.md": "followed to its end by tests/acceptance/test_kind_page.py",
    "docs/development/page.md": "changes the console by hand, and ends in tests",
    "docs/development/postgres.md": "runs the tests on PostgreSQL, as `.ci/run` does",
}
"""Pages of which nothing is run here."""
BLOCKS = {
    "docs/architecture.md 1": "a drawing",
    "docs/clients.md 1": "run by tests/clients/test_page.py, which has the SDK",
    "docs/clients.md 2": "as above",
    "docs/clients.md 3": "as above",
    "docs/clients.md 5": "needs Airflow, which is not among the tests; its calls are in tests/flows/test_batch_client.py",
    "docs/clients.md 6": "run by tests/clients/test_torchx.py, which has TorchX",
    "docs/concepts.md 1": "an example with parts left out",
    "docs/concepts.md 3": "names what the block before it makes, which a dry run lacks; flows/test_device_claims.py runs one",
    "docs/development/simulator.md 4": "a test, in the middle of a module",
    "docs/operations.md 2": "a value of a setting, read by test_blocks.py",
    "docs/policies.md 1": "a part of a document",
    "docs/policies.md 2": "a part of a document",
    "docs/reliability.md 1": "what the command prints",
    "docs/quota-models.md 1": "a part of a document",
    "docs/quota-models.md 2": "what a command prints",
    "docs/quota-time.md 1": "a part of a document",
    "docs/quota-time.md 2": "a part of a document",
    "docs/quotas.md 1": "applied by the commands of docs/quota-tree.md, as tree.yaml",
    "docs/quotas.md 2": "what a command prints",
    "docs/runtime.md 1": "a script with parts left out; tests/convoy_runtime calls all functions",
    "docs/runtime.md 2": "an annotation; tests/jobs/services/dispatch/copies/test_node_checks.py sends jobs with it",
    "docs/runtime.md 3": "a line of a log, read from nodes that check each other by tests/convoy_runtime/test_nodecheck.py",
    "docs/runtime.md 4": "lines of a log, read from a process by tests/convoy_runtime/test_watching.py",
    "docs/threat-model.md 1": "a drawing",
}
"""Blocks of other languages than shell, on pages that are followed."""


def reason(block: str) -> str:
    """Why the block is not run among these tests; "as above" is resolved."""
    reasons, last = {}, ""
    for name, text in BLOCKS.items():
        last = reasons[name] = last if text == "as above" else text
    return reasons.get(block, "")
