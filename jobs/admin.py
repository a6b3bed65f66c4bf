"""The admin's view of demand: read-only, with the three things a service can do to a job."""

from collections.abc import Callable
from typing import Any

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils import timezone
from unfold.admin import ModelAdmin

from fleet.errors import ConvoyError
from fleet.services import access
from jobs.models import Attempt, Binding, Dependent, Job, Policy, Work
from jobs.services import lifecycle


class ReadOnly(ModelAdmin):  # type: ignore[misc]
    """Look, don't touch."""

    show_full_result_count = False
    list_per_page = 50

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


@admin.register(Job)
class JobAdmin(ReadOnly):
    list_display = ("name", "namespace", "kind", "state", "cluster", "attempt", "gpus", "priority", "created_at")
    list_filter = ("state", "kind", "namespace")
    list_select_related = ("cluster",)
    search_fields = ("name",)
    actions = ("suspend", "resume", "remove")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Job]:
        return super().get_queryset(request).defer("cluster__access")

    @admin.action(description="Suspend")
    def suspend(self, request: HttpRequest, chosen: QuerySet[Job]) -> None:
        self._each(request, chosen, "suspend", lifecycle.suspend)

    @admin.action(description="Resume")
    def resume(self, request: HttpRequest, chosen: QuerySet[Job]) -> None:
        self._each(request, chosen, "resume", lifecycle.resume)

    @admin.action(description="Delete, with its copies in the members")
    def remove(self, request: HttpRequest, chosen: QuerySet[Job]) -> None:
        self._each(request, chosen, "delete", lifecycle.delete)

    def _each(self, request: HttpRequest, chosen: QuerySet[Job], verb: str, service: Callable[..., Any]) -> None:
        for job in chosen:
            try:
                access.require(request.user, verb, "Job", job.namespace)
                service(job, by=request.user.get_username(), now=timezone.now())
            except ConvoyError as e:
                self.message_user(request, e.message, messages.ERROR)


@admin.register(Policy)
class PolicyAdmin(ReadOnly):
    list_display = ("name", "namespace", "kind", "generation", "created_at")
    list_filter = ("kind", "namespace")
    search_fields = ("name",)


@admin.register(Binding)
class BindingAdmin(ReadOnly):
    list_display = ("job", "cluster", "attempt", "result", "scheduled_at")
    list_select_related = ("job", "cluster")


@admin.register(Work)
class WorkAdmin(ReadOnly):
    list_display = ("name", "namespace", "kind", "attempt", "cluster", "state", "tries", "message", "created_at")
    list_filter = ("state", "cluster")
    list_select_related = ("cluster",)
    search_fields = ("name",)


@admin.register(Attempt)
class AttemptAdmin(ReadOnly):
    list_display = ("job", "number", "cluster_name", "placed_at", "started_at", "ended_at", "outcome")
    list_select_related = ("job",)


@admin.register(Dependent)
class DependentAdmin(ReadOnly):
    """Names only: what is inside leaves by no door."""

    list_display = ("name", "namespace", "kind", "generation", "created_at")
    list_filter = ("kind", "namespace")
    search_fields = ("name",)
    exclude = ("manifest",)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Dependent]:
        return super().get_queryset(request).defer("manifest")
