"""The namespaces that Convoy makes in members carry the Pod Security labels of their policy, and follow it when it changes.

A namespace of another origin keeps its own labels. What a member was last seen to have is remembered in this process
alone: at worst it is looked at once more.
"""

from fleet.core.members import marks
from fleet.core.pod_security import Profile
from fleet.kube import resources
from fleet.member.client import MemberClient
from fleet.member.errors import MemberChanged, MemberDenied, MemberExists, MemberMissing, MemberRefused
from fleet.models import Cluster
from fleet.services.authorization import namespace_policies

_Key = tuple[str, str]
_seen: dict[_Key, Profile] = {}
_MOST_SEEN = 10_000


def follow(client: MemberClient, cluster: Cluster, namespace: str, profile: Profile) -> None:
    """Bring the labels of a namespace of ours up to date, the first time and whenever the profile is another one."""
    key = (str(cluster.uid), namespace)
    if _seen.get(key) == profile:
        return
    try:
        _write_labels(client, namespace, profile)
    except MemberMissing:
        return
    except (MemberDenied, MemberChanged, MemberRefused):
        pass  # a member that lets us not look, or not write, keeps what it has
    if len(_seen) >= _MOST_SEEN:
        _seen.clear()
    _seen[key] = profile


def create(client: MemberClient, namespace: str, profile: Profile) -> None:
    """Creates the namespace unless it is there; a member that lets us not look is believed to have it."""
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
