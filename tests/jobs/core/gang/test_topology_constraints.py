"""How near a job wants its pods, in our words, Kueue's and Volcano's."""

import pytest

from jobs.core.gang import requirements, topology_constraints
from jobs.core.gang.requirements import TopologyConstraint
from jobs.core.manifest_fields import Faults


def read(
    template: dict[str, str] | None = None, spec: dict | None = None, **notes: str
) -> tuple[TopologyConstraint, list[str]]:
    faults = Faults()
    own = {f"convoy.dev/{key.replace('_', '-')}": value for key, value in notes.items()}
    templates = [{"metadata": {"annotations": template}}] if template else []
    found = topology_constraints.parse_topology_constraints(
        {"metadata": {"annotations": own}, "spec": spec or {}}, templates, faults
    )
    return found, [fault.detail for fault in faults.found]


def test_it_wants_the_smallest_domain_when_nothing_is_said() -> None:
    assert read() == (TopologyConstraint(), [])


def test_it_reads_our_own_words() -> None:
    assert read(topology="required") == (TopologyConstraint(None, True), [])
    assert read(topology="preferred", topology_level="psw") == (TopologyConstraint(1, False), [])
    assert read(topology="preferred") == (TopologyConstraint(2, False), [])


@pytest.mark.parametrize("label", ["psw", "network.topology.nvidia.com/spine", "topology.kubernetes.io/block"])
def test_it_reads_kueues_annotation_on_a_template(label: str) -> None:
    assert read({"kueue.x-k8s.io/podset-required-topology": label}) == (TopologyConstraint(1, True), [])


@pytest.mark.parametrize(("tier", "level"), [(1, 2), (2, 1), (3, 0), (9, 0)])
def test_a_volcano_jobs_tiers_count_from_the_leaf(tier: int, level: int) -> None:
    assert read(spec={"networkTopology": {"mode": "soft", "highestTierAllowed": tier}}) == (
        TopologyConstraint(level, False),
        [],
    )


def test_it_names_what_it_does_not_know() -> None:
    assert "one of required, preferred" in read(topology="always")[1][0]
    assert "one of zone, psw, asw" in read(topology_level="rack")[1][0]
    assert "no level of the network" in read({"kueue.x-k8s.io/podset-preferred-topology": "example.com/row"})[1][0]
    assert "one of hard, soft" in read(spec={"networkTopology": {"mode": "no"}})[1][0]


@pytest.mark.parametrize("odd", [["asw"], {"a": 1}, 7, None])
def test_whatever_is_given_is_read_without_raising(odd: object) -> None:
    faults, notes = Faults(), {"convoy.dev/topology": odd, "convoy.dev/topology-level": odd}
    topology_constraints.parse_topology_constraints({"metadata": {"annotations": notes}}, [], faults)
    kueue = {"metadata": {"annotations": {"kueue.x-k8s.io/podset-required-topology": odd}}}
    topology_constraints.parse_topology_constraints(
        {"metadata": odd, "spec": {"networkTopology": {"mode": odd}}}, [kueue], faults
    )
    topology_constraints.parse_topology_constraints(
        {"spec": {"networkTopology": {"mode": odd, "highestTierAllowed": odd}}}, [], faults
    )
    assert faults.found


def test_what_is_asked_is_stored_with_the_roles() -> None:
    role = ("worker", 2, {"spec": {"containers": [{"resources": {"limits": {"nvidia.com/gpu": 1}}}]}})
    demand = requirements.parse_pod_requirements([role], within=TopologyConstraint(2, True))
    stored = {"name": "worker", "replicas": 2, "request": dict(demand.parts[0].ask.request)}
    assert requirements.of_stored([{**stored, "needs": requirements.requirements_as_json(demand)["worker"]}]) == demand
