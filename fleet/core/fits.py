"""How a cluster wants gangs fitted, said by its label ``convoy.dev/fit``; and whether it can do what it wants. Pure."""

from collections.abc import Mapping

from fleet.kube.resources import RESERVATIONS

FIT = "convoy.dev/fit"
RESERVATION = "Reservation"
FITS = ("Aggregate", "NodeFit", RESERVATION)
_LEAST = (1, 28)


def reserves(labels: Mapping[str, str]) -> bool:
    """Whether the member itself holds the capacity before a job is sent."""
    return labels.get(FIT) == RESERVATION


def faults(labels: Mapping[str, str], version: str, *, served: bool) -> list[tuple[str, str]]:
    """What is wrong with the label, on a member of this version: (field, detail)."""
    fit = labels.get(FIT)
    if fit is not None and fit not in FITS:
        return [(f"labels.{FIT}", f"must be one of {', '.join(FITS)}, not {fit!r}")]
    why = refusal(version, served=served) if fit == RESERVATION else ""
    return [(f"labels.{FIT}", f"cannot be {RESERVATION}: the cluster {why}")] if why else []


def refusal(version: str, *, served: bool) -> str:
    """Why a cluster cannot hold reservations; empty when it can."""
    if not served:
        return f"does not serve {RESERVATIONS.api_version} {RESERVATIONS.kind}: it takes scheduler 6.8.0 or Koordinator"
    numbers = version.lstrip("v").split(".")[:2]
    if len(numbers) == 2 and all(number.isdecimal() for number in numbers) and tuple(map(int, numbers)) < _LEAST:
        return f"runs Kubernetes {version}: holding reservations takes 1.28 or later"
    return ""
