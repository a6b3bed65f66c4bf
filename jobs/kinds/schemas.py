"""OpenAPI documents of the kinds that people write: `kubectl explain` shows them, and unknown fields are found by them.

Only shapes and words: values are judged by the kinds themselves. A kind that is not here is taken as it is.
"""

from dataclasses import replace
from functools import cache
from typing import Any

from fleet.kube import crds
from fleet.kube.resources import Resource
from fleet.kube.schema import builtin, schemas
from fleet.kube.schema.schemas import TEXT, Schema

Document = dict[str, Any]
_STATUS = {
    "type": "object",
    "description": "How the job is doing: what its member says of it, and under convoy what the fleet says.",
    "x-kubernetes-preserve-unknown-fields": True,
}


def _a(kind: str, description: str, **more: Any) -> Document:
    return {"type": kind, "description": description, **more}


def _object(description: str, **fields: Document) -> Document:
    return _a("object", description, properties=fields)


def _list(description: str, item: Document | None = None) -> Document:
    return _a("array", description, items=item or {"type": "string"})


def _map(description: str, value: Document | None = None) -> Document:
    return _a("object", description, additionalProperties=value or {"type": "string"})


def _text(description: str, *choices: str) -> Document:
    """The choices are named, not enforced: the kind refuses others in its own words."""
    return _a("string", f"{description} One of {', '.join(choices)}." if choices else description)


def _whole(description: str) -> Document:
    return _a("integer", description)


def _flag(description: str) -> Document:
    return _a("boolean", description)


def _open(description: str) -> Document:
    return {"type": "object", "description": description, "x-kubernetes-preserve-unknown-fields": True}


def _quantities(description: str) -> Document:
    return _map(description, {"x-kubernetes-int-or-string": True})


_REQUIREMENT = _object(
    "A condition on one key.",
    key=_text("The key it is about."),
    operator=_text("How the key relates to the values.", "In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"),
    values=_list("The values, for In and NotIn."),
)
_LABEL_SELECTOR = _object(
    "Which labels; all conditions must hold.",
    matchLabels=_map("Labels that must have exactly these values."),
    matchExpressions=_list("Further conditions.", _REQUIREMENT),
)


_AFFINITY = {
    "clusterNames": _list("Only these clusters."),
    "exclude": _list("None of these clusters."),
    "labelSelector": _LABEL_SELECTOR,
    "fieldSelector": _object(
        "Which provider, region and zone.", matchExpressions=_list("The conditions.", _REQUIREMENT)
    ),
}
_SELECTORS = _list(
    "Which jobs the policy is for.",
    _object(
        "Jobs of one kind, by name, by labels, or all.",
        apiVersion=_text("The group and version of the kind."),
        kind=_text("The kind."),
        namespace=_text("The namespace; empty for that of the policy."),
        name=_text("The name; empty for all."),
        labelSelector=_LABEL_SELECTOR,
    ),
)
_GROUP = {"affinityName": _text("What the group is called."), **_AFFINITY}


def _placement() -> Document:
    toleration = _object(
        "A taint of clusters that is put up with.",
        key=_text("The key of the taint; empty for all."),
        operator=_text("How the value is compared.", "Exists", "Equal"),
        value=_text("The value of the taint."),
        effect=_text("The effect that is put up with.", "NoSchedule", "PreferNoSchedule", "NoExecute"),
        tolerationSeconds=_whole("For how long a taint that appears later is put up with."),
    )
    return _object(
        "Where the jobs may go.",
        clusterAffinity=_object("The clusters in question.", **_AFFINITY),
        clusterAffinities=_list(
            "Groups of clusters in order: the next is asked only when no cluster of the one before fits.",
            _object(
                "One group.",
                **_GROUP,
                overflowAffinities=_list(
                    "Groups beside it for what it has no room for.", _object("A group.", **_GROUP)
                ),
            ),
        ),
        clusterTolerations=_list("Taints of clusters that are put up with.", toleration),
        spreadConstraints=_list(
            "Over how many clusters, regions, zones or providers a job is spread that may be divided.",
            _open("One constraint."),
        ),
        replicaScheduling=_object(
            "How the pods of a job are shared out.",
            replicaSchedulingType=_text(
                "Whether they are divided over clusters; only batch Jobs may be.", "Divided", "Duplicated"
            ),
            replicaDivisionPreference=_text("How they are divided.", "Aggregated", "Weighted"),
            customSchedulingType=_text("Gang keeps all pods of a job together in one cluster.", "Gang"),
            weightPreference=_open("Weights of clusters."),
        ),
        workloadAffinity=_open("Has no effect here."),
    )


def _failover() -> Document:
    purge = _text("What becomes of the copy that failed.", "Directly", "Gracefully", "Never")
    preserved = _open("Which state of an attempt the later ones get: rules with aliasLabelName and jsonPath.")
    application = _object(
        "What to do about a job that fails where it is.",
        decisionConditions=_object(
            "When to move it.", tolerationSeconds=_whole("How long it may be unwell before it moves.")
        ),
        purgeMode=purge,
        gracePeriodSeconds=_whole("How long a graceful move may take."),
        statePreservation=preserved,
    )
    cluster = _object("What to do when a cluster is lost.", purgeMode=purge, statePreservation=preserved)
    return _object("When and how a job moves to another cluster.", application=application, cluster=cluster)


def _policy() -> Document:
    return _object(
        "What the policy asks for.",
        resourceSelectors=_SELECTORS,
        placement=_placement(),
        failover=_failover(),
        suspension=_object(
            "What is held back.",
            scheduling=_flag("Whether jobs wait for a person before they are placed."),
            dispatching=_flag("Has no effect here."),
            dispatchingOnClusters=_open("Has no effect here."),
        ),
        priority=_whole("Which of several policies a job gets: the highest."),
        propagateDeps=_flag("Whether what a job refers to goes along."),
        conflictResolution=_text("What to do about an object that is there already.", "Abort", "Overwrite"),
        **{name: _open("Has no effect here.") for name in ("association", "dependentOverrides", "schedulePriority")},
        **{name: _text("Has no effect here.") for name in ("activationPreference", "preemption", "schedulerName")},
        preserveResourcesOnDeletion=_flag("Has no effect here."),
    )


def _override() -> Document:
    """What `jobs.core.policies.overrides` does not do it refuses by its name."""
    change = _text("What is done.", "add", "remove", "replace")
    anything = {"description": "The value.", "x-kubernetes-preserve-unknown-fields": True}
    image = _object(
        "A part of images.",
        component=_text("Which part.", "Registry", "Repository", "Tag"),
        operator=change,
        value=_text("The part as it is to be."),
        predicate=_object("Of which image; of all, if it is not given.", path=_text("Where the image stands.")),
    )
    words = _object(
        "Words of one container.",
        containerName=_text("The container."),
        operator=_text("What is done.", "add", "remove"),
        value=_list("The words."),
    )
    notes = _object("Several at once.", operator=change, value=_map("By key."))
    patch = _object("One place.", path=_text("A JSON pointer."), operator=change, value=anything)
    overriders = _object(
        "What is written otherwise.",
        imageOverrider=_list("Parts of images.", image),
        **{f"{part}Overrider": _list(f"The {part} of containers.", words) for part in ("command", "args")},
        **{f"{part}Overrider": _list(f"The {part} of the job.", notes) for part in ("labels", "annotations")},
        plaintext=_list("Anything else below spec.", patch),
        fieldOverrider=_list("Has no effect here.", _open("A document inside a field.")),
    )
    target = _object("In which clusters; in all, if it is not given.", **_AFFINITY)
    rule = _object("What is written otherwise in some clusters.", targetCluster=target, overriders=overriders)
    return _object(
        "What the policy asks for.",
        resourceSelectors=_SELECTORS,
        overrideRules=_list("One after the other.", rule),
        targetCluster=target,
        overriders=overriders,
    )


_TRAINING, _SCHEDULER = "kubeflow.org", "schedulerName"
_OF_PODS = "The scheduler of its pods that name none; the fleet writes it into them."


@cache
def policy(kind: str) -> Document | None:
    """None for what is no policy."""
    kind = kind.removeprefix("Cluster")
    if kind == "PropagationPolicy":
        description = "A policy that claims jobs and says where they may run, and when they move."
        return _a(
            "object", description, properties={"spec": _policy(), "status": _open("Nothing yet.")}, required=["spec"]
        )
    if kind == "OverridePolicy":
        description = "What is written otherwise in the copies of jobs that go to some clusters."
        return _a("object", description, properties={"spec": _override()}, required=["spec"])
    return None


@cache
def document(resource: Resource) -> Document | None:
    """None for a kind that is taken as it is."""
    if known := policy(resource.kind):
        return known
    known = crds.document(resource)
    if known is None:
        return None
    properties = {**known["properties"], "status": _STATUS}
    if resource.group == _TRAINING:
        spec = properties["spec"]
        properties["spec"] = {**spec, "properties": {**spec["properties"], _SCHEDULER: _text(_OF_PODS)}}
    return {**known, "properties": properties}


@cache
def schema(resource: Resource) -> Schema | None:
    """The schema by which unknown fields are reported."""
    if known := policy(resource.kind):
        return schemas.of_kind(known)
    return _taking(resource, crds.schema(resource)) or builtin.schema(resource)


def kept(resource: Resource) -> Schema | None:
    """The schema by which unknown fields are dropped."""
    return schema(resource) if policy(resource.kind) else _taking(resource, crds.kept(resource))


def _taking(resource: Resource, known: Schema | None) -> Schema | None:
    """With what the fleet takes and members do not have: files name a scheduler beside the roles."""
    if known is None or resource.group != _TRAINING:
        return known
    spec = known.fields["spec"]
    return replace(known, fields={**known.fields, "spec": replace(spec, fields={**spec.fields, _SCHEDULER: TEXT})})
