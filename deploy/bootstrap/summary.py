"""The last words of ``up``: what runs, where to look, what to try, how to stop. Only words."""

from pathlib import Path
from typing import Any

from deploy.bootstrap.home import ROOT, Home
from deploy.bootstrap.progress import Steps

_DEMO_STEPS = """\
  1. {convoy} describe pytorch-test
  2. {convoy} apply -f deploy/demo/train.yaml   (three processes train a real model together)
  3. {convoy} logs -f train                     (and watch its loss fall)

Pods annotated convoy.dev/run: process run as isolated processes on this machine, in the namespaces default and
arena-system only; CONVOY_PROCESS_PODS names other namespaces, or "off".
"""
_FIRST_STEPS = """\
  1. {convoy} get clusters                             (or join one: convoy cluster join NAME --kubeconfig FILE)
  2. {convoy} apply -f deploy/demo/policy.yaml         (which jobs are placed, and how)
  3. {convoy} apply -f deploy/demo/pytorchjob.yaml     (a gang of three pods with a GPU each)
"""


def print_job(steps: Steps, job: dict[str, Any], pods: list[dict[str, Any]]) -> None:
    where = f" on cluster {job['cluster']}" if job.get("cluster") else ""
    what = steps.bold(f"{job['kind']} {job['namespace']}/{job['name']}")
    steps.say(f"\n{what} is {job['state']}{where}")
    if pods:
        steps.say(f"  {'POD':<30}{'CLUSTER':<12}{'NODE':<24}PHASE")
    for pod in pods:
        steps.say(f"  {pod['name']:<30}{pod['cluster']:<12}{pod.get('node') or '-':<24}{pod['phase']}")
    reason = job.get("reason") or {}
    if job["state"] not in ("Running", "Succeeded") and reason.get("message"):
        steps.say(f"  {reason.get('code', '')}: {reason['message']}")


def print_endpoints(steps: Steps, home: Home, port: int, link: str, *, has_demo: bool) -> None:
    root = f"http://127.0.0.1:{port}"
    convoy = command_line(home)
    steps.say(f"""
{steps.bold("Convoy runs.")}
  Console        {root}{link or "/"}{"   (this link signs you in once)" if link else ""}
  Password       of user admin: cat {home.password_file}
  Command line   {convoy} get jobs
  kubectl        kubectl --kubeconfig {kubeconfig(home)} get pytorchjobs

{steps.bold("Three things to try")}
{_DEMO_STEPS.format(convoy=convoy) if has_demo else _FIRST_STEPS.format(convoy=convoy)}""")


def command_line(home: Home) -> str:
    """How to call the command line so that it finds this home, from where the person is."""
    if Path.cwd() == ROOT and home.path == ROOT / ".convoy":
        return ".venv/bin/convoy"
    return f"CONVOY_HOME={home.path} {ROOT}/.venv/bin/convoy"


def kubeconfig(home: Home) -> Path:
    """As short as it can be said from where the person is."""
    file = home.path / "kubeconfig"
    return file.relative_to(Path.cwd()) if file.is_relative_to(Path.cwd()) else file


def print_stop(steps: Steps, stays: bool) -> None:
    first = "Ctrl-C stops it" if stays else "python3 manage.py down stops it"
    steps.say(f"{first}, python3 manage.py up resumes the same state, python3 manage.py reset forgets it.\n")
