"""Which leaf of the quota tree a job belongs to, and whether it may be taken back from, by its labels and namespace.

A label beats the namespace, but only where that is safe: a leaf that lists namespaces is theirs, so a job of another
namespace cannot help itself there; a leaf that lists none is open to whoever names it. A job that names a leaf it may not
have waits: going on without quota would be a way around it. Knows nothing of what is in use.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from quotas.core.tree import NAME_LABELS, NoQuota, Tree

PREEMPTIBLE_LABELS = ("quota.scheduling.alibabacloud.com/preemptible", "quota.scheduling.koordinator.sh/preemptible")


@dataclass(frozen=True, slots=True)
class Belonging:
    leaf: str = ""
    """Empty: no leaf is its own."""
    fault: str = ""
    """Why the leaf it names is not; empty when it names none."""


def belonging(tree: Tree | None, namespace: str, labels: Mapping[str, str], *, pinned: str = "") -> Belonging:
    """``pinned``: the leaf a person moved it to, which counts while it stands."""
    if tree is None:
        return Belonging()
    if pinned in tree.by_path and pinned not in tree.children:
        return Belonging(pinned)
    named = [labels[label] for label in NAME_LABELS if label in labels][:1]
    found = tree.leaf_of(namespace, labels)
    if isinstance(found, NoQuota):
        return Belonging(fault=found.message if named else "")
    if named and found.namespaces and namespace not in found.namespaces:
        told = ", ".join(found.namespaces)
        return Belonging(fault=f"its label names {found.path}, which is for namespace {told} and not for {namespace}")
    return Belonging(found.path)


def preemptible(labels: Mapping[str, str]) -> bool:
    """True unless a label says ``false``."""
    said = [labels[label] for label in PREEMPTIBLE_LABELS if label in labels][:1]
    return said != ["false"]
