"""A queued job, and what the API explains of it."""

from django.utils import timezone

from jobs.models import Job
from jobs.services.submission import manifests, submit
from tests.support.world import POLICY, pytorch_job


def submitted(name: str, policy: str = POLICY, **fields) -> Job:
    text = f"{policy}\n---\n{pytorch_job(name, **fields)}"
    submit.apply(manifests.parse(text.encode()), by="test", now=timezone.now())
    return Job.objects.get(name=name)


def explained(client, job: Job):
    return client.get(f"/api/v1/jobs/{job.uid}/explain/").json()
