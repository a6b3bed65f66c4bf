"""Whether a job has to run where the data of its volume claims is; pure."""

from collections.abc import Iterable, Mapping

from jobs.core.manifest_fields import Faults

DATA_PLACEMENT = "convoy.dev/data-placement"
"""Annotation of a policy or a claim: ``Anywhere`` lets jobs run where the claim's data is not; else (``WithData``) not."""
_ANYWHERE, _WITH_DATA = "Anywhere", "WithData"


def is_anywhere(annotations: object, faults: Faults) -> bool:
    """Whether the annotations say so; what is no mapping says nothing, and is refused elsewhere."""
    value = annotations.get(DATA_PLACEMENT) if isinstance(annotations, Mapping) else None
    faults.one_of(value, f"metadata.annotations.{DATA_PLACEMENT}", (_ANYWHERE, _WITH_DATA))
    return value == _ANYWHERE


def elsewhere(claim: str, clusters: Iterable[str]) -> str:
    """``does not have the data of claim default/ckpt, which is on north``."""
    return f"does not have the data of claim {claim}, which is on {', '.join(clusters)}"
