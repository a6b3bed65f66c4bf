"""batch/v1 Job: min(parallelism, completions) pods of one template, all in the role ``worker``."""

from collections.abc import Collection, Iterator, Mapping, Sequence

from fleet.core.members import marks
from fleet.kube.resources import JOBS
from jobs.core.resizing.bounds import Bounds
from jobs.kinds.base import Faults, Kind, Manifest, Phase, Reading, Role, State
from jobs.kinds.pods import read_template

_NAME = "batch.kubernetes.io/job-name"
_INDEX = "batch.kubernetes.io/job-completion-index"


class BatchJob(Kind):
    resource = JOBS
    primary_roles = ("worker",)
    phase_conditions = {**Kind.phase_conditions, Phase.SUCCEEDED: "Complete"}

    def read(self, manifest: Manifest) -> Reading:
        faults = Faults()
        spec = faults.mapping(manifest.get("spec"), "spec", required=True)
        parallelism = faults.whole(spec.get("parallelism"), "spec.parallelism", default=1)
        completions = faults.whole(spec.get("completions"), "spec.completions", default=parallelism, at_least=1)
        faults.one_of(spec.get("completionMode"), "spec.completionMode", ("NonIndexed", "Indexed"))
        for name in ("backoffLimit", "activeDeadlineSeconds", "ttlSecondsAfterFinished"):
            faults.whole(spec.get(name), f"spec.{name}", default=0)
        request = read_template(spec.get("template"), "spec.template", faults, restart=("Never", "OnFailure"))
        if (pods := min(parallelism, completions)) == 0:
            faults.add(
                "spec.parallelism", "must be at least 1: a job of no pods never ends; use spec.suspend to hold it"
            )
        suspended = faults.flag(spec.get("suspend"), "spec.suspend")
        counted = completions if spec.get("completions") is not None else 0
        divides = None if spec.get("completionMode") == "Indexed" else counted
        return Reading((Role("worker", pods, request),), suspended, tuple(faults.found), divides=divides)

    def filled_in(self, body: Manifest, uid: str) -> Manifest:
        """With a selector of its pods in all clusters: without one, ``kubectl logs job/NAME`` takes those of every job."""
        return {**body, "spec": {"selector": {"matchLabels": {marks.JOB_UID: uid}}, **(body.get("spec") or {})}}

    def without_filled_in(self, body: Manifest) -> Manifest:
        spec = body.get("spec")
        if not isinstance(spec, dict) or not _selects_by_uid(spec.get("selector")):
            return body
        return {**body, "spec": {key: value for key, value in spec.items() if key != "selector"}}

    def templates(self, manifest: Manifest) -> Iterator[tuple[str, Manifest]]:
        yield "worker", manifest["spec"]["template"]

    def read_status(self, status: Manifest, running_pods: int) -> State:
        """``active`` counts pods that wait for a node too, so what runs is asked of the pods themselves."""
        true = _true(status)
        for condition, phase in (
            ("Failed", Phase.FAILED),
            ("Complete", Phase.SUCCEEDED),
            ("Suspended", Phase.SUSPENDED),
        ):
            if condition in true:
                words = true[condition]
                return self._state(status, phase, str(words.get("message") or words.get("reason") or ""))
        return self._state(status, Phase.RUNNING if running_pods else Phase.CREATED, "")

    def _state(self, status: Manifest, phase: Phase, message: str) -> State:
        return State(phase, message, str(status.get("startTime") or ""), str(status.get("completionTime") or ""))

    def set_replicas(self, manifest: Manifest, replicas: int, completions: int) -> None:
        manifest["spec"]["parallelism"] = replicas
        if completions:
            manifest["spec"]["completions"] = completions

    def bounds(self, manifest: Manifest) -> Mapping[str, Bounds]:
        completions = manifest["spec"].get("completions")
        stated_by = "1 and spec.completions" if completions is not None else "1; spec.completions is not set"
        return {"worker": Bounds(1, completions, stated_by, "spec.parallelism")}

    def goes_on_without(self, manifest: Manifest, role: str, left: int, lost: Collection[int]) -> bool:
        """Indexes that all run at once are the ranks of one program, which waits for each of them."""
        spec = manifest["spec"]
        parallelism, completions = spec.get("parallelism", 1), spec.get("completions")
        is_gang = spec.get("completionMode") == "Indexed" and parallelism >= (completions or 1)
        return not is_gang and super().goes_on_without(manifest, role, left, lost)

    def resize(self, manifest: Manifest, role: str, replicas: int) -> None:
        manifest["spec"]["parallelism"] = replicas

    def merge_statuses(self, statuses: Sequence[Manifest], left: Sequence[Manifest] = ()) -> Manifest:
        """Counts are added, the first start and, once all have ended, the last end are taken."""
        merged: Manifest = {}
        for count in ("active", "ready", "succeeded", "failed"):
            if counts := [int(status[count]) for status in (*statuses, *left) if status.get(count)]:
                merged[count] = sum(counts)
        if starts := [status["startTime"] for status in statuses if status.get("startTime")]:
            merged["startTime"] = min(starts)
        ends = [status.get("completionTime") or "" for status in statuses]
        conditions = [_true(status) for status in statuses]
        failed = [each["Failed"] for each in conditions if "Failed" in each]
        if failed:
            merged["conditions"] = failed[:1]
        elif conditions and all("Complete" in each for each in conditions):
            merged["conditions"] = [conditions[-1]["Complete"]]
            if all(ends):
                merged["completionTime"] = max(ends)
        return merged

    def suspend(self, manifest: Manifest, on: bool) -> None:
        manifest.setdefault("spec", {})["suspend"] = on

    def pod_role(self, labels: dict[str, str]) -> tuple[str, int]:
        if _NAME not in labels:
            return "", 0
        index = labels.get(_INDEX, "0")
        return "worker", int(index) if index.isdigit() else 0


def _selects_by_uid(selector: object) -> bool:
    labels = selector.get("matchLabels") if isinstance(selector, dict) else None
    return isinstance(labels, dict) and marks.JOB_UID in labels


def _true(status: Manifest) -> dict[str, Manifest]:
    """The conditions that are true, by type."""
    return {c.get("type"): c for c in status.get("conditions") or [] if c.get("status") == "True"}
