"""Jobs as the REST API shows them."""

from django.utils import timezone

from jobs.models import Job
from jobs.services.submission import manifests, submit
from tests.support.world import pytorch_job


def submitted(name: str, namespace: str = "vision") -> Job:
    text = pytorch_job(name).replace("\nmetadata:\n", f"\nmetadata:\n  namespace: {namespace}\n")
    submit.apply(manifests.parse(text.encode()), by="test", now=timezone.now())
    return Job.objects.get(name=name)


def url(job: Job, more: str = "") -> str:
    return f"/api/v1/jobs/{job.uid}/{more}"


def names(client, query: str = "") -> list[str]:
    return [each["name"] for each in client.get(f"/api/v1/jobs/{query}").json()["results"]]
