"""The admin's view of supply: look at everything, change only what a service can change. Credentials are never shown."""

from typing import Any

from django import forms
from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils import timezone
from unfold.admin import ModelAdmin
from unfold.widgets import UnfoldAdminTextareaWidget, UnfoldAdminTextInputWidget

from fleet.errors import ConvoyError
from fleet.models import Cluster, Event, Grant, Heartbeat, Hold, Node, Token
from fleet.services import access, clusters


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


class JoinForm(forms.ModelForm):  # type: ignore[type-arg]
    """Joining is a service's work: the form only carries its two arguments there and its refusal back."""

    name = forms.CharField(max_length=63, widget=UnfoldAdminTextInputWidget())
    kubeconfig = forms.CharField(widget=UnfoldAdminTextareaWidget(), strip=False, help_text="Encrypted at rest.")

    class Meta:
        model = Cluster
        fields = ()

    by = ""

    def clean(self) -> dict[str, Any]:
        given: dict[str, Any] = super().clean() or {}
        if not self.errors:
            try:
                self.instance = clusters.join(given["name"], given["kubeconfig"], by=self.by, now=timezone.now())
            except ConvoyError as e:
                raise forms.ValidationError(e.message) from e
        return given


@admin.register(Cluster)
class ClusterAdmin(ReadOnly):
    list_display = ("name", "state", "cordoned", "version", "region", "state_reason", "last_heartbeat")
    list_filter = ("state", "cordoned", "region")
    search_fields = ("name",)
    exclude = ("access",)
    actions = ("cordon", "uncordon")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Cluster]:
        return super().get_queryset(request).defer("access")

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return access.may(request.user, "join", "Cluster")

    def get_form(self, request: HttpRequest, obj: Any = None, change: bool = False, **kwargs: Any) -> Any:
        if obj is not None:
            return super().get_form(request, obj, change, **kwargs)
        return type("Join", (JoinForm,), {"by": request.user.get_username()})

    def get_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        return super().get_fields(request, obj) if obj else ("name", "kubeconfig")

    def save_form(self, request: HttpRequest, form: Any, change: bool) -> Any:
        return form.instance

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        """The service has done it."""

    @admin.action(description="Cordon: place nothing more here")
    def cordon(self, request: HttpRequest, chosen: QuerySet[Cluster]) -> None:
        self._cordon(request, chosen, True)

    @admin.action(description="Uncordon: place here again")
    def uncordon(self, request: HttpRequest, chosen: QuerySet[Cluster]) -> None:
        self._cordon(request, chosen, False)

    def _cordon(self, request: HttpRequest, chosen: QuerySet[Cluster], on: bool) -> None:
        for cluster in chosen:
            try:
                access.require(request.user, "cordon", "Cluster")
                clusters.cordon(cluster, on, by=request.user.get_username(), now=timezone.now())
            except ConvoyError as e:
                self.message_user(request, f"{cluster}: {e.message}", messages.ERROR)


@admin.register(Node)
class NodeAdmin(ReadOnly):
    list_display = ("name", "cluster", "ready", "unschedulable")
    list_filter = ("cluster", "ready", "unschedulable")
    list_select_related = ("cluster",)
    search_fields = ("name",)


@admin.register(Hold)
class HoldAdmin(ReadOnly):
    list_display = ("job_uid", "attempt", "cluster", "pods", "made_at", "released_at")
    list_select_related = ("cluster",)


@admin.register(Event)
class EventAdmin(ReadOnly):
    list_display = ("last_at", "type", "reason", "regarding_kind", "regarding_namespace", "regarding_name", "message")
    list_filter = ("type", "regarding_kind")
    search_fields = ("regarding_name", "reason", "message")


@admin.register(Heartbeat)
class HeartbeatAdmin(ReadOnly):
    list_display = ("role", "instance", "at")


@admin.register(Token)
class TokenAdmin(ReadOnly):
    list_display = ("name", "user", "created_at", "expires_at", "revoked_at", "last_used_at")
    list_select_related = ("user",)
    exclude = ("digest",)
    actions = ("revoke",)

    @admin.action(description="Revoke")
    def revoke(self, request: HttpRequest, chosen: QuerySet[Token]) -> None:
        for token in chosen.select_related("user"):
            access.revoke(token.user, token.pk, now=timezone.now())


@admin.register(Grant)
class GrantAdmin(ModelAdmin):  # type: ignore[misc]
    list_display = ("user", "role", "namespace")
    list_filter = ("role",)
    list_select_related = ("user",)
    autocomplete_fields = ("user",)
