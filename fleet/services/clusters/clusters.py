"""Clusters come, change and go: join, renew, detach, cordon, drain, labels and taints.

A member is asked before anything is written; what is written is one transaction with its journal entry and its line in
the timeline.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial

from django.conf import settings
from django.db import IntegrityError, transaction
from django.db.models import TextField
from django.db.models.functions import Cast

from fleet.changes import events, journal, signals
from fleet.core import fits, prices, tags
from fleet.core.members import health
from fleet.core.members.hub_names import hub_name
from fleet.core.node_exclusions import TAINT, TAINT_NODES
from fleet.errors import Conflict, FieldFault, InvalidInput, NotFound, invalid
from fleet.member import addresses, kubeconfig
from fleet.member.client import Access
from fleet.models import Cluster, MemberCredentials
from fleet.services.members import impersonation, member_clients, member_facts
from fleet.services.members.member_facts import Findings

Taint = Mapping[str, str]
_HEALTH_TAINTS = (health.NOT_READY_TAINT, health.UNREACHABLE_TAINT)


def join(
    name: str,
    kubeconfig_text: str,
    *,
    context: str = "",
    labels: Mapping[str, str] | None = None,
    by: str,
    now: datetime,
) -> Cluster:
    """A new member, Ready; its capacity is known once the watcher has listed it (`Cluster.synced_at`)."""
    labels = dict(labels or {})
    fault = tags.cluster_name_fault(name)
    _refuse([("name", fault)] if fault else [])
    _refuse(tags.label_faults(labels))
    if Cluster.objects.filter(name=name).exists():
        raise Conflict(f"A cluster named {name} has joined already: choose another name, or renew its credentials.")
    access = parse_kubeconfig(kubeconfig_text, context)
    findings = probe(access)
    refuse_known(findings.member_uid)
    return _add(name, access, findings, labels, by, now)


def renew(cluster: Cluster, kubeconfig_text: str, *, context: str = "", by: str, now: datetime) -> Cluster:
    """New credentials, or a new address, for the same member; its jobs run on, and are seen again at the next look."""
    access = parse_kubeconfig(kubeconfig_text, context)
    findings = probe(access)
    with transaction.atomic():
        row = locked(cluster)
        _refuse_another(row, findings.member_uid)
        _refuse_without_impersonation(row, findings)
        row.access, row.server = member_clients.stored(access), access.server
        # The former ones must not come back when a token ends.
        MemberCredentials.objects.filter(cluster_id=row.pk).delete()
        row.member_uid = findings.member_uid or row.member_uid
        take(row, findings, now)
        # What went unanswered was sent to the former address: what waits for it is tried at once.
        row.unanswered, row.circuit_opened_at, row.circuit_probe_at = 0, None, None
        fields = ("access", "server", "member_uid", "unanswered", "circuit_opened_at", "circuit_probe_at")
        _changed(row, "CredentialsRenewed", f"{by} renewed the credentials", now, *fields)
    return row


def _refuse_another(cluster: Cluster, member_uid: str) -> None:
    """Refuses a cluster that may be another one than the row's: the jobs of the row would be looked for there."""
    if cluster.member_uid and member_uid != cluster.member_uid:
        raise Conflict(
            f"This kubeconfig leads to another cluster than {cluster.name}: join it under a name of its own."
            if member_uid
            else f"This kubeconfig may not read the namespace kube-system: it cannot be shown to lead to {cluster.name}."
        )
    if not cluster.member_uid:
        refuse_known(member_uid)


def _refuse_without_impersonation(cluster: Cluster, findings: Findings) -> None:
    """Refuses credentials with which nothing that persons ask of the cluster would be answered any more."""
    lacking = [
        f"impersonate {p['resource']}" for p in findings.permissions if p["verb"] == "impersonate" and not p["allowed"]
    ]
    if cluster.impersonation and lacking:
        raise invalid(
            "kubeconfig", f"does not allow: {', '.join(lacking)}; grant that, or turn impersonation off first"
        )


def parse_kubeconfig(kubeconfig_text: str, context: str = "") -> Access:
    """The access a kubeconfig gives, if its server is one we may call."""
    access = kubeconfig.parse(kubeconfig_text, context)
    refusal = addresses.server_refusal(access.server, private_ok=settings.CONVOY_PRIVATE_MEMBERS)
    if refusal:
        raise invalid("kubeconfig.clusters.cluster.server", refusal)
    return access


def probe(access: Access) -> Findings:
    """What the member says; refused when it lets us do too little to be of use."""
    findings = member_facts.probe(access)
    lacking = member_facts.missing_essentials(findings)
    if lacking:
        detail = f"the cluster lacks or does not allow: {', '.join(lacking)}"
        raise InvalidInput(f"kubeconfig: {detail}", (FieldFault("kubeconfig", detail),))
    return findings


def take(cluster: Cluster, findings: Findings, now: datetime) -> list[str]:
    """Puts fresh findings on the row; returns the names of the fields that differ by it."""
    fresh = {
        "version": findings.version,
        "scheduler": findings.scheduler,
        "apis": findings.apis,
        "permissions": findings.permissions,
    }
    differ = [field for field, value in fresh.items() if getattr(cluster, field) != value]
    for field in differ:
        setattr(cluster, field, fresh[field])
    cluster.discovered_at = now
    cluster.save(update_fields=[*differ, "discovered_at"])
    return differ


def detach(cluster: Cluster, *, by: str, now: datetime, force: bool = False) -> None:
    """Removes the cluster from the fleet. Refused while jobs or other objects are still there, unless forced."""
    with transaction.atomic():
        row = locked(cluster)
        vetoes = [str(answer) for _, answer in signals.detaching.send(sender=Cluster, cluster=row) if answer]
        vetoes += _left_in_member(row)
        if vetoes and not force:
            raise Conflict(f"{row.name} cannot leave yet: {'; '.join(vetoes)}")
        entry = change(row, journal.Action.DELETED)
        events.announce([entry], now)
        events.record(entry, "ClusterDetached", f"{by} detached {row.name}", now)
        # Their rows go with the cluster's; none of them was changed by itself, so the audit has the cluster alone.
        journal.append(_objects_in(row), now)
        pk = row.pk
        row.delete()
        transaction.on_commit(partial(signals.cluster_changed.send, sender=Cluster, cluster_id=pk), robust=True)


def _left_in_member(cluster: Cluster) -> Iterator[str]:
    """What the fleet has changed there for as long as it is a member, and can still take back."""
    if cluster.state != health.State.READY:
        return
    nodes = cluster.nodes.alias(text=Cast("taints", TextField())).filter(text__contains=f'"{TAINT}"')
    if count := nodes.count():
        take_off = f"kubectl annotate cluster {cluster.name} {TAINT_NODES}=false --overwrite"
        yield f'the taint {TAINT} would stay on {count} of its nodes; "{take_off}" takes it off within a minute'


def _objects_in(cluster: Cluster) -> Iterator[journal.Change]:
    """The pods and nodes of a cluster as what is deleted with it."""
    gone = journal.Action.DELETED
    for namespace, name, uid in cluster.pods.values_list("namespace", "name", "uid"):
        yield journal.Change("Pod", namespace, hub_name(name, cluster.name), uid, gone)
    for name in cluster.nodes.values_list("name", flat=True):
        yield journal.Change("Node", cluster.name, name, str(cluster.uid), gone)


def cordon(cluster: Cluster, on: bool, *, by: str, now: datetime) -> Cluster:
    """A cordoned cluster keeps its jobs and gets no new ones."""
    with transaction.atomic():
        row = locked(cluster)
        if row.cordoned == on:
            return row
        row.cordoned = on
        reason, done = ("ClusterCordoned", "cordoned") if on else ("ClusterUncordoned", "uncordoned")
        _changed(row, reason, f"{by} {done} the cluster", now, "cordoned")
        if not on:
            freed(row.pk)
    return row


def drain(cluster: Cluster, *, by: str, now: datetime) -> Cluster:
    """A drained cluster loses its jobs, each when it tolerates the taint no longer, and gets no new ones."""
    with transaction.atomic():
        row = locked(cluster)
        if row.drained:
            return row
        key, effect = tags.DRAIN
        peoples = sum(taint["key"] not in _HEALTH_TAINTS for taint in row.taints)
        row.taints.insert(peoples, _taint({"key": key, "effect": effect}, now.isoformat()))
        _changed(row, "ClusterDrained", f"{by} drained the cluster", now, "taints")
    return row


def reopen(cluster: Cluster, *, by: str, now: datetime) -> Cluster:
    """Neither cordoned nor drained any more; every other taint stays."""
    with transaction.atomic():
        row = locked(cluster)
        if not row.cordoned and not row.drained:
            return row
        row.cordoned = False
        row.taints = [taint for taint in row.taints if not tags.is_drain(taint)]
        _changed(row, "ClusterUncordoned", f"{by} uncordoned the cluster", now, "cordoned", "taints")
        freed(row.pk)
    return row


def set_impersonation(cluster: Cluster, on: bool, *, by: str, now: datetime) -> Cluster:
    """Whether the member is asked in the names of persons. Refused where it does not let the fleet's account do so."""
    if on:
        impersonation.require_rights(cluster)
    with transaction.atomic():
        row = locked(cluster)
        if row.impersonation == on:
            return row
        row.impersonation = on
        done = "turned impersonation on" if on else "turned impersonation off"
        _changed(row, "ImpersonationChanged", f"{by} {done}", now, "impersonation")
    return row


def set_labels(cluster: Cluster, labels: Mapping[str, str], *, by: str, now: datetime) -> Cluster:
    """Replaces all labels."""
    scheduler = labels.get(fits.SCHEDULER) or cluster.scheduler
    offer = replace(cluster.offer, scheduler=scheduler)
    _refuse([*tags.label_faults(labels), *fits.faults(labels, offer), *prices.faults(labels)])
    with transaction.atomic():
        row = locked(cluster)
        if row.labels != dict(labels):
            row.labels = dict(labels)
            _changed(row, "LabelsChanged", f"{by} changed the labels", now, "labels")
    return row


def set_annotations(cluster: Cluster, annotations: Mapping[str, str], *, by: str, now: datetime) -> Cluster:
    """Replaces all annotations: notes of people and tools."""
    _refuse(tags.annotation_faults(annotations))
    with transaction.atomic():
        row = locked(cluster)
        if row.annotations != dict(annotations):
            row.annotations = dict(annotations)
            announce(row, ["annotations"], now)
    return row


def set_taints(cluster: Cluster, taints: Sequence[Taint], *, by: str, now: datetime) -> Cluster:
    """Replaces people's taints; those of the heartbeat are its own."""
    _refuse(tags.taint_faults(taints))
    _refuse(
        (f"taints[{i}].key", "is kept by the heartbeat") for i, t in enumerate(taints) if t["key"] in _HEALTH_TAINTS
    )
    with transaction.atomic():
        row = locked(cluster)
        since = {(t["key"], t["effect"]): t["timeAdded"] for t in row.taints if t.get("timeAdded")}
        kept = [t for t in row.taints if t["key"] in _HEALTH_TAINTS]
        wanted = [_taint(t, since.get((t["key"], t["effect"]), now.isoformat())) for t in taints]
        if row.taints != wanted + kept:
            row.taints = wanted + kept
            _changed(row, "TaintsChanged", f"{by} changed the taints", now, "taints")
    return row


def change(cluster: Cluster, action: journal.Action = journal.Action.MODIFIED) -> journal.Change:
    return journal.Change("Cluster", "", cluster.name, str(cluster.uid), action)


def announce(cluster: Cluster, fields: Iterable[str], now: datetime) -> None:
    """Saves the fields with a journal entry, and signals the apps above on commit; call inside the transaction."""
    [cluster.resource_version] = events.announce([change(cluster)], now)
    cluster.save(update_fields=[*fields, "resource_version"])
    transaction.on_commit(partial(signals.cluster_changed.send, sender=Cluster, cluster_id=cluster.pk), robust=True)


def freed(cluster_id: int) -> None:
    """Signals the apps above, on commit, that something may fit now that did not before."""
    transaction.on_commit(partial(signals.capacity_freed.send, sender=Cluster, cluster_id=cluster_id), robust=True)


def _add(name: str, access: Access, findings: Findings, labels: dict[str, str], by: str, now: datetime) -> Cluster:
    row = Cluster(
        name=name,
        server=access.server,
        access=member_clients.stored(access),
        member_uid=findings.member_uid,
        labels=labels,
        state=Cluster.State.READY,
        state_reason=health.Look(True, True).reason,
        state_message=health.Look(True, True).message,
        state_since=now,
        last_heartbeat=now,
        version=findings.version,
        scheduler=findings.scheduler,
        apis=findings.apis,
        permissions=findings.permissions,
        discovered_at=now,
        discovery_due_at=now + timedelta(seconds=settings.CONVOY_MEMBERS.discovery_interval_s),
        joined_at=now,
    )
    _refuse([*fits.faults(labels, row.offer), *prices.faults(labels)])
    try:
        with transaction.atomic():
            [row.resource_version] = events.announce([change(row, journal.Action.ADDED)], now)
            row.save(force_insert=True)
            message = f"{by} joined {name} ({findings.version or 'version unknown'}) at {access.server}"
            events.record(change(row), "ClusterJoined", message, now)
            _warn_of_missing_rights(row, now)
            transaction.on_commit(partial(signals.cluster_changed.send, sender=Cluster, cluster_id=row.pk), robust=True)
    except IntegrityError as e:
        refuse_known(findings.member_uid)
        raise Conflict(f"A cluster named {name} has joined already.") from e
    return row


def _warn_of_missing_rights(cluster: Cluster, now: datetime) -> None:
    lacking = [f"{p['verb']} {p['resource']} ({p['needed_for']})" for p in cluster.permissions if not p["allowed"]]
    if lacking:
        message = f"Missing rights: {', '.join(lacking)}"
        events.record(change(cluster), "RightsMissing", message, now, warning=True)


def refuse_known(member_uid: str) -> None:
    other = Cluster.objects.filter(member_uid=member_uid).first() if member_uid else None
    if other:
        raise Conflict(f"This cluster is a member already, under the name {other.name}.")


def locked(cluster: Cluster) -> Cluster:
    """The row of now, for the transaction; raises `NotFound` where the cluster has left."""
    row = Cluster.objects.select_for_update(no_key=True).filter(pk=cluster.pk).first()
    if row is None:
        raise NotFound(f"The cluster {cluster.name} has left the fleet.")
    return row


def _changed(row: Cluster, reason: str, message: str, now: datetime, *fields: str) -> None:
    announce(row, fields, now)
    events.record(change(row), reason, message, now)


def _taint(taint: Taint, since: str) -> dict[str, str]:
    return {"key": taint["key"], "value": taint.get("value") or "", "effect": taint["effect"], "timeAdded": since}


def _refuse(faults: Iterable[tags.Fault]) -> None:
    details = tuple(FieldFault(field, detail) for field, detail in faults)
    if details:
        raise InvalidInput("; ".join(f"{f.field}: {f.detail}" for f in details), details)
