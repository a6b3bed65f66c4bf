"""How near to each other a job wants its pods: read from its annotations, in our words, Kueue's or Volcano's.

It must not know where any node is: a wish comes out, a level of `jobs.core.topology.network.LEVELS` and whether it is a must.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from jobs.core.gang.requirements import TopologyConstraint
from jobs.core.manifest_fields import Faults
from jobs.core.topology.network import LABELS, LEVELS

MODE, LEVEL = "convoy.dev/topology", "convoy.dev/topology-level"
MODES = ("required", "preferred")
KUEUE = {"kueue.x-k8s.io/podset-required-topology": True, "kueue.x-k8s.io/podset-preferred-topology": False}
_BY_LABEL = {label: level for level, name in enumerate(LEVELS) for label in LABELS[name]}
_VOLCANO_MODES = {"hard": True, "soft": False}


def parse_topology_constraints(
    manifest: Mapping[str, Any], templates: Iterable[Mapping[str, Any]], faults: Faults
) -> TopologyConstraint:
    """What is said first: our own annotations, Kueue's on a pod template, a Volcano Job's networkTopology."""
    notes = _notes(manifest)
    if MODE in notes or LEVEL in notes:
        return _own(notes, faults)
    for template in templates:
        for key, required in KUEUE.items():
            if key in (annotations := _notes(template)):
                return TopologyConstraint(_level_of_label(annotations[key], key, faults), required)
    return _volcano(manifest, faults)


def _own(notes: Mapping[str, Any], faults: Faults) -> TopologyConstraint:
    """Without a level: required is any one domain, preferred the narrowest."""
    path = "metadata.annotations"
    faults.one_of(notes.get(MODE), f"{path}.{MODE}", MODES)
    level = notes.get(LEVEL)
    faults.one_of(level, f"{path}.{LEVEL}", LEVELS)
    required = notes.get(MODE) == "required"
    nearest = None if required else len(LEVELS) - 1
    return TopologyConstraint(LEVELS.index(level) if level in LEVELS else nearest, required)


def _level_of_label(value: object, key: str, faults: Faults) -> int | None:
    label = str(value)
    if label in LEVELS:
        return LEVELS.index(label)
    if label not in _BY_LABEL:
        known = ", ".join([*LEVELS, *_BY_LABEL])
        detail = f"{label[:60]!r} is no level of the network; known are {known}"
        faults.add(f"template.metadata.annotations.{key}", detail)
    return _BY_LABEL.get(label)


def _volcano(manifest: Mapping[str, Any], faults: Faults) -> TopologyConstraint:
    """Its tiers count from the leaf: tier 1 is one access switch."""
    spec = manifest.get("spec")
    stated = spec.get("networkTopology") if isinstance(spec, dict) else None
    if stated is None:
        return TopologyConstraint()
    path = "spec.networkTopology"
    network = faults.mapping(stated, path)
    mode = network.get("mode", "hard")
    faults.one_of(mode, f"{path}.mode", tuple(_VOLCANO_MODES))
    tier = faults.whole(network.get("highestTierAllowed"), f"{path}.highestTierAllowed", default=1, at_least=1)
    return TopologyConstraint(max(len(LEVELS) - tier, 0), _VOLCANO_MODES.get(str(mode), False))


def _notes(target: Mapping[str, Any]) -> Mapping[str, Any]:
    metadata = target.get("metadata")
    notes = metadata.get("annotations") if isinstance(metadata, dict) else None
    return notes if isinstance(notes, dict) else {}
