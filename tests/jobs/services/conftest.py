"""A job that runs on a real member, whose API serves the logs that a test writes."""

import pytest
from django.utils import timezone

from fleet.models import Pod
from fleet.services.members import member_clients
from tests.support import books
from tests.support.members import api, members
from tests.support.world import pytorch_job

__all__ = ["members"]


class Logs(dict):
    def read(self, namespace, name, offset):
        return self.get(name, b"")[offset:], True


@pytest.fixture
def logs():
    return Logs()


@pytest.fixture
def training(members, logs):
    """Starts a job with so many workers beside its master; its pods are on node-a, node-b, ..."""

    def start(workers=1, **annotations):
        server = members("north", log_source=logs)
        cluster = books.a_cluster("north")
        cluster.access = member_clients.stored(server.access())
        cluster.save()
        manifest = pytorch_job("llama", workers=workers)
        for name, value in annotations.items():
            manifest = books.annotated(f"convoy.dev/{name.replace('_', '-')}", value, manifest)
        books.apply(manifest)
        books.cycle()
        books.sent()
        books.report("llama", "Running")
        job = books.job("llama")
        for place, role in enumerate(("master-0", *(f"worker-{n}" for n in range(workers)))):
            name, node = f"llama-{role}", f"node-{chr(ord('a') + place)}"
            body = {"metadata": {"name": name, "namespace": "default"}, "spec": {"nodeName": node}}
            body["spec"]["containers"] = [{"name": "pytorch", "image": "train"}]
            api(server).create("/api/v1/namespaces/default/pods", body)
            Pod.objects.create(
                cluster=cluster, namespace="default", name=name, uid=name, job_uid=job.uid, attempt=1,
                role=role.partition("-")[0], index=int(role.partition("-")[2]), node=node, phase="Running",
                created_at=timezone.now(),
            )  # fmt: skip
        return job

    return start
