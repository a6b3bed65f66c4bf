"""Lets the pods of a copy report their training's progress: three variables, and a volume with token and authority. Pure.

They are those of Kubeflow Trainer (KEP-2779), which transformers, the Kubeflow SDK and ``convoy_runtime`` read.
"""

from jobs.core.manifest_fields import Manifest
from jobs.kinds.base import Kind

WANTED = "convoy.dev/report"
"""Annotation of a job: ``true`` gives its pods what they need to report."""
FOLDER = "/var/run/secrets/convoy/report"
TOKEN, AUTHORITY = "token", "ca.crt"  # noqa: S105 - names of files
_VOLUME = "convoy-report"
URL_VARIABLE = "KUBEFLOW_TRAINER_SERVER_URL"


def is_wanted(manifest: Manifest) -> bool:
    return ((manifest.get("metadata") or {}).get("annotations") or {}).get(WANTED) == "true"


def write(kind: Kind, body: Manifest, url: str, secret: str) -> None:
    """Changes ``body`` in place. A container that names a server itself keeps its own variables."""
    variables = {
        URL_VARIABLE: url,
        "KUBEFLOW_TRAINER_SERVER_TOKEN": f"{FOLDER}/{TOKEN}",
        "KUBEFLOW_TRAINER_SERVER_CA_CERT": f"{FOLDER}/{AUTHORITY}",
    }
    for _, template in kind.templates(body):
        spec = template.get("spec") or {}
        reporting = [each for each in spec.get("containers") or [] if not _has_own(each)]
        for container in reporting:
            container["env"] = [*(container.get("env") or []), *_env(variables)]
            mount = {"name": _VOLUME, "mountPath": FOLDER, "readOnly": True}
            container["volumeMounts"] = [*(container.get("volumeMounts") or []), mount]
        if reporting:
            volume = {"name": _VOLUME, "secret": {"secretName": secret, "defaultMode": 0o444}}
            spec["volumes"] = [*(spec.get("volumes") or []), volume]


def _has_own(container: Manifest) -> bool:
    return any(each.get("name") == URL_VARIABLE for each in container.get("env") or [])


def _env(variables: dict[str, str]) -> list[dict[str, str]]:
    return [{"name": name, "value": value} for name, value in variables.items()]
