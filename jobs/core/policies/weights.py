"""How much each part of the score of a cluster counts. Every part is a share from 0 to 1, larger is better."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Weights:
    size: float = 1.5
    """Use the smallest cluster that will do: the larger ones stay free for gangs that fit nowhere else."""
    pack: float = 0.1
    """Fill the fullest cluster first: the emptier ones stay whole for a gang that needs one."""
    fragments: float = 0.1
    """Use partly used nodes before whole ones."""
    spread: float = 0.0
    """Go where most is free; the opposite of pack."""
    topology: float = 0.5
    """Inside the smallest network domain: one node, then the deepest level."""
    cost: float = 0.5
    """Cheap GPU-hours first."""
    reliability: float = 1.0
    """Where fewer jobs failed lately."""
    data: float = 1.0
    """Where its data is."""
