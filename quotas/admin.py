"""The admin console of quotas: the tree as a tree, the queues, the history, and who leads what.

The page of the tree holds the console's editor, which reads and saves through REST: the same rules hold here and there.
Rights are those of `fleet.services.authorization.access` and `quotas.services.scopes`, not Django's own.
"""

from typing import Any

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db.models import Model, QuerySet
from django.http import HttpRequest, HttpResponse
from django.middleware.csrf import get_token
from django.template.response import TemplateResponse

from fleet.admin_access import RoleAdmin
from fleet.db import clock
from fleet.errors import ConvoyError
from fleet.services.operations import console_bundle
from quotas.models import Queue, QuotaGrant, QuotaRevision, QuotaTree
from quotas.services import queues, scopes, team_leads

State = Queue.State
EDITOR = "src/quotaEditor.tsx"


@admin.register(QuotaTree)
class QuotaTreeAdmin(RoleAdmin):
    kind = QuotaTree.kind

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        if not self.has_view_permission(request):
            raise PermissionDenied
        get_token(request)  # sets the cookie that the editor sends back with each change
        shown = {"title": "Quota tree", "is_fullwidth": "1", "bundle": console_bundle.entry(EDITOR)}
        context = {**self.admin_site.each_context(request), **shown}
        return TemplateResponse(request, "admin/quotas/tree.html", context)


@admin.register(Queue)
class QueueAdmin(RoleAdmin):
    kind = QuotaTree.kind

    list_display = ("name", "path", "state", "state_by", "state_at", "state_comment")
    list_filter = ("state", "leaf")
    search_fields = ("name", "path")
    actions = ("hold", "drain", "stop", "reopen")

    @admin.action(description="Hold: admit nothing, what runs goes on")
    def hold(self, request: HttpRequest, queryset: QuerySet[Queue]) -> None:
        self._each(request, queryset, State.HELD)

    @admin.action(description="Drain: take no more jobs, what runs goes on")
    def drain(self, request: HttpRequest, queryset: QuerySet[Queue]) -> None:
        self._each(request, queryset, State.DRAINING)

    @admin.action(description="Stop: take back what runs")
    def stop(self, request: HttpRequest, queryset: QuerySet[Queue]) -> None:
        self._each(request, queryset, State.STOPPED)

    @admin.action(description="Open")
    def reopen(self, request: HttpRequest, queryset: QuerySet[Queue]) -> None:
        self._each(request, queryset, State.OPEN)

    def _each(self, request: HttpRequest, queryset: QuerySet[Queue], state: Queue.State) -> None:
        """One refused queue does not keep the others from being changed."""
        done = 0
        for queue in queryset:
            try:
                done += queues.set_state(queue, state, by=request.user.get_username(), now=clock.now())
            except ConvoyError as e:
                self.message_user(request, e.message, messages.WARNING)
        self.message_user(request, f"{done} changed to {state}", messages.SUCCESS if done else messages.INFO)


@admin.register(QuotaRevision)
class RevisionAdmin(RoleAdmin):
    kind = QuotaTree.kind

    list_display = ("generation", "by", "at", "source", "comment")
    search_fields = ("by", "comment")


@admin.register(QuotaGrant)
class QuotaGrantAdmin(RoleAdmin):
    """Team leads, named and unnamed through their service by those who may change the whole tree."""

    kind = QuotaTree.kind

    list_display = ("user", "path")
    search_fields = ("user__username", "path")
    list_select_related = ("user",)

    def has_add_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return scopes.scope_of(request.user) == scopes.EVERYTHING

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return self.has_add_permission(request)

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return self.has_add_permission(request)

    def save_model(self, request: HttpRequest, obj: QuotaGrant, form: Any, change: bool) -> None:
        team_leads.save(obj)

    def delete_model(self, request: HttpRequest, obj: QuotaGrant) -> None:
        team_leads.take_back(QuotaGrant.objects.filter(pk=obj.pk))

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[QuotaGrant]) -> None:
        team_leads.take_back(queryset)
