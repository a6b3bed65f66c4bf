"""How much each part of the score of a cluster counts. Every part is a share from 0 to 1, larger is better."""

from dataclasses import dataclass

from fleet.core.operator_settings import setting

MAX_WEIGHT = 1000.0


@dataclass(frozen=True, slots=True)
class Weights:
    """The operator's defaults; a policy may state its own for each part (`convoy.dev/score-weights`)."""

    size: float = setting(
        1.5,
        "CONVOY_WEIGHT_SIZE",
        "weight of the smallest cluster that will do: the larger ones stay free for gangs that fit nowhere else",
        most=MAX_WEIGHT,
    )
    pack: float = setting(
        0.1,
        "CONVOY_WEIGHT_PACK",
        "weight of the fullest cluster: the emptier ones stay whole for a gang that needs one",
        most=MAX_WEIGHT,
    )
    fragments: float = setting(
        0.1, "CONVOY_WEIGHT_FRAGMENTS", "weight of partly used nodes before whole ones", most=MAX_WEIGHT
    )
    spread: float = setting(
        0.0, "CONVOY_WEIGHT_SPREAD", "weight of the cluster where most is free; the opposite of pack", most=MAX_WEIGHT
    )
    topology: float = setting(
        0.5,
        "CONVOY_WEIGHT_TOPOLOGY",
        "weight of the smallest network domain: one node, then the deepest level",
        most=MAX_WEIGHT,
    )
    cost: float = setting(0.5, "CONVOY_WEIGHT_COST", "weight of cheap GPU-hours", most=MAX_WEIGHT)
    reliability: float = setting(
        1.0, "CONVOY_WEIGHT_RELIABILITY", "weight of clusters where fewer jobs failed lately", most=MAX_WEIGHT
    )
    data: float = setting(1.0, "CONVOY_WEIGHT_DATA", "weight of clusters where the job's data is", most=MAX_WEIGHT)
