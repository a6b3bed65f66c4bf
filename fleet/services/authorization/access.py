"""Who may do what: roles read from grants, bearer tokens and one-time sign-in links.

Every door asks here before it calls another service, so REST, websockets and the admin cannot disagree. Decides about
verbs, kinds and namespaces only; what an object is, and whether its state allows the verb, is its own service's question.
"""

import hashlib
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import datetime, timedelta
from importlib import import_module
from typing import Any

from django.conf import settings
from django.contrib.auth import HASH_SESSION_KEY, SESSION_KEY, get_user_model
from django.contrib.auth.models import AbstractBaseUser, AnonymousUser
from django.db import transaction
from django.db.models import Q, QuerySet
from django.utils.crypto import constant_time_compare

from fleet.changes.audit_context import current
from fleet.core.security import token_scopes
from fleet.core.security.token_scopes import Scope
from fleet.db import prepared
from fleet.db.prepared import KEY, TEXT
from fleet.errors import Forbidden, InvalidInput, NotFound, invalid
from fleet.kube.resources import PODS
from fleet.models import Grant, SigninLink, Token
from fleet.services.auditing import audit
from fleet.services.authorization import token_tree

Someone = AbstractBaseUser | AnonymousUser
Role = Grant.Role

TOKEN_PREFIX = "cvy_"  # noqa: S105  (how tokens are recognised, not one of them)
TOKEN_LENGTH = len(TOKEN_PREFIX) + 43
USE_WRITTEN_EVERY = timedelta(minutes=1)
LINK_LIFE = timedelta(minutes=15)
_LINK_FAULT = "this sign-in link was used, has expired or never was: make another with signin_link"

READ = token_scopes.READ
SCOPE = "_convoy_scope"
"""Attribute of a user who came in by a token that is limited."""
_asking_user: ContextVar[Callable[[], Someone] | None] = ContextVar("asking_user", default=None)
FLEET_WIDE = frozenset(
    {
        "Cluster",
        "Node",
        "NodeMetrics",
        "ClusterPropagationPolicy",
        "ClusterOverridePolicy",
        "ClusterTrainingRuntime",
        "Process",
        "Grant",
        "Audit",
        "Metrics",
        "EncryptionKeys",
        "NamespacePolicy",
    }
)
"""Kinds that live in no namespace. Any role reads them; a fleet admin changes them."""
FOR_ADMINS = frozenset({"Process", "Grant", "Audit", "Metrics", "EncryptionKeys"})
"""Of those, what a fleet admin alone reads: how Convoy itself runs, who may what, and who did what."""
_CLOSED = frozenset({"convoy-system", "arena-system"})
_CLOSED_PREFIX = "kube-"
"""Namespaces of the clusters and of add-ons there: what is written in them acts on all tenants."""
ENTITLEMENT = frozenset({"ElasticQuotaTree", "Queue", "PriorityClass"})
"""Who reads the fleet reads them; a quota admin changes them, and whom `FURTHER` says."""
FURTHER: dict[str, Callable[[Someone, str], bool]] = {}
"""Kind -> whether a user may change some objects of it for another reason than a role; their service knows which."""
GENERAL: dict[str, str] = {PODS.plural: PODS.kind}
"""Kind -> the kind that REST calls it and its like: a token for that one is one for all of them, and for pods in members."""
ACTIONS: dict[str, tuple[str, str]] = {
    "apply": ("apply", "Job"),
    "delete": ("delete", "Job"),
    "suspend": ("suspend", "Job"),
    "resume": ("resume", "Job"),
    "join": ("join", "Cluster"),
    "detach": ("detach", "Cluster"),
    "cordon": ("cordon", "Cluster"),
    "label": ("label", "Cluster"),
    "quota": ("apply", "ElasticQuotaTree"),
    "grant": ("grant", "Grant"),
}
"""What a person can be shown as possible: name -> (verb, kind)."""


@dataclass(frozen=True, slots=True)
class Held:
    """A role, in one namespace or (empty) in all."""

    role: str
    namespace: str


def roles(user: Someone) -> tuple[Held, ...]:
    """The roles of this user; read once per user object, so once a request."""
    if not user.is_authenticated or not user.is_active:
        return ()
    held: tuple[Held, ...] | None = user.__dict__.get("_convoy_roles")
    if held is None:
        held = tuple(Held(role, namespace) for role, namespace in _GRANTS.values(user=user.pk))
        if getattr(user, "is_superuser", False):
            held = (Held(Role.FLEET_ADMIN, ""), *held)
        user.__dict__["_convoy_roles"] = held
    return held


def may(user: Someone, verb: str, kind: str, namespace: str = "") -> bool:
    """Without a namespace, an object that has none, or all namespaces of a kind that has them."""
    by_role = any(
        _allows(held, verb, kind) and held.namespace in ("", namespace) and _reaches(held, verb, kind, namespace)
        for held in _of_use(user, kind)
    )
    return (by_role or _further(user, verb, kind)) and in_scope(user, verb, kind, namespace)


def scope_of(user: Someone) -> Scope:
    """That of the token by which the user came in."""
    scope: Scope = user.__dict__.get(SCOPE, token_scopes.WHOLE)
    return scope


@contextmanager
def asked_by(user: Callable[[], Someone]) -> Iterator[None]:
    """Around a request, for services that ask by name. Called late: a door looks at the credentials when it needs them."""
    token = _asking_user.set(user)
    try:
        yield
    finally:
        _asking_user.reset(token)


def user_named(name: str) -> Any:
    """The user, with the scope of the token by which they ask now; None for a name that no user has."""
    user, asking_user = get_user_model().objects.filter(username=name).first(), _asking_user.get()
    if user is not None and asking_user is not None and (caller := asking_user()).pk == user.pk:
        user.__dict__[SCOPE] = scope_of(caller)
    return user


def in_scope(user: Someone, verb: str, kind: str, namespace: str = "") -> bool:
    """Whether the user's token may be used for it, if they came in by one; their roles are another question."""
    if not in_scope_somewhere(user, verb, kind):
        return False
    return kind in FLEET_WIDE | ENTITLEMENT or scope_of(user).reaches(namespace)


def in_scope_somewhere(user: Someone, verb: str, kind: str) -> bool:
    """A token for some namespaces still reads what is everybody's, and changes none of it, as a role in one does."""
    scope, shared = scope_of(user), kind in FLEET_WIDE | ENTITLEMENT
    if shared and scope.namespaces is not None and (verb != READ or kind in FOR_ADMINS):
        return False
    return scope.allows(verb, (kind, GENERAL.get(kind, kind)))


def may_write(user: Someone) -> bool:
    """Whether there is anything at all this user may change."""
    verbs = scope_of(user).verbs
    if verbs is not None and verbs <= {READ}:
        return False
    by_role = any(held.role != Role.VIEWER for held in roles(user))
    return by_role or any(_further(user, "apply", kind) for kind in FURTHER)


def may_somewhere(user: Someone, verb: str, kind: str) -> bool:
    """Whether there is any namespace for which the answer is yes."""
    is_allowed = any(_allows(held, verb, kind) for held in _of_use(user, kind)) or _further(user, verb, kind)
    return is_allowed and in_scope_somewhere(user, verb, kind)


def is_closed(namespace: str) -> bool:
    """Whether only fleet admins change what is in the namespace: it is of the clusters, or of Convoy in them."""
    return namespace.startswith(_CLOSED_PREFIX) or namespace in _CLOSED


def is_fleet_admin(user: Someone) -> bool:
    """Of the whole fleet; by a token only if it is limited to no kinds and namespaces."""
    scope = scope_of(user)
    return Held(Role.FLEET_ADMIN, "") in roles(user) and scope.kinds is None and scope.namespaces is None


def require(user: Someone, verb: str, kind: str, namespace: str = "") -> None:
    if not may(user, verb, kind, namespace):
        raise refusal(user, verb, kind, namespace)


def refusal(user: Someone, verb: str, kind: str, namespace: str = "") -> Forbidden:
    """Says which role would do, or that the token is not for it."""
    if not in_scope(user, verb, kind, namespace):
        return Forbidden(f"the token of {user.get_username()} is not for {verb} {kind}: its scope is {scope_of(user)}")
    where = f" in namespace {namespace}" if namespace else ""
    whose = "" if kind in FLEET_WIDE | ENTITLEMENT else where
    is_admins = verb != READ and kind not in ENTITLEMENT and is_closed(namespace)
    role = Role.FLEET_ADMIN.value if is_admins else f"{wanted(verb, kind)}{whose}"
    return Forbidden(f"{user.get_username()} may not {verb} {kind}{where}: it takes the role {role}")


def wanted(verb: str, kind: str) -> str:
    """The least role that allows it."""
    if verb == READ and kind not in FOR_ADMINS:
        return Role.VIEWER.value
    if kind in ENTITLEMENT:
        return Role.QUOTA_ADMIN.value
    return Role.FLEET_ADMIN.value if kind in FLEET_WIDE else Role.EDITOR.value


def visible_namespaces(user: Someone, kind: str = "") -> frozenset[str] | None:
    """The namespaces this user may read; None for all of them. With a kind, those in which they may read objects of it."""
    held, scope = {each.namespace for each in roles(user)}, scope_of(user)
    if scope.verbs is not None and READ not in scope.verbs:
        return frozenset()
    if kind and not in_scope_somewhere(user, READ, kind):
        return frozenset()
    if "" in held:
        return scope.namespaces
    return frozenset(held) if scope.namespaces is None else frozenset(held) & scope.namespaces


def sees(user: Someone) -> Callable[[str], bool]:
    """Whether the user may know of jobs of a namespace, asked once for many: a token that is for nodes alone may not."""
    allowed = visible_namespaces(user, "Job")
    return lambda namespace: allowed is None or namespace in allowed


def sees_named(name: str) -> Callable[[str], bool]:
    """The same of the user of that name; a name that no user has is the product itself."""
    user = user_named(name)
    return (lambda namespace: True) if user is None else sees(user)


def can(user: Someone) -> dict[str, bool]:
    return {name: may_somewhere(user, verb, kind) for name, (verb, kind) in ACTIONS.items()}


def mint(
    user: AbstractBaseUser,
    name: str,
    *,
    life: timedelta | None,
    now: datetime,
    scope: Scope | None = None,
    by: Any = None,
    minted_by: Any = None,
    or_shorter: bool = False,
) -> tuple[Token, str]:
    """A new token and its text, which is kept nowhere and cannot be had again.

    ``by`` is the token that the caller came in with, if any: what it mints ends with it, and may do no more. ``minted_by`` is
    the calling user. Without a life the token lasts as long as it may; with ``or_shorter`` a life is the most, and otherwise
    one that is too long is refused.
    """
    most = timedelta(seconds=settings.CONVOY_ACCESS.token_max_s)
    if not name or len(name) > 63:
        raise invalid("name", "must have 1 to 63 characters")
    if life is not None and not timedelta(0) < life <= most:
        raise invalid("expires_in_s", f"must be between 1 and {int(most.total_seconds())} (CONVOY_TOKEN_MAX_S)")
    expires_at = now + (most if life is None else life)
    if isinstance(by, Token):
        scope, expires_at = _bounded(by, scope, expires_at, exactly=life is not None and not or_shorter)
    limits = (scope or token_scopes.WHOLE).as_json()
    text = TOKEN_PREFIX + secrets.token_urlsafe(32)
    about: dict[str, Any] = {
        "name": name,
        "digest": digest(text),
        "created_at": now,
        "expires_at": expires_at,
        "scope": limits,
    }
    with transaction.atomic():
        if minted_by is not None:
            token_tree.lock_minter(minted_by)
        if isinstance(by, Token):
            token_tree.lock_parent(by)
            about["parent_id"] = by.pk
        row = Token.objects.create(user_id=user.pk, minted_by=minted_by, **about)
        _note("mint", "Token", f"{user.get_username()}: {name}{f' ({scope})' if limits else ''}"[:253])
    return row, text


def _bounded(by: Token, scope: Scope | None, expires_at: datetime, *, exactly: bool) -> tuple[Scope, datetime]:
    """No wider and no longer than the token that mints it."""
    own = token_scopes.from_json(by.scope)
    scope = own if scope is None else scope
    if not scope.is_within(own):
        raise Forbidden(f"a token mints none that may do more than it: the scope of the one in use is {own}")
    if expires_at <= by.ends_at:
        return scope, expires_at
    if exactly:
        raise Forbidden(
            f"a token mints none that lasts longer: the one in use ends {by.ends_at:%Y-%m-%d %H:%M} UTC; ask for a shorter one,"
            " or sign in with a password"
        )
    return scope, by.ends_at


def verify(text: str, *, now: datetime) -> Token:
    """The live token with this text; `Forbidden` for every other, without saying more than its owner may know."""
    row = _token(text)
    if row is None or not row.user.is_active:
        raise Forbidden("the token is not known")
    if row.revoked_at is not None:
        raise Forbidden("the token was revoked")
    if row.ends_at <= now:
        raise Forbidden("the token has expired")
    if row.last_used_at is None or row.last_used_at < now - USE_WRITTEN_EVERY:
        stale = Q(last_used_at__isnull=True) | Q(last_used_at__lt=now - USE_WRITTEN_EVERY)
        Token.objects.filter(stale, pk=row.pk).update(last_used_at=now)
    if row.scope is not None:
        row.user.__dict__[SCOPE] = token_scopes.from_json(row.scope)
    return row


def revoke(user: AbstractBaseUser, token_id: int, *, now: datetime, by: Any = None) -> None:
    """One's own token, with all that it minted; a second time changes nothing. ``by`` is the caller's own token, if any."""
    mine = Token.objects.filter(pk=token_id, user_id=user.pk)
    with transaction.atomic():
        if isinstance(by, Token) and (row := mine.first()) is not None:
            own = token_scopes.from_json(by.scope)
            if not token_scopes.from_json(row.scope).is_within(own):
                raise Forbidden(f"a token revokes none that may do more than it: the scope of the one in use is {own}")
        if not mine.exists():
            raise NotFound(f"you have no token {token_id}")
        if count := token_tree.revoke(token_id, now=now):
            _note("revoke", "Token", token_tree.audit_name(user.get_username(), token_id, count))


def make_signin_link(user: AbstractBaseUser, *, now: datetime) -> str:
    """The path that signs this user in once within a quarter of an hour."""
    text = secrets.token_urlsafe(32)
    with transaction.atomic():
        SigninLink.objects.create(user_id=user.pk, digest=digest(text), expires_at=now + LINK_LIFE)
        _note("mint", "SigninLink", user.get_username())
    return f"/signin/{text}/"


def find_signin_link_user(text: str, *, now: datetime) -> Any:
    """The user whom the link would sign in; it is not used up."""
    row = _good_links(text, now).select_related("user").first()
    if row is None or not row.user.is_active:
        raise InvalidInput(_LINK_FAULT)
    return row.user


def use_signin_link(text: str, *, now: datetime) -> None:
    """Use it up, for exactly one caller."""
    if _good_links(text, now).update(used_at=now) != 1:
        raise InvalidInput(_LINK_FAULT)


def _good_links(text: str, now: datetime) -> QuerySet[SigninLink]:
    return SigninLink.objects.filter(digest=digest(text), used_at__isnull=True, expires_at__gt=now)


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def session_user(key: str) -> Any:
    """The user of a browser's session as it is now; None once it ended, its password changed or the user was stopped."""
    session = import_module(settings.SESSION_ENGINE).SessionStore(key)
    user = get_user_model().objects.filter(pk=session.get(SESSION_KEY), is_active=True).first()
    if user is None or not constant_time_compare(session.get(HASH_SESSION_KEY, ""), user.get_session_auth_hash()):
        return None
    return user


def _note(verb: str, kind: str, name: str) -> None:
    """In the audit, in the transaction of the act: these are not journaled, because they have no watches."""
    if (asking := current.get()) is not None:
        audit.done(asking, verb=verb, kind=kind, name=name)


def _token(text: str) -> Token | None:
    if len(text) != TOKEN_LENGTH or not text.startswith(TOKEN_PREFIX):
        return None
    return next(iter(_TOKEN.objects(digest=digest(text))), None)


# Every request of a token asks both.
_TOKEN = prepared.Rows(
    lambda param: Token.objects.filter(digest=param("digest", TEXT)).select_related("user").order_by("pk")[:1]
)
_GRANTS: prepared.Rows[Grant] = prepared.Rows(
    lambda param: (
        Grant.objects.filter(user_id=param("user", KEY)).order_by("role", "namespace").values_list("role", "namespace")
    )
)


def _of_use(user: Someone, kind: str) -> tuple[Held, ...]:
    """A role in one namespace still reads what is everybody's, and changes none of it."""
    held = roles(user)
    if kind not in FLEET_WIDE | ENTITLEMENT:
        return held
    return tuple(Held(Role.VIEWER if each.namespace else each.role, "") for each in held)


def _reaches(held: Held, verb: str, kind: str, namespace: str) -> bool:
    """Quota trees and queues are shown in a closed namespace, and are no objects of it."""
    return verb == READ or held.role == Role.FLEET_ADMIN or kind in ENTITLEMENT or not is_closed(namespace)


def _further(user: Someone, verb: str, kind: str) -> bool:
    return verb != READ and kind in FURTHER and FURTHER[kind](user, verb)


def _allows(held: Held, verb: str, kind: str) -> bool:
    if held.role == Role.FLEET_ADMIN:
        return True
    if kind in FOR_ADMINS:
        return False
    if verb == READ:
        return True
    if kind in ENTITLEMENT:
        return held.role == Role.QUOTA_ADMIN
    return held.role == Role.EDITOR and kind not in FLEET_WIDE
