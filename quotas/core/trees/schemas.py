"""The OpenAPI schema of a quota tree: shown by `kubectl explain`, and used to report unknown fields.

An unknown field of a node is never dropped, whatever validation the client asks for: to drop a misspelt ``maxx`` would lift
a limit. `quotas.core.trees.parsing` refuses it. Unknown fields outside of nodes are dropped, as they are of any kind.
"""

from typing import Any

from fleet.kube.schema import schemas
from quotas.core.trees.parsing import DEEPEST

Document = dict[str, Any]
_AMOUNTS = {"type": "object", "additionalProperties": {"x-kubernetes-int-or-string": True}}
_OPEN = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


def _quota(depth: int) -> Document:
    child = _quota(depth - 1) if depth > 1 else _OPEN
    fields = {
        "name": {"type": "string", "description": "What it is called among its siblings; the root is called root."},
        "min": {**_AMOUNTS, "description": "Guaranteed amount by resource; 0 where it is not stated."},
        "max": {**_AMOUNTS, "description": "Maximum amount by resource; no limit where it is not stated."},
        "namespaces": {
            "type": "array",
            "description": "Namespaces whose jobs use it; of leaves only.",
            "items": {"type": "string"},
        },
        "attributes": {
            "type": "object",
            "description": "Lending, weight, preemption and order of its queue, as text.",
            "additionalProperties": {"type": "string"},
        },
        "children": {"type": "array", "description": "The quotas it is divided into.", "items": child},
    }
    return {"type": "object", "description": "A quota and those below it.", "properties": fields}


def _tree(root: Document) -> Document:
    spec = {"type": "object", "description": "The tree.", "required": ["root"], "properties": {"root": root}}
    status = {**_OPEN, "description": "Current use by quota, and the user who changed the tree last."}
    description = "Guaranteed and maximum amounts for teams: one tree of quotas for the whole fleet."
    return {
        "type": "object",
        "description": description,
        "properties": {"spec": spec, "status": status},
        "required": ["spec"],
    }


DOCUMENT = _tree(_quota(DEEPEST))
SCHEMA = schemas.of_kind(DOCUMENT)
KEPT = schemas.of_kind(_tree(_OPEN))
