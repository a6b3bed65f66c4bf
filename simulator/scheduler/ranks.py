"""Which node a pod's own annotations wish for: the n-th of a list is for the n-th pod of its role. Pure."""

from collections.abc import Iterator

from simulator.machinery.objects import Object, annotations_of, labels_of, name_of

RANKS = "convoy.dev/ranks"
_INDICES = ("training.kubeflow.org/replica-index", "batch.kubernetes.io/job-completion-index", "replica-index")


def wished(pod: Object) -> str:
    """Empty: none, or more pods than the list is for."""
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
    """Its number in its role, by the label its operator gives it, else by the end of its name."""
    marks = {**annotations_of(pod), **labels_of(pod)}
    found = [marks[key] for key in _INDICES if key in marks]
    found += [value for key, value in labels_of(pod).items() if key.endswith("/replica-index")]
    found.append(name_of(pod).rpartition("-")[2])
    return next((int(each) for each in found if each.isdigit()), 0)
