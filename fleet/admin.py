"""Supply for operators: everything to read, little to change. What changes goes through the same services as REST.

Credentials and digests are in no column and no form here, and none may be added.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.contrib.auth.models import Group, User
from django.core.exceptions import PermissionDenied
from django.db.models import Model, QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from unfold.widgets import UnfoldAdminTextareaWidget, UnfoldAdminTextInputWidget

from fleet.admin_access import RoleAdmin
from fleet.db import clock
from fleet.errors import ConvoyError
from fleet.models import AuditEntry, Cluster, Event, Grant, Hold, NamespacePolicy, Node, Pod, Token
from fleet.services.authorization import access, grants
from fleet.services.clusters import clusters


class JoinForm(forms.ModelForm):  # type: ignore[type-arg]  # not generic at run time
    """The kubeconfig goes to the service and is not kept as it came."""

    name = forms.CharField(max_length=63, widget=UnfoldAdminTextInputWidget)
    kubeconfig = forms.CharField(
        widget=UnfoldAdminTextareaWidget(attrs={"rows": 18, "autocomplete": "off", "spellcheck": "false"}),
        strip=False,
        max_length=256 * 1024,
        help_text="The file's text, with a token or a client certificate in it.",
    )
    context = forms.CharField(
        required=False, max_length=253, widget=UnfoldAdminTextInputWidget, help_text="Empty: the current one."
    )
    refused: ConvoyError | None = None

    class Meta:
        model = Cluster
        fields = ("name",)

    def clean(self) -> dict[str, Any]:
        """Shows what the service refused beside the field it is about."""
        cleaned = super().clean() or {}
        if self.refused is not None:
            for fault in self.refused.faults:
                self.add_error(fault.field if fault.field in self.fields else None, fault.detail)
            if not self.refused.faults:
                self.add_error(None, self.refused.message)
        return cleaned


@admin.register(Cluster)
class ClusterAdmin(RoleAdmin):
    kind = "Cluster"
    list_display = ("name", "state", "cordoned", "version", "region", "zone", "last_heartbeat", "state_message")
    list_filter = ("state", "cordoned", "region")
    search_fields = ("name", "region", "zone", "provider")
    exclude = ("access",)
    actions = ("cordon", "uncordon")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Cluster]:
        return super().get_queryset(request).defer("access")

    def has_add_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return access.may(request.user, "join", "Cluster")

    def add_view(self, request: HttpRequest, form_url: str = "", extra_context: Any = None) -> HttpResponse:
        """Joins before Django opens the transaction of its form: a member is asked, and may take its time."""
        if request.method == "POST" and self.has_add_permission(request):
            form = JoinForm(request.POST)
            if form.is_valid():
                try:
                    return self._joined(request, form.cleaned_data)
                except ConvoyError as e:
                    request.refused = e  # type: ignore[attr-defined]  # read by get_form
        response: HttpResponse = super().add_view(request, form_url, extra_context)
        return response

    def _joined(self, request: HttpRequest, cleaned: dict[str, Any]) -> HttpResponse:
        cluster = clusters.join(
            cleaned["name"],
            cleaned["kubeconfig"],
            context=cleaned["context"],
            by=request.user.get_username(),
            now=clock.now(),
        )
        self.message_user(request, f"{cluster} joined the fleet", messages.SUCCESS)
        return HttpResponseRedirect(reverse("admin:fleet_cluster_changelist"))

    def get_form(self, request: HttpRequest, obj: Cluster | None = None, **kwargs: Any) -> Any:
        if obj is not None:
            return super().get_form(request, obj, **kwargs)
        return type("Join", (JoinForm,), {"refused": getattr(request, "refused", None)})

    def get_fields(self, request: HttpRequest, obj: Cluster | None = None) -> Any:
        return ("name", "kubeconfig", "context") if obj is None else super().get_fields(request, obj)

    @admin.action(description="Cordon: place nothing new here")
    def cordon(self, request: HttpRequest, queryset: QuerySet[Cluster]) -> None:
        self._steer(request, queryset, partial(clusters.cordon, on=True), "Cordoned")

    @admin.action(description="Uncordon: place jobs here again")
    def uncordon(self, request: HttpRequest, queryset: QuerySet[Cluster]) -> None:
        self._steer(request, queryset, clusters.reopen, "Uncordoned")

    def _steer(
        self, request: HttpRequest, queryset: QuerySet[Cluster], steer: Callable[..., Cluster], done: str
    ) -> None:
        if not access.may(request.user, "cordon", "Cluster"):
            raise PermissionDenied
        for cluster in queryset:
            steer(cluster, by=request.user.get_username(), now=clock.now())
        self.message_user(request, f"{done} {queryset.count()}", messages.SUCCESS)


class OfCluster(RoleAdmin):
    """Rows that hang on a cluster: its name comes in the same query, its credentials never."""

    list_select_related = ("cluster",)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        return super().get_queryset(request).select_related("cluster").defer("cluster__access")


@admin.register(Node)
class NodeAdmin(OfCluster):
    kind = "Node"
    list_display = ("name", "cluster", "ready", "unschedulable", "allocatable", "requested")
    list_filter = ("cluster", "ready", "unschedulable")
    search_fields = ("name",)


@admin.register(Pod)
class PodAdmin(OfCluster):
    kind = "Pod"
    namespace_field = "namespace"
    list_display = ("name", "namespace", "cluster", "phase", "node", "role", "index", "attempt", "restarts")
    list_filter = ("cluster", "phase")
    search_fields = ("name", "namespace")


@admin.register(Hold)
class HoldAdmin(OfCluster):
    """Amounts of all tenants, by numbers that say nothing to them."""

    kind = "Process"
    list_display = ("job_uid", "attempt", "cluster", "amounts", "pods", "made_at", "released_at")
    list_filter = ("cluster", ("released_at", admin.EmptyFieldListFilter))
    ordering = ("-made_at",)


@admin.register(Event)
class EventAdmin(RoleAdmin):
    kind = "Event"
    namespace_field = "regarding_namespace"
    list_display = ("last_at", "type", "reason", "regarding_kind", "regarding_namespace", "regarding_name", "message")
    list_filter = ("type", "regarding_kind")
    search_fields = ("reason", "regarding_name", "message")


@admin.register(Token)
class TokenAdmin(RoleAdmin):
    kind = "Grant"
    list_display = ("name", "user", "created_at", "expires_at", "last_used_at", "revoked_at")
    list_select_related = ("user",)
    search_fields = ("name", "user__username")
    ordering = ("-created_at",)
    exclude = ("digest",)
    actions = ("revoke",)

    @admin.action(description="Revoke")
    def revoke(self, request: HttpRequest, queryset: QuerySet[Token]) -> None:
        if not access.may(request.user, "revoke", "Grant"):
            raise PermissionDenied
        for token in queryset.select_related("user"):
            grants.revoke(token.user.get_username(), token.pk, now=clock.now())
        self.message_user(request, "Revoked", messages.SUCCESS)


@admin.register(AuditEntry)
class AuditEntryAdmin(RoleAdmin):
    kind = "Audit"
    list_display = ("at", "actor", "door", "verb", "kind", "namespace", "name", "outcome", "message")
    list_filter = ("door", "outcome", "verb")
    search_fields = ("actor", "name", "message")
    ordering = ("-id",)


@admin.register(Grant)
class GrantAdmin(RoleAdmin):
    """Given and taken back over REST, by the command line and in the console."""

    kind = "Grant"
    list_display = ("user", "role", "namespace")
    list_select_related = ("user",)
    list_filter = ("role",)
    search_fields = ("user__username", "namespace")


@admin.register(NamespacePolicy)
class NamespacePolicyAdmin(RoleAdmin):
    """Changed over REST and by ``convoy namespace``, which check and audit it."""

    kind = "NamespacePolicy"
    list_display = (
        "name",
        "pod_security",
        "service_accounts",
        "capabilities",
        "host_paths",
        "host_network",
        "node_name",
    )
    list_filter = ("pod_security",)
    search_fields = ("name",)


admin.site.login_template = "admin/sign_in.html"
admin.site.unregister(Group)
admin.site.unregister(User)


@admin.register(User)
class UserAdmin(RoleAdmin):
    """Who there is. Made, disabled and given passwords over REST and by the command line; groups mean nothing here."""

    kind = "Grant"
    list_display = ("username", "is_active", "is_superuser", "last_login")
    list_filter = ("is_active", "is_superuser")
    search_fields = ("username",)
    fields = ("username", "email", "is_active", "is_staff", "is_superuser", "last_login", "date_joined")
