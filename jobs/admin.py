"""Demand for operators: everything to read; suspend, resume and delete through the same services as REST.

What is inside a dependent (a ConfigMap, a Secret) is in no column and no form here, and may not be added.
"""

from collections.abc import Callable
from datetime import datetime
from typing import Any

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import HttpRequest

from fleet.admin_access import RoleAdmin
from fleet.db import clock
from fleet.errors import ConvoyError
from fleet.services.authorization import access
from jobs.models import Attempt, Binding, Dependent, Job, Policy, Work
from jobs.services.submission.changes import actions as submission_actions

Deed = Callable[..., object]


class JobsAdmin(RoleAdmin):
    """Of a job or beside it. ``left_out`` is never read for a list."""

    kind = "Job"
    namespace_field = "namespace"
    left_out: tuple[str, ...] = ()

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        return super().get_queryset(request).select_related(*(self.list_select_related or ())).defer(*self.left_out)


@admin.register(Job)
class JobAdmin(JobsAdmin):
    list_display = ("name", "namespace", "kind", "state", "cluster", "gpus", "attempt", "policy", "created_at", "why")
    list_filter = ("state", "kind", "namespace", "cluster")
    list_select_related = ("cluster", "policy")
    left_out = ("manifest", "status", "cluster__access", "cluster__apis", "policy__manifest")
    search_fields = ("name", "namespace")
    exclude = ("reason", "reclaim")
    """They name jobs that the reader of this one may not see; the message does not."""
    readonly_fields = ("why",)
    actions = ("suspend", "resume", "remove")

    @admin.display(description="reason")
    def why(self, job: Job) -> str:
        return str((job.reason or {}).get("message", ""))

    @admin.action(description="Suspend")
    def suspend(self, request: HttpRequest, queryset: QuerySet[Job]) -> None:
        self._each(request, queryset, "suspend", submission_actions.suspend)

    @admin.action(description="Resume")
    def resume(self, request: HttpRequest, queryset: QuerySet[Job]) -> None:
        self._each(request, queryset, "resume", submission_actions.resume)

    @admin.action(description="Delete, with all copies in the members")
    def remove(self, request: HttpRequest, queryset: QuerySet[Job]) -> None:
        self._each(request, queryset, "delete", submission_actions.delete)

    def _each(self, request: HttpRequest, queryset: QuerySet[Job], verb: str, deed: Deed) -> None:
        """One refused job does not keep the others from being done."""
        now: datetime = clock.now()
        done = 0
        for job in queryset:
            if not access.may(request.user, verb, "Job", job.namespace):
                raise PermissionDenied
            try:
                deed(job, by=request.user.get_username(), now=now)
                done += 1
            except ConvoyError as e:
                self.message_user(request, e.message, messages.WARNING)
        self.message_user(request, f"{verb}: {done} done", messages.SUCCESS if done else messages.INFO)


@admin.register(Policy)
class PolicyAdmin(JobsAdmin):
    list_display = ("name", "namespace", "kind", "generation", "created_at")
    list_filter = ("kind", "namespace")
    search_fields = ("name", "namespace")


@admin.register(Binding)
class BindingAdmin(JobsAdmin):
    namespace_field = "job__namespace"
    list_display = ("job", "cluster", "attempt", "result", "scheduled_at")
    list_filter = ("cluster",)
    list_select_related = ("job", "cluster")
    left_out = ("job__manifest", "job__status", "cluster__access", "cluster__apis")
    search_fields = ("job__name", "job__namespace")
    ordering = ("-scheduled_at",)


@admin.register(Work)
class WorkAdmin(JobsAdmin):
    list_display = ("name", "namespace", "kind", "attempt", "cluster", "state", "tries", "due_at", "message")
    list_filter = ("state", "cluster")
    list_select_related = ("cluster",)
    left_out = ("cluster__access", "cluster__apis")
    search_fields = ("name", "namespace")
    ordering = ("-id",)


@admin.register(Attempt)
class AttemptAdmin(JobsAdmin):
    namespace_field = "job__namespace"
    list_display = ("job", "number", "cluster_name", "placed_at", "started_at", "ended_at", "outcome", "message")
    list_filter = ("outcome", "cluster_name")
    list_select_related = ("job",)
    left_out = ("job__manifest", "job__status")
    search_fields = ("job__name", "job__namespace")
    ordering = ("-placed_at",)


@admin.register(Dependent)
class DependentAdmin(JobsAdmin):
    list_display = ("name", "namespace", "kind", "generation", "created_at")
    list_filter = ("kind", "namespace")
    search_fields = ("name", "namespace")
    exclude = ("manifest",)
    left_out = ("manifest",)
