"""The demo: joins the clusters, applies the manifests of ``deploy/demo``, and follows the gang to Running.

Everything goes through the REST API, and everything may be repeated: a second run finds what the first one made.
"""

import re
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from deploy.bootstrap.home import ROOT, Home
from deploy.bootstrap.problems import Problem
from deploy.bootstrap.progress import Steps
from deploy.bootstrap.rest import Api

FOLDER = ROOT / "deploy" / "demo"
MANIFESTS = ("quota-tree.yaml", "policy.yaml", "teams.yaml", "pytorchjob.yaml")
JOB = "jobs/?name=pytorch-test&namespace=default"
STARTED = ("Running", "Succeeded", "Failed")
JOB_S = 90.0


def kubeconfigs(folder: Path) -> list[Path]:
    """A folder's kubeconfigs, one a cluster."""
    if not folder.is_dir():
        raise Problem(f"{folder} is not a folder: --members wants one with a kubeconfig a cluster.")
    files = sorted(path for path in folder.iterdir() if path.suffix in (".kubeconfig", ".yaml", ".yml"))
    if not files:
        raise Problem(f"{folder} holds no *.kubeconfig and no *.yaml: put one kubeconfig a cluster there.")
    return files


def simulated(home: Home) -> list[Path]:
    return sorted((home.path / "simulator").glob("*.kubeconfig"))


def join(api: Api, files: Iterable[Path], steps: Steps) -> None:
    """Joins the clusters that have not joined yet; a refused one is reported and skipped."""
    there = names(api)
    waiting = [(name_of(path), path) for path in files if name_of(path) not in there]
    refused: list[str] = []
    for name, path in waiting:
        with steps.step(f"Joining cluster {name}"):
            answer = api.post("clusters/", {"name": name, "kubeconfig": path.read_text()})
        if not answer.ok and name not in names(api):
            refused.append(f"{name}: {answer.said}")
            steps.say(f"    refused, {refused[-1]}")
    if refused and len(refused) == len(waiting) and not there:
        raise Problem("No cluster could be joined: " + "; ".join(refused))


def names(api: Api) -> set[str]:
    """The clusters that are joined. A request that was repeated may be refused because the first one had worked."""
    return {cluster["name"] for cluster in api.results("clusters/?page_size=500")}


def submit(api: Api, steps: Steps) -> None:
    """Once: a job that is already there, or has been, is left as it is."""
    if api.results(JOB):
        return
    with steps.step("Submitting the demo job pytorch-test"):
        for name in MANIFESTS:
            answer = api.apply((FOLDER / name).read_bytes())
            if not answer.ok:
                raise Problem(f"deploy/demo/{name} was refused: {answer.said}")


def follow(api: Api, steps: Steps, working_s: Callable[[], float], patience_s: float = JOB_S) -> dict[str, Any]:
    """The job, once it has started, or as it is when patience ends; ``working_s`` stands still on a busy machine."""
    until = working_s() + patience_s
    job = current(api)
    if job["state"] not in STARTED:
        with steps.step("Waiting for the gang to run"):
            while job["state"] not in STARTED and working_s() < until:
                time.sleep(0.1)
                job = current(api)
    return job


def current(api: Api) -> dict[str, Any]:
    jobs = api.results(JOB)
    if not jobs:
        raise Problem("The demo job pytorch-test is gone.")
    return jobs[0]


def pods(api: Api, job: dict[str, Any]) -> list[dict[str, Any]]:
    return api.results(f"jobs/{job['id']}/pods/")


def name_of(path: Path) -> str:
    """A cluster's name, from its file's."""
    return re.sub(r"[^a-z0-9-]+", "-", path.stem.lower()).strip("-")
