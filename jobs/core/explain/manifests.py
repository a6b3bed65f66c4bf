"""Manifests that carry out a remedy: a missing policy, a policy that admits one more cluster, a first quota tree. Pure."""

from collections.abc import Mapping, Sequence
from copy import deepcopy
from typing import Any

from jobs.core.policies.propagation import GROUPS
from jobs.core.reasons import Amounts
from jobs.core.taints import Taint

Manifest = dict[str, Any]


def policy_for(namespace: str, api_version: str, kind: str) -> Manifest:
    """Places every job of one kind in one namespace, each whole on one cluster."""
    gang = {"replicaSchedulingType": "Divided", "customSchedulingType": "Gang"}
    return {
        "apiVersion": GROUPS[0],
        "kind": "PropagationPolicy",
        "metadata": {"name": kind.lower(), "namespace": namespace},
        "spec": {
            "propagateDeps": True,
            "placement": {"replicaScheduling": gang},
            "resourceSelectors": [{"apiVersion": api_version, "kind": kind}],
        },
    }


def select_job(policy: Mapping[str, Any], cluster: str) -> Manifest:
    """The policy, whose cluster affinity admits ``cluster`` as well.

    A list of names gets one more name. Labels and fields cannot be widened to one cluster, so they become the first of two
    ordered terms: the cluster is asked when none of the clusters before it fits.
    """
    changed, placement = _copied(policy)
    term = {"clusterNames": [cluster]}
    if "clusterAffinities" in placement:
        placement["clusterAffinities"].append({"affinityName": cluster, **term})
        return changed
    affinity = placement.get("clusterAffinity") or {}
    affinity["exclude"] = [name for name in affinity.get("exclude") or () if name != cluster]
    if affinity.get("labelSelector") or affinity.get("fieldSelector"):
        del placement["clusterAffinity"]
        first = {"affinityName": "first", **affinity}
        placement["clusterAffinities"] = [first, {"affinityName": cluster, **term}]
        return changed
    names = affinity.get("clusterNames") or []
    if names and cluster not in names:
        affinity["clusterNames"] = [*names, cluster]
    placement["clusterAffinity"] = affinity
    return changed


def tolerate_taints(policy: Mapping[str, Any], taints: Sequence[Taint]) -> Manifest:
    changed, placement = _copied(policy)
    tolerations = [{"key": taint.key, "operator": "Exists", "effect": taint.effect} for taint in taints]
    placement["clusterTolerations"] = [*(placement.get("clusterTolerations") or ()), *tolerations]
    return changed


def first_tree(namespace: str, fleet: Amounts) -> Manifest:
    """One queue for the namespace, which may use the whole fleet."""
    whole = {
        resource: _quantity(resource, amount) for resource, amount in fleet.items() if amount and resource != "pods"
    }
    leaf = {"name": namespace, "min": whole, "max": whole, "namespaces": [namespace]}
    return {
        "apiVersion": "scheduling.sigs.k8s.io/v1beta1",
        "kind": "ElasticQuotaTree",
        "metadata": {"name": "elasticquotatree", "namespace": "kube-system"},
        "spec": {"root": {"name": "root", "min": whole, "max": whole, "children": [leaf]}},
    }


def _copied(policy: Mapping[str, Any]) -> tuple[Manifest, Manifest]:
    """A copy to change, without what the API server wrote; and its placement."""
    changed = deepcopy(dict(policy))
    changed.pop("status", None)
    own = ("name", "namespace", "labels", "annotations")
    changed["metadata"] = {key: value for key, value in changed.get("metadata", {}).items() if key in own}
    placement = changed.setdefault("spec", {}).get("placement") or {}
    changed["spec"]["placement"] = placement
    return changed, placement


def _quantity(resource: str, amount: int) -> str:
    return f"{amount}m" if resource == "cpu" else str(amount)
