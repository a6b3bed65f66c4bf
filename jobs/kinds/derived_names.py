"""Refuses names of jobs whose pods, labels or Services could not exist: operators derive their names from the job's.

Such a job would be placed, hold its GPUs, and never start: the member's operator fails on it over and over.
"""

import re
from collections.abc import Sequence

from fleet.errors import FieldFault
from jobs.kinds.base import Kind, Manifest, Role

LONGEST = 63
"""Letters of a label's value, a pod's host name and a Service's name."""
_SERVICE = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")


def faults(kind: Kind, manifest: Manifest, roles: Sequence[Role]) -> list[FieldFault]:
    name = manifest["metadata"]["name"]
    if kind.makes_services and not _SERVICE.fullmatch(name):
        detail = "must begin with a letter and consist of lower-case letters, digits and -: Services are named after it"
        return [FieldFault("metadata.name", detail)]
    longest = max(kind.derived_names(name, roles), key=len)
    if len(longest) <= LONGEST:
        return []
    most = LONGEST - (len(longest) - len(name))
    derived = f"its member makes {longest} of it, and names there" if longest != name else "names of pods and labels"
    return [
        FieldFault("metadata.name", f"has {len(name)} letters and may have at most {most}: {derived} end at {LONGEST}")
    ]
