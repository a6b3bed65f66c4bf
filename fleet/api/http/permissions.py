"""Roles at the REST door: a view names its kind and the verb of each of its actions.

`fleet.services.authorization.access` answers whether the caller may.
An action that changes something and names no verb still takes a writer's role, so nothing is open by omission.
"""

from typing import Any

from rest_framework.permissions import BasePermission
from rest_framework.request import Request

from fleet.services.auditing import audit
from fleet.services.authorization import access

UNSAFE_WITHOUT_VERB = "change"


class ByRole(BasePermission):
    """First whether the caller may do it anywhere at all, then whether in the namespace of this object."""

    def has_permission(self, request: Request, view: Any) -> bool:
        if not request.user.is_authenticated:
            return False
        verb = _verb(request, view)
        if not access.may_somewhere(request.user, verb, view.kind):
            raise access.refusal(request.user, verb, view.kind)
        return True

    def has_object_permission(self, request: Request, view: Any, obj: Any) -> bool:
        access.require(request.user, _verb(request, view), *view.subject(obj))
        audit.remember_row(obj)
        return True


class SignedIn(BasePermission):
    """For what everybody may do to what is their own."""

    def has_permission(self, request: Request, view: Any) -> bool:
        return bool(request.user.is_authenticated)


class OfOneself(SignedIn):
    """It takes no role; but a token that is limited must be for it."""

    def has_permission(self, request: Request, view: Any) -> bool:
        if not super().has_permission(request, view):
            return False
        verb = _verb(request, view)
        if not access.in_scope_somewhere(request.user, verb, view.kind):
            raise access.refusal(request.user, verb, view.kind)
        return True


class Guarded:
    """What `ByRole` asks of a view."""

    kind: str
    verbs: dict[str, str] = {}
    """Action -> verb, for actions that change something."""

    def subject(self, obj: Any) -> tuple[str, str]:
        """Kind and namespace of an object, as roles are granted for it."""
        return self.kind, getattr(obj, "namespace", "")


def _verb(request: Request, view: Any) -> str:
    verb = view.verbs.get(getattr(view, "action", None))
    if verb:
        return str(verb)
    return access.READ if request.method in ("GET", "HEAD", "OPTIONS") else UNSAFE_WITHOUT_VERB
