"""Steps in the admin that several tests share."""

import uuid

from django.contrib.auth.models import User
from django.utils import timezone

from fleet.models import Cluster, Event, Grant, Hold, Node, Pod
from fleet.services import access
from jobs.models import Attempt, Binding, Dependent, Job, Policy, Work

SECRET = "s3cr3t-of-the-member"


def fill(number: int) -> None:
    now = timezone.now()
    name = f"n{number}"
    user = User.objects.create(username=name)
    cluster = Cluster.objects.create(
        name=name, server="https://127.0.0.1", access={"token": SECRET}, state_since=now, joined_at=now
    )
    Node.objects.create(cluster=cluster, name=name)
    policy = Policy.objects.create(
        kind="PropagationPolicy", namespace="default", name=name, manifest={}, created_at=now
    )
    job = Job.objects.create(
        api_version="kubeflow.org/v1", kind="PyTorchJob", namespace="default", name=name, manifest={}, roles=[], total={},
        policy=policy, cluster=cluster, created_at=now, queued_at=now,
    )  # fmt: skip
    Pod.objects.create(
        cluster=cluster,
        namespace="default",
        name=name,
        uid=name,
        job_uid=job.uid,
        attempt=1,
        phase="Running",
        created_at=now,
    )
    Hold.objects.create(cluster=cluster, job_uid=job.uid, attempt=1, amounts={}, pods=3, made_at=now)
    Event.objects.create(
        regarding_kind="Cluster", regarding_name=name, regarding_uid=str(uuid.uuid4()), reason="Seen", message="m",
        source="test", first_at=now, last_at=now,
    )  # fmt: skip
    access.mint(user, name, life=None, now=now)
    Grant.objects.create(user=user, role="viewer")
    Binding.objects.create(job=job, cluster=cluster, scheduled_at=now)
    Attempt.objects.create(job=job, number=1, cluster_name=name, placed_at=now)
    Work.objects.create(
        job_uid=job.uid, attempt=1, cluster=cluster, api_version="kubeflow.org/v1", kind="PyTorchJob",
        namespace="default", name=name, due_at=now, created_at=now,
    )  # fmt: skip
    Dependent.objects.create(kind="Secret", namespace="default", name=name, manifest={"data": SECRET}, created_at=now)
