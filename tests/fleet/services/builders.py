"""What the tests of the watches write down."""

from fleet.kube.resources import PYTORCH_JOBS
from fleet.models import Cluster
from tests.support.members import eventually


def synced(row):
    return eventually(lambda: Cluster.objects.get(pk=row.pk).synced_at)


class Notes:
    """A follower that writes down what it hears."""

    def __init__(self):
        self.heard = []

    def resources(self):
        return [PYTORCH_JOBS]

    def account_needs(self):
        return []

    def pod_role(self, resource_kind, labels):
        return ("worker", int(labels.get("index", 0))) if resource_kind == "PyTorchJob" else ("", 0)

    def has_ended(self, resource, manifest):
        return bool((manifest.get("status") or {}).get("completionTime"))

    def on_update(self, cluster_id, resource, objects, now):
        self.heard += [("observed", o["metadata"]["name"]) for o in objects]
        return set()

    def on_delete(self, cluster_id, resource, objects, now):
        self.heard += [("vanished", o["metadata"]["name"]) for o in objects]

    def expected(self, cluster_id, resource):
        return ()

    def on_resync(self, cluster_id, resource, missing, now):
        self.heard.append(("synced", missing))

    def on_refusals(self, cluster_id, refusals, now):
        self.heard += [("refused", refusal.name, refusal.reason) for refusal in refusals]

    def unmarked(self, cluster_id, claims):
        return set()

    def on_pods_changed(self, cluster_id, keys, now):
        self.heard.append(("pods", keys))
