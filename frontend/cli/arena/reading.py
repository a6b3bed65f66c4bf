"""Reads jobs with their pods. The pods of jobs that run are read, job by job: the API lists pods by job."""

from dataclasses import dataclass

from frontend.cli import session
from frontend.cli.arena import views
from frontend.cli.arena.views import Instance
from frontend.cli.client import Api, Item
from frontend.cli.kinds import JOBS, Kind, job_kind
from frontend.cli.submit import kinds

PODS_OF = 200
"""Jobs whose pods are read for one table. Others are listed without their nodes."""
_WITH_PODS = ("Placed", "Dispatched", "Running", "Reclaiming", "Moving")


@dataclass(frozen=True, slots=True)
class Training:
    """A job and its pods. ``pods`` is empty if it runs nowhere, or if its pods were not read."""

    item: Item
    pods: list[Instance]

    @property
    def status(self) -> str:
        return views.status(self.item, self.pods)

    @property
    def is_active(self) -> bool:
        return self.status in ("PENDING", "RUNNING", "SCALING")

    @property
    def gpus(self) -> int:
        return int(self.item.get("gpus") or 0)

    @property
    def allocated(self) -> str:
        """The GPUs of its pods that are on a node. A job whose pods were not read is allocated what it requests if it runs."""
        if not self.is_active:
            return views.NONE
        return str(views.allocated(self.pods) if self.pods or self.status == "PENDING" else self.gpus)


def kind_of(word: str) -> Kind:
    """The jobs that a value of --type selects. Empty: jobs of all kinds."""
    if not word:
        return JOBS
    trainer = kinds.find(word)
    return job_kind((trainer.word,), trainer.kind, trainer.group)


def one(api: Api, name: str, namespace: str, word: str) -> Training:
    item = dict(api.get(session.job_path(session.job(api, name, namespace, kind_of(word)))))
    return Training(item, pods_of(api, item))


def many(api: Api, namespace: str, word: str) -> list[Training]:
    """Jobs, oldest first. An empty namespace means all."""
    items = session.select(api, kind_of(word), namespace)
    with_pods = {str(item["id"]) for item in [item for item in items if item.get("state") in _WITH_PODS][:PODS_OF]}
    items.sort(key=lambda item: (str(item.get("created_at")), str(item.get("name"))))
    return [Training(item, pods_of(api, item) if str(item["id"]) in with_pods else []) for item in items]


def pods_of(api: Api, item: Item) -> list[Instance]:
    return views.instances(item, api.list(session.job_path(item, "pods"))) if item.get("attempt") else []
