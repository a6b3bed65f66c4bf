"""The preferred node of a pod, from its annotation ``convoy.dev/ranks``: the n-th entry is for its role's n-th pod. No I/O."""

from collections.abc import Iterator

from simulator.machinery.objects import Object, annotations_of, labels_of, name_of

RANKS = "convoy.dev/ranks"
_INDICES = ("training.kubeflow.org/replica-index", "batch.kubernetes.io/job-completion-index", "replica-index")


def wished(pod: Object) -> str:
    """The preferred node. Empty if the pod has no such annotation, or its index is beyond the list."""
    index = index_of(pod)
    for node, pods in runs(annotations_of(pod).get(RANKS, "")):
        if index < pods:
            return node
        index -= pods
    return ""


def runs(text: str) -> Iterator[tuple[str, int]]:
    for word in text.split():
        node, _, pods = word.partition("*")
        yield node, int(pods) if pods.isdigit() else 1


def index_of(pod: Object) -> int:
    """The pod's index in its role, from the label of its operator, else from the end of its name."""
    marks = {**annotations_of(pod), **labels_of(pod)}
    candidates = [marks[key] for key in _INDICES if key in marks]
    candidates += [value for key, value in labels_of(pod).items() if key.endswith("/replica-index")]
    candidates.append(name_of(pod).rpartition("-")[2])
    return next((int(text) for text in candidates if text.isdigit()), 0)
