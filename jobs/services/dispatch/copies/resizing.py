"""Brings a copy to the size, labels and annotations in force of its job, and keeps it off excluded nodes, in the member that
has it: what `jobs.services.lifecycle.sizes`, `copy_metadata` and `kept_off` ordered.

Idempotent, and without a size of its own: the number of the order is read before the job, so that the sizes sent are those of
this order or of a later one. A worker that dies after the patch leaves an order that the next one finds carried out. A copy
that is gone, being deleted or of another attempt is left alone, and the order is done.
"""

import copy
from collections.abc import Callable
from datetime import datetime

from django.db import transaction

from fleet.changes import events
from fleet.core.members import marks
from fleet.kube.resources import Resource
from fleet.member.client import MemberClient
from fleet.member.errors import MemberRefused
from fleet.models import Identity
from jobs.core.division import shares
from jobs.core.policies.overrides_apply import CannotOverride
from jobs.core.resizing.bounds import Sizes
from jobs.events import announce_works, record_event
from jobs.kinds import gangs
from jobs.kinds.base import Manifest, set_metadata
from jobs.models import Job, Work
from jobs.services.dispatch.copies import kept_off, overrides
from jobs.services.dispatch.members import member_objects, scalers
from jobs.services.dispatch.members.member_objects import NotYet
from jobs.services.lifecycle import sizes, works
from jobs.services.lifecycle.copies import copy_metadata
from jobs.services.lifecycle.locks import lock_owners


def carry_out(client: MemberClient, work: Work, job: Job, clock: Callable[[], datetime]) -> None:
    in_force, is_changed, waits_for = sizes.in_force(job), False, ""
    try:
        if work.attempt in shares.counting(job.shares, job.attempt):
            _follow_metadata(client, work, job)
        if job.attempt == work.attempt and in_force:
            _resize_group(client, work, job)
            is_changed = _resize_copy(client, work, job, in_force)
            waits_for = scalers.follow(client, sizes.kind_of(job), work, _labels(work), in_force)
    except (CannotOverride, MemberRefused) as e:
        message = f"{work.cluster.name} refuses the change: {_why(e)}"
        if work.message != message[:500]:
            record_event(job, "ResizeRefused" if in_force else "ChangeRefused", message, clock(), warning=True)
        raise NotYet(message) from e
    _keep_off(client, work, job, clock)
    sent = in_force if is_changed else {}
    if waits_for:
        if sent:
            _record_sent(work, job, sent, clock())
        raise NotYet(f"{work.cluster.name}: {waits_for}")
    _record(work, job, sent, clock())


def _keep_off(client: MemberClient, work: Work, job: Job, clock: Callable[[], datetime]) -> None:
    """After the resize, and without another try: a member that refuses it must not keep the copy from its size."""
    if work.attempt not in shares.counting(job.shares, job.attempt):
        return
    try:
        kept_off.follow(client, work, job)
    except (CannotOverride, MemberRefused) as e:
        message = f"{work.cluster.name} does not keep new pods off excluded nodes: {_why(e)}"
        record_event(job, "ChangeRefused", message[:500], clock(), warning=True)


def _why(refusal: CannotOverride | MemberRefused) -> str:
    return member_objects.refusal_text(refusal) if isinstance(refusal, MemberRefused) else str(refusal)


def _follow_metadata(client: MemberClient, work: Work, job: Job) -> None:
    """Gives the copy the labels and annotations that the manifest, with its overrides, has now."""
    kind, uid = sizes.kind_of(job), str(work.job_uid)
    wanted, _ = overrides.manifest(job, kind, work.cluster)
    own = {*_labels(work), marks.MARK, sizes.ANNOTATION}

    def edit(existing: Manifest) -> None:
        copy_metadata.write(existing, wanted, work.stale_metadata, frozenset(own))

    member_objects.edit(client, kind.resource, work.namespace, work.name, uid, work.attempt, edit)


def _resize_group(client: MemberClient, work: Work, job: Job) -> None:
    """Before the copy: a pod that is restarted alone must not wait for as many as there were."""
    kind, uid = sizes.kind_of(job), str(work.job_uid)
    body = member_objects.manifest(kind, job.manifest, _labels(work))
    group = gangs.bind(kind, body, kind.read(job.manifest), work.cluster.serves)
    if group is None:
        return
    resource, wanted = group

    def edit(existing: Manifest) -> None:
        least = ("minMember", "minResources")
        existing["spec"] = {
            **(existing.get("spec") or {}),
            **{k: wanted["spec"][k] for k in least if k in wanted["spec"]},
        }

    member_objects.edit(client, resource, work.namespace, work.name, uid, work.attempt, edit)


def _resize_copy(client: MemberClient, work: Work, job: Job, in_force: Sizes) -> bool:
    """Returns whether the copy had another size."""
    kind = sizes.kind_of(job)
    followed: list[tuple[Resource, str]] = []

    def edit(existing: Manifest) -> None:
        before = copy.deepcopy(existing.get("spec"))
        for role, size in in_force.items():
            kind.resize(existing, role, size)
        if (made := kind.followed(existing)) is not None:
            followed.append(made)
        if existing.get("spec") != before or sizes.ANNOTATION in (existing["metadata"].get("annotations") or {}):
            set_metadata(existing, "annotations", {sizes.ANNOTATION: sizes.as_annotation(in_force)})

    def edit_followed(existing: Manifest) -> None:
        for role, size in in_force.items():
            kind.resize_followed(existing, role, size)

    uid = str(work.job_uid)
    is_changed = member_objects.edit(client, kind.resource, work.namespace, work.name, uid, work.attempt, edit)
    for resource, name in followed[-1:]:
        member_objects.edit(client, resource, work.namespace, name, uid, work.attempt, edit_followed)
    return is_changed


@transaction.atomic
def _record(work: Work, job: Job, sent: Sizes, now: datetime) -> None:
    lock_owners([work.job_uid])
    claimed = Work.objects.filter(pk=work.pk, claim=work.claim, state=work.state)
    done = {"claim": "", "claimed_at": None, "tries": 0, "message": ""}
    if not claimed.update(resize_done=work.resize_wanted, **done):
        works.give_back(work, now, wait_s=0)
        return
    # Another order may have come meanwhile, with more that is stale: it is carried out next, and clears it.
    Work.objects.filter(pk=work.pk, resize_wanted=work.resize_wanted).update(stale_metadata=None)
    if works.resizing().filter(pk=work.pk).exists():
        events.enqueue("jobs.push", work.pk)
    if sent:
        _record_sent(work, job, sent, now)
    announce_works([work], now)


def _record_sent(work: Work, job: Job, sent: Sizes, now: datetime) -> None:
    size = ", ".join(f"{count} {role}" for role, count in sent.items())
    record_event(job, "ResizeSent", f"{work.cluster.name} was given the size in force: {size}", now)


def _labels(work: Work) -> dict[str, str]:
    return member_objects.labels(Identity.here(), str(work.job_uid), work.attempt)
