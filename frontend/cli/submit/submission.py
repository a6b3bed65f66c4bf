"""Sends the manifest of a command line to the fleet, and prints what arena prints."""

import time
from typing import Any

from frontend.cli import session
from frontend.cli.client import Api
from frontend.cli.kinds import job_kind
from frontend.cli.problems import Exit, Problem
from frontend.cli.session import Session
from frontend.cli.submit import kinds, manifests, ssh
from frontend.cli.submit.flags import Options
from frontend.cli.submit.kinds import Trainer
from frontend.cli.submit.pods import Manifest

_LEVELS = ("debug", "info", "warn", "error")


def submit(run: Session, trainer: Trainer, options: Options, command: list[str], *, program: str, began: float) -> None:
    """Submits the job. ``began`` is when the command began, in seconds of the monotonic clock."""
    manifest = _manifest(run, trainer, options, _argv(options, command))
    name, namespace = options["name"], options["namespace"]
    if options["dry_run"]:
        run.screen.yaml(manifest)
        return
    documents = [manifest]
    with_key = trainer is kinds.ET and not options["ssh_secret"]
    _refuse_job(run.api, trainer, name, namespace, program)
    if with_key:
        _refuse_secret(run.api, name, namespace)
        documents.insert(0, ssh.secret(name, namespace))
    if _prints("debug", options):
        run.screen.note("the manifest of the job:\n" + dump([manifest]))
    answer = run.api.send("apply", dump(documents).encode())
    _check_created(answer["results"], trainer, name)
    # The lines are arena's, which creates an elastic job, then the Secret, and then updates the job.
    for line in [trainer.resource, *(["secret", trainer.resource] if with_key else [])]:
        run.screen.line(f"{line}/{name} created")
    for result in answer["results"]:
        for warning in result.get("warnings") or []:
            run.screen.note(f"warning: {result['kind'].lower()}/{result['name']}: {warning}", "yellow")
    if trainer is kinds.ET and options["spot_instance"]:
        run.screen.note(
            "the elastic-job-supervisor of the member acts on --spot-instance; the fleet does not", "yellow"
        )
    _print_end(run, trainer, options, program, began)


def dump(documents: list[Manifest]) -> str:
    import yaml

    return str(yaml.safe_dump_all(documents, sort_keys=False, allow_unicode=True))


def _argv(options: Options, command: list[str]) -> list[str]:
    """One argument is a line for the shell; several are a program and its arguments, which no shell reads again."""
    return [options["shell"], "-c", command[0]] if len(command) == 1 else command


def _manifest(run: Session, trainer: Trainer, options: Options, argv: list[str]) -> Manifest:
    if trainer is kinds.MPI and run.target.url:
        return manifests.mpijob(options, argv, _mpi_version(run.api))
    assert trainer.build is not None  # noqa: S101 - of every kind that is submitted
    return trainer.build(options, argv)


def _mpi_version(api: Api) -> str:
    """The version of MPIJobs to submit: v2beta1, unless the clusters serve only v1."""
    try:
        clusters = api.list("clusters/")
    except Problem:
        # A token may be limited to submitting jobs. If the server itself is away, the submission says so.
        clusters = []
    served = {version for cluster in clusters for version in _versions(cluster)}
    return "v1" if "v1" in served and "v2beta1" not in served else "v2beta1"


def _versions(cluster: dict[str, Any]) -> set[str]:
    apis = cluster.get("apis") or {}
    return {version for version in ("v1", "v2beta1") if "MPIJob" in (apis.get(f"kubeflow.org/{version}") or {})}


def _refuse_job(api: Api, trainer: Trainer, name: str, namespace: str, program: str) -> None:
    kind = job_kind((trainer.word,), trainer.kind, trainer.group)
    if session.select(api, kind, namespace, name=name):
        hint = f"choose another --name, or delete it: {program} delete {name} --type {trainer.word} -n {namespace}"
        raise Problem(f"the job {name} exists already in namespace {namespace}", hint=hint, exit_code=Exit.CONFLICT)


def _check_created(results: list[dict[str, Any]], trainer: Trainer, name: str) -> None:
    """Of two submissions at the same moment the later one changes the job of the other. It must not claim to have made it."""
    for result in results:
        if (result["kind"], result["name"]) == (trainer.kind, name) and result["action"] != "created":
            hint = f"another submission created it at the same moment; `convoy describe {name}` shows what it is now"
            raise Problem(f"the job {name} exists already: {result['action']}", hint=hint, exit_code=Exit.CONFLICT)


def _refuse_secret(api: Api, name: str, namespace: str) -> None:
    """The key of the job must not replace a Secret that is used for something else."""
    secrets = api.list("dependents/", {"kind": "Secret", "namespace": namespace, "name": name})
    if any(item.get("name") == name and item.get("kind") == "Secret" for item in secrets):
        hint = "choose another --name, or use that Secret as the SSH key: --ssh-secret=" + name
        raise Problem(f"there is a Secret {name} in namespace {namespace}", hint=hint, exit_code=Exit.CONFLICT)


def _prints(level: str, options: Options) -> bool:
    return _LEVELS.index(level) >= _LEVELS.index(options["loglevel"])


def _print_end(run: Session, trainer: Trainer, options: Options, program: str, began: float) -> None:
    if not _prints("info", options):
        return
    name, namespace = options["name"], options["namespace"]
    level = f"INFO[{int(time.monotonic() - began):04d}]"
    run.screen.line(f"{level} The Job {name} has been submitted successfully")
    get = f"{program} get {name} --type {trainer.word} -n {namespace}"
    run.screen.line(f"{level} You can run `{get}` to check the job status")
