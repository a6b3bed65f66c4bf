"""Creates namespaces in members, and keeps the Pod Security labels of the namespaces that Convoy created up to date.

A namespace that Convoy did not create keeps its own labels. Each process remembers the labels it has checked, which only saves
requests.
"""

from fleet.core.members import marks
from fleet.core.security.pod_security import Profile
from fleet.kube import resources
from fleet.member.client import MemberClient
from fleet.member.errors import MemberChanged, MemberDenied, MemberExists, MemberMissing, MemberRefused
from fleet.models import Cluster
from fleet.services.authorization import namespace_policies

_Key = tuple[str, str]
_seen: dict[_Key, Profile] = {}
_MOST_SEEN = 10_000


def follow(client: MemberClient, cluster: Cluster, namespace: str, profile: Profile) -> None:
    """Updates the labels of a namespace that Convoy created. Sends a request only the first time and for a new profile."""
    key = (str(cluster.uid), namespace)
    if _seen.get(key) == profile:
        return
    try:
        _write_labels(client, namespace, profile)
    except MemberMissing:
        return
    except (MemberDenied, MemberChanged, MemberRefused):
        pass  # without the right to read or to write namespaces, the labels stay as they are
    if len(_seen) >= _MOST_SEEN:
        _seen.clear()
    _seen[key] = profile


def create(client: MemberClient, namespace: str, profile: Profile) -> None:
    """Creates the namespace if it is missing. A member that does not allow to read namespaces is assumed to have it."""
    try:
        client.get(resources.NAMESPACES.path(name=namespace))
    except MemberMissing:
        metadata = {"name": namespace, "labels": namespace_policies.labels(profile)}
        body = {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}
        try:
            client.create(resources.NAMESPACES.path(), body)
        except MemberExists:
            return
    except MemberDenied:
        return


def _write_labels(client: MemberClient, namespace: str, profile: Profile) -> None:
    path, wanted = resources.NAMESPACES.path(name=namespace), namespace_policies.labels(profile)
    labels = client.get(path)["metadata"].get("labels") or {}
    if labels.get(marks.MANAGED_BY) == marks.MANAGER and not wanted.items() <= labels.items():
        client.merge_patch(path, {"metadata": {"labels": wanted}})
