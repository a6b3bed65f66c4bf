"""Between which sizes a role of a running job may be resized, and what is wrong with a size that is asked for."""

from collections.abc import Mapping
from dataclasses import dataclass

Sizes = Mapping[str, int]
"""Role -> number of pods."""

RESIZED = "convoy.dev/size"
"""Annotation of a copy that was given another size than it was sent with: that size."""


@dataclass(frozen=True, slots=True)
class Bounds:
    least: int
    most: int | None
    """None: there is none but the quota's."""
    stated_by: str
    """The fields that state them, for messages."""
    field: str
    """The path of the field that has the size."""

    def refusal(self, role: str, wanted: int, current: int) -> str:
        """Why the role cannot get this size; empty: it can."""
        if wanted < self.least:
            return f"{wanted} is below the min of {self._range(role)}, which has {current} now"
        if self.most is not None and wanted > self.most:
            return f"{wanted} is above the max of {self._range(role)}, which has {current} now"
        return ""

    def _range(self, role: str) -> str:
        most = "no max" if self.most is None else f"max {self.most}"
        return f"role {role} (min {self.least}, {most}, by {self.stated_by})"


def changed(before: Sizes, after: Sizes) -> str:
    """``worker from 2 to 4``: what changes, in words."""
    return ", ".join(f"{role} from {before[role]} to {size}" for role, size in after.items() if before[role] != size)
