"""Gives a copy what its pods need to report their progress to the supervisor of their member (annotation convoy.dev/report).

The token is derived from the fleet's keys, the job and the attempt, so that nothing is stored. The copy has its digest before
it is sent; the Secret with the token is created after the copy, which owns it, so that the member removes it with the copy.
Where there is no supervisor the job is sent all the same.
"""

import base64
import hashlib
import tempfile
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from fleet.core.members import marks
from fleet.kube import pki
from fleet.kube.resources import SECRETS, SERVICES
from fleet.member.client import MemberClient
from fleet.member.errors import MemberExists, MemberMissing, MemberRefused
from fleet.models import Identity
from fleet.services.members import signing
from jobs.kinds import progress_reports
from jobs.kinds.base import Kind, Manifest, set_metadata
from jobs.kinds.progress_reports import AUTHORITY, TOKEN
from jobs.models import Job, Work
from jobs.runtime import progress
from jobs.services.dispatch.members import member_objects

NAMESPACE, SERVICE, PORT = "arena-system", "elastic-job-supervisor", 8443
TLS = "elastic-job-supervisor-tls"
"""The Secret with the certificate of the supervisor's door."""
_HOST = f"{SERVICE}.{NAMESPACE}.svc"


def write(
    client: MemberClient, kind: Kind, body: Manifest, job: Job, work: Work, now: datetime
) -> tuple[str, Manifest]:
    """Changes ``body`` in place. Returns why its pods cannot report, in words, and the Secret to create after the copy."""
    if not progress_reports.is_wanted(job.manifest):
        return "", {}
    if job.shares:
        return "the pods of a job that is divided do not report their progress", {}
    try:
        authority = _authority(client, now)
    except MemberRefused as e:
        return f"{work.cluster.name} takes no reports of progress: {member_objects.refusal_text(e)}", {}
    if authority is None:
        return f"{work.cluster.name} takes no reports of progress: it has no Service {SERVICE} in {NAMESPACE}", {}
    namespace, name = body["metadata"]["namespace"], body["metadata"]["name"]
    secret = f"convoy-report-{work.job_uid}-{work.attempt}"
    url = f"https://{_HOST}:{PORT}{kind.resource.path(namespace, name)}/status"
    token = signing.sign(work.cluster, "report", str(work.job_uid), str(work.attempt), namespace, name)
    progress_reports.write(kind, body, url, secret)
    set_metadata(body, "annotations", {progress.TOKEN_DIGEST: hashlib.sha256(token.encode()).hexdigest()})
    labels = member_objects.labels(Identity.here(), str(work.job_uid), work.attempt)
    return "", _secret(namespace, secret, labels, {TOKEN: token, AUTHORITY: authority})


def send(client: MemberClient, secret: Manifest, owner: Manifest, work: Work) -> None:
    """Creates the Secret for the copy that owns it."""
    meta = owner["metadata"]
    reference = {"apiVersion": work.api_version, "kind": work.kind, "name": meta["name"], "uid": meta["uid"]}
    body = {**secret, "metadata": {**secret["metadata"], "ownerReferences": [reference]}}
    member_objects.create(client, SECRETS, body, str(work.job_uid), work.attempt)


def _authority(client: MemberClient, now: datetime) -> str | None:
    """The certificate of the authority that pods trust, made with the supervisor's if there is none; None: no supervisor."""
    path = SECRETS.path(NAMESPACE, TLS)
    try:
        client.get(SERVICES.path(NAMESPACE, SERVICE))
    except MemberMissing:
        return None
    try:
        existing: Mapping[str, Any] = client.get(path)
    except MemberMissing:
        try:
            existing = client.create(SECRETS.path(NAMESPACE), tls_secret(now))
        except MemberExists:
            existing = client.get(path)
    text = (existing.get("data") or {}).get(AUTHORITY) or ""
    return base64.b64decode(text).decode("utf-8", "replace") or None


def tls_secret(now: datetime) -> Manifest:
    """A certificate for the supervisor's door with an authority of its own, whose key is kept nowhere."""
    with tempfile.TemporaryDirectory() as folder:
        made = pki.ensure(Path(folder), now, [_HOST, f"{_HOST}.cluster.local"])
        files = {"tls.crt": made.certificate, "tls.key": made.key, AUTHORITY: made.authority}
        data = {name: file.read_text() for name, file in files.items()}
    return {**_secret(NAMESPACE, TLS, {marks.MANAGED_BY: marks.MANAGER}, data), "type": "kubernetes.io/tls"}


def _secret(namespace: str, name: str, labels: dict[str, str], data: Mapping[str, str]) -> Manifest:
    encoded = {key: base64.b64encode(text.encode()).decode() for key, text in data.items()}
    metadata = {"namespace": namespace, "name": name, "labels": labels}
    return {"apiVersion": "v1", "kind": "Secret", "type": "Opaque", "metadata": metadata, "data": encoded}
