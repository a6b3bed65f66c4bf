"""Which events of members are about the fleet's jobs: those of their copies, by the uids recorded when these were made."""

from collections.abc import Collection, Mapping

from django.db.models import QuerySet

from fleet.models import Cluster
from fleet.services.members import member_events
from fleet.services.members.member_events import Namespaces, Subject
from jobs.models import Job, Work


class CopySubjects:
    def clusters(self, namespaces: Namespaces, kind: str, name: str) -> Mapping[int, str]:
        """Of a job that is named, the events of its newest copy in each cluster alone."""
        works = Work.objects.exclude(object_uid="")
        if namespaces is not None:
            works = works.filter(namespace__in=namespaces)
        if kind:
            works = works.filter(job_uid__in=_jobs(namespaces, kind, name).values("uid"))
        if name:
            newest = works.order_by("attempt").values_list("cluster_id", "object_uid")
            return {cluster: f"involvedObject.uid={uid}" for cluster, uid in newest}
        return dict.fromkeys(works.order_by().values_list("cluster_id", flat=True).distinct(), "")

    def of_uids(self, cluster: Cluster, uids: Collection[str]) -> Mapping[str, Subject]:
        works = Work.objects.filter(cluster=cluster, object_uid__in=uids).values_list(
            "object_uid", "namespace", "job_uid"
        )
        copies = {uid: (namespace, job) for uid, namespace, job in works}
        known = Job.objects.only("uid", "api_version", "kind", "namespace", "name")
        jobs = {job.uid: job for job in known.filter(uid__in={job for _, job in copies.values()})}
        return {
            uid: Subject(job.api_version, job.kind, job.namespace, job.name, str(job.uid), namespace)
            for uid, (namespace, job_uid) in copies.items()
            if (job := jobs.get(job_uid))
        }


def _jobs(namespaces: Namespaces, kind: str, name: str) -> QuerySet[Job]:
    jobs = Job.objects.filter(kind=kind)
    jobs = jobs.filter(namespace__in=namespaces) if namespaces is not None else jobs
    return jobs.filter(name=name) if name else jobs


def register() -> None:
    member_events.register(CopySubjects())
