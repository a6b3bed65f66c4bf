"""JobSets: batch Jobs in groups, run by the Job controller, judged together and started over together. Pure."""

import copy

from fleet.kube.resources import JOB_SETS, JOBS
from simulator.machinery import conditions
from simulator.machinery.objects import Object, is_true, labels_of, name_of
from simulator.operators.operator import Dependents, Operator, ReconcileResult

PREFIX = "jobset.sigs.k8s.io/"


class JobSets(Operator):
    resource = JOB_SETS

    def step(self, job: Object, found: Dependents, now: float) -> ReconcileResult:
        status = copy.deepcopy(job.get("status") or {})
        status.setdefault("restarts", 0)
        if status.get("terminalState"):
            return ReconcileResult(
                status,
                remove=[each for each in found.jobs if not (is_true(each, "Complete") or is_true(each, "Failed"))],
            )
        if job["spec"].get("suspend"):
            self._say(status, "Suspended", "SuspendedJobs", "jobset is suspended", now)
            return ReconcileResult(status, remove=found.jobs)
        if conditions.has(status, "Suspended"):
            conditions.deny(status, "Suspended", reason="ResumeJobs", message="jobset is resumed", now=now)
        attempt = str(status["restarts"])
        older = [each for each in found.jobs if labels_of(each).get(f"{PREFIX}restart-attempt") != attempt]
        current = [each for each in found.jobs if each not in older]
        self._judge(job, current, status, now)
        if str(status["restarts"]) != attempt:
            return ReconcileResult(status, remove=found.jobs)
        self._count(job, current, found, status)
        due = self._due(job, current, found)
        made = [each for each in self._jobs(job, attempt) if labels_of(each)[f"{PREFIX}replicatedjob-name"] in due]
        return ReconcileResult(status, make=[] if older else [(JOBS, each) for each in made], remove=older)

    def _due(self, job: Object, jobs: list[Object], found: Dependents) -> set[str]:
        """The groups that depend on no other, or whose others are as far as they have to be."""

        def stands(group: Object, status: str) -> bool:
            names = self._names(job, group)
            there = [each for each in jobs if name_of(each) in names]
            pods = int(group["template"]["spec"].get("parallelism") or 1)
            ready = [each for each in there if found.running.get(name_of(each), 0) >= pods]
            done = [each for each in there if is_true(each, "Complete")]
            return len(done if status == "Complete" else {*map(name_of, ready), *map(name_of, done)}) >= len(names)

        groups = {group["name"]: group for group in job["spec"]["replicatedJobs"]}
        return {
            name
            for name, group in groups.items()
            if all(stands(groups[need["name"]], need["status"]) for need in group.get("dependsOn") or [])
        }

    def _judge(self, job: Object, jobs: list[Object], status: Object, now: float) -> None:
        spec = job["spec"]
        failed = [name_of(each) for each in jobs if is_true(each, "Failed")]
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
        done = [name_of(each) for each in jobs if is_true(each, "Complete")]
        over = any if policy.get("operator") == "Any" else all
        if over(name in done for name in wanted):
            self._end(status, "Completed", "AllJobsCompleted", "jobset completed successfully", now)

    def _end(self, status: Object, kind: str, reason: str, words: str, now: float) -> None:
        status["terminalState"] = kind
        self._say(status, kind, reason, words, now)

    def _say(self, status: Object, kind: str, reason: str, words: str, now: float) -> None:
        conditions.put(status, kind, true=True, reason=reason, message=words, now=now)

    def _count(self, job: Object, jobs: list[Object], found: Dependents, status: Object) -> None:
        status["replicatedJobsStatus"] = []
        for group in job["spec"]["replicatedJobs"]:
            mine = [each for each in jobs if labels_of(each).get(f"{PREFIX}replicatedjob-name") == group["name"]]
            pods = int(group["template"]["spec"].get("parallelism") or 1)
            counts = {
                "ready": sum(found.running.get(name_of(each), 0) >= pods for each in mine),
                "succeeded": sum(is_true(each, "Complete") for each in mine),
                "failed": sum(is_true(each, "Failed") for each in mine),
                "active": sum(bool((each.get("status") or {}).get("active")) for each in mine),
                "suspended": 0,
            }
            status["replicatedJobsStatus"].append({"name": group["name"], **counts})

    def _names(self, job: Object, group: Object) -> list[str]:
        replicas = 1 if group.get("replicas") is None else int(group["replicas"])
        return [f"{name_of(job)}-{group['name']}-{index}" for index in range(replicas)]

    def _jobs(self, job: Object, attempt: str) -> list[Object]:
        made: list[Object] = []
        for group in job["spec"]["replicatedJobs"]:
            for index, name in enumerate(self._names(job, group)):
                marks = {"jobset-name": name_of(job), "replicatedjob-name": group["name"], "job-index": str(index)}
                marks |= {"job-global-index": str(len(made)), "restart-attempt": attempt}
                labels = {f"{PREFIX}{key}": value for key, value in marks.items()}
                spec = copy.deepcopy(group["template"]["spec"])
                spec.setdefault("completionMode", "Indexed")
                meta = spec["template"]["metadata"] = spec["template"].get("metadata") or {}
                meta["labels"] = {**(meta.get("labels") or {}), **labels}
                spec["template"]["spec"].setdefault("restartPolicy", "OnFailure")
                spec["template"]["spec"].setdefault("subdomain", name_of(job))
                body = {"apiVersion": JOBS.api_version, "kind": JOBS.kind}
                made.append({**body, "metadata": self.owned(job, name, labels), "spec": spec})
        return made
