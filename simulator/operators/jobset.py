"""JobSets: groups of batch Jobs, run by the Job controller, which succeed, fail and restart together. No I/O."""

import copy

from fleet.kube.resources import JOB_SETS, JOBS
from simulator.machinery import conditions
from simulator.machinery.objects import Object, is_true, labels_of, name_of
from simulator.operators.operator import Dependents, Operator, ReconcileResult

PREFIX = "jobset.sigs.k8s.io/"


class JobSets(Operator):
    resource = JOB_SETS

    def step(self, job: Object, dependents: Dependents, now: float) -> ReconcileResult:
        status = copy.deepcopy(job.get("status") or {})
        status.setdefault("restarts", 0)
        if status.get("terminalState"):
            return ReconcileResult(
                status,
                remove=[
                    child for child in dependents.jobs if not (is_true(child, "Complete") or is_true(child, "Failed"))
                ],
            )
        if job["spec"].get("suspend"):
            self._set_condition(status, "Suspended", "SuspendedJobs", "jobset is suspended", now)
            return ReconcileResult(status, remove=dependents.jobs)
        if conditions.has(status, "Suspended"):
            conditions.deny(status, "Suspended", reason="ResumeJobs", message="jobset is resumed", now=now)
        attempt = str(status["restarts"])
        older = [child for child in dependents.jobs if labels_of(child).get(f"{PREFIX}restart-attempt") != attempt]
        current = [child for child in dependents.jobs if child not in older]
        self._judge(job, current, status, now)
        if str(status["restarts"]) != attempt:
            return ReconcileResult(status, remove=dependents.jobs)
        self._count(job, current, dependents, status)
        due = self._due(job, current, dependents)
        created = [
            child for child in self._jobs(job, attempt) if labels_of(child)[f"{PREFIX}replicatedjob-name"] in due
        ]
        return ReconcileResult(status, make=[] if older else [(JOBS, child) for child in created], remove=older)

    def _due(self, job: Object, jobs: list[Object], dependents: Dependents) -> set[str]:
        """The groups whose dependencies (``dependsOn``) have reached the required status."""

        def has_reached(group: Object, status: str) -> bool:
            names = self._names(job, group)
            existing = [child for child in jobs if name_of(child) in names]
            pods = int(group["template"]["spec"].get("parallelism") or 1)
            ready = [child for child in existing if dependents.running.get(name_of(child), 0) >= pods]
            done = [child for child in existing if is_true(child, "Complete")]
            return len(done if status == "Complete" else {*map(name_of, ready), *map(name_of, done)}) >= len(names)

        groups = {group["name"]: group for group in job["spec"]["replicatedJobs"]}
        return {
            name
            for name, group in groups.items()
            if all(has_reached(groups[need["name"]], need["status"]) for need in group.get("dependsOn") or [])
        }

    def _judge(self, job: Object, jobs: list[Object], status: Object, now: float) -> None:
        spec = job["spec"]
        failed = [name_of(child) for child in jobs if is_true(child, "Failed")]
        if failed:
            if status["restarts"] < int((spec.get("failurePolicy") or {}).get("maxRestarts") or 0):
                status["restarts"] += 1
                return
            self._end(status, "Failed", "FailedJobs", f"jobset failed due to job {failed[0]}", now)
            return
        policy = spec.get("successPolicy") or {}
        targets = policy.get("targetReplicatedJobs") or [group["name"] for group in spec["replicatedJobs"]]
        wanted = [
            name for group in spec["replicatedJobs"] if group["name"] in targets for name in self._names(job, group)
        ]
        done = [name_of(child) for child in jobs if is_true(child, "Complete")]
        over = any if policy.get("operator") == "Any" else all
        if over(name in done for name in wanted):
            self._end(status, "Completed", "AllJobsCompleted", "jobset completed successfully", now)

    def _end(self, status: Object, kind: str, reason: str, message: str, now: float) -> None:
        status["terminalState"] = kind
        self._set_condition(status, kind, reason, message, now)

    def _set_condition(self, status: Object, kind: str, reason: str, message: str, now: float) -> None:
        conditions.put(status, kind, true=True, reason=reason, message=message, now=now)

    def _count(self, job: Object, jobs: list[Object], dependents: Dependents, status: Object) -> None:
        status["replicatedJobsStatus"] = []
        for group in job["spec"]["replicatedJobs"]:
            mine = [child for child in jobs if labels_of(child).get(f"{PREFIX}replicatedjob-name") == group["name"]]
            pods = int(group["template"]["spec"].get("parallelism") or 1)
            counts = {
                "ready": sum(dependents.running.get(name_of(child), 0) >= pods for child in mine),
                "succeeded": sum(is_true(child, "Complete") for child in mine),
                "failed": sum(is_true(child, "Failed") for child in mine),
                "active": sum(bool((child.get("status") or {}).get("active")) for child in mine),
                "suspended": 0,
            }
            status["replicatedJobsStatus"].append({"name": group["name"], **counts})

    def _names(self, job: Object, group: Object) -> list[str]:
        replicas = 1 if group.get("replicas") is None else int(group["replicas"])
        return [f"{name_of(job)}-{group['name']}-{index}" for index in range(replicas)]

    def _jobs(self, job: Object, attempt: str) -> list[Object]:
        created: list[Object] = []
        for group in job["spec"]["replicatedJobs"]:
            for index, name in enumerate(self._names(job, group)):
                marks = {"jobset-name": name_of(job), "replicatedjob-name": group["name"], "job-index": str(index)}
                marks |= {"job-global-index": str(len(created)), "restart-attempt": attempt}
                labels = {f"{PREFIX}{key}": value for key, value in marks.items()}
                spec = copy.deepcopy(group["template"]["spec"])
                spec.setdefault("completionMode", "Indexed")
                meta = spec["template"]["metadata"] = spec["template"].get("metadata") or {}
                meta["labels"] = {**(meta.get("labels") or {}), **labels}
                spec["template"]["spec"].setdefault("restartPolicy", "OnFailure")
                spec["template"]["spec"].setdefault("subdomain", name_of(job))
                body = {"apiVersion": JOBS.api_version, "kind": JOBS.kind}
                created.append({**body, "metadata": self.owned(job, name, labels), "spec": spec})
        return created
