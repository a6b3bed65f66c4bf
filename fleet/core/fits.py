"""How gangs are fitted on a cluster, said by its label ``convoy.dev/fit`` or a policy's annotation of that name. Pure.

The default is reservations where they are certain to be held, and Convoy's own view of the nodes elsewhere.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from fleet.kube.resources import RESERVATIONS

FIT = "convoy.dev/fit"
SCHEDULER = "convoy.dev/scheduler"
"""Label of a cluster whose scheduler cannot be seen from outside: its version."""
AUTO, AGGREGATE, NODE_FIT, RESERVATION = "auto", "Aggregate", "NodeFit", "Reservation"
FITS = (AUTO, AGGREGATE, NODE_FIT, RESERVATION)
KOORDINATOR = "koord-scheduler"
_LEAST = (1, 28)
_LEAST_SCHEDULER = (6, 8, 0)
_NUMBER = re.compile(r"(?:aliyun[.-]|^)(\d+)\.(\d+)\.(\d+)")
"""As the scheduler of ACK counts its versions: ``v1.30.1-aliyun.6.5.4.fcac2bdf``, or the number alone."""


@dataclass(frozen=True, slots=True)
class Offer:
    """What decides whether a member can hold capacity before a job is sent."""

    version: str
    scheduler: str
    """Its name and version as far as they can be seen; empty: not at all."""
    served: bool
    """Whether the member has reservations as objects."""

    @property
    def refusal(self) -> str:
        """Why it cannot; empty when it can, or nothing speaks against it."""
        if not self.served:
            what = f"{RESERVATIONS.api_version} {RESERVATIONS.kind}"
            return f"does not serve {what}: it takes scheduler 6.8.0 or Koordinator"
        numbers = self.version.lstrip("v").split(".")[:2]
        if len(numbers) == 2 and all(number.isdecimal() for number in numbers) and tuple(map(int, numbers)) < _LEAST:
            return f"runs Kubernetes {self.version}: holding reservations takes 1.28 or later"
        number = self._number
        if number is not None and number < _LEAST_SCHEDULER:
            dotted = ".".join(map(str, number))
            return f"runs scheduler {dotted}: holding reservations takes 6.8.0 or later"
        return ""

    @property
    def certain(self) -> bool:
        """Whether its scheduler is known to hold them."""
        return not self.refusal and (self._number is not None or self.scheduler.startswith(KOORDINATOR))

    @property
    def _number(self) -> tuple[int, ...] | None:
        match = _NUMBER.search(self.scheduler)
        return tuple(map(int, match.groups())) if match else None


def chosen(labels: Mapping[str, str], offer: Offer, asked: str = "") -> str:
    """The fit on a cluster of a gang whose policy asks for ``asked``; the policy has the first word, then the cluster."""
    for fit in (asked, labels.get(FIT, AUTO)):
        if fit not in ("", AUTO):
            return fit
    return RESERVATION if offer.certain else NODE_FIT


def is_switched_off(labels: Mapping[str, str]) -> bool:
    """Whether the cluster's label selects another fit than reservations."""
    return labels.get(FIT) in (AGGREGATE, NODE_FIT)


def fault(fit: str) -> str:
    """What is wrong with the word; empty: nothing."""
    return "" if fit in FITS else f"must be one of {', '.join(FITS)}, not {fit!r}"


def faults(labels: Mapping[str, str], offer: Offer) -> list[tuple[str, str]]:
    """What is wrong with the label of a cluster that offers this: (field, detail)."""
    fit = labels.get(FIT, AUTO)
    if detail := fault(fit):
        return [(f"labels.{FIT}", detail)]
    why = offer.refusal if fit == RESERVATION else ""
    return [(f"labels.{FIT}", f"cannot be {RESERVATION}: the cluster {why}")] if why else []
