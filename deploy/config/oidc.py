"""Reads how users sign in with accounts of an OpenID Connect provider; refuses what makes no sense before anything starts."""

from collections.abc import Mapping

from django.core.exceptions import ImproperlyConfigured

from deploy.config.keys import stated
from fleet.core.security.oidc import OidcInvalid, OidcSettings, issuer_fault, read_groups

_ISSUER, _CLIENT = "CONVOY_OIDC_ISSUER", "CONVOY_OIDC_CLIENT_ID"
_OPTIONAL = {
    "label": "CONVOY_OIDC_NAME",
    "username_claim": "CONVOY_OIDC_USERNAME_CLAIM",
    "username_prefix": "CONVOY_OIDC_USERNAME_PREFIX",
    "groups_claim": "CONVOY_OIDC_GROUPS_CLAIM",
}
_ALL = (_ISSUER, _CLIENT, "CONVOY_OIDC_CLIENT_SECRET", "CONVOY_OIDC_SCOPES", "CONVOY_OIDC_GROUPS", *_OPTIONAL.values())


def settings(environ: Mapping[str, str]) -> OidcSettings:
    """Those of the environment; raises `ImproperlyConfigured` naming the variable, its value and the remedy."""
    values = {name: stated(environ, name) for name in _ALL}
    issuer = values[_ISSUER]
    if not issuer:
        if set_alone := [name for name, text in values.items() if text]:
            raise ImproperlyConfigured(f"{', '.join(set_alone)}: set {_ISSUER} as well, or unset them")
        return OidcSettings()
    if fault := issuer_fault(issuer):
        raise ImproperlyConfigured(fault)
    if not values[_CLIENT]:
        raise ImproperlyConfigured(f"{_CLIENT} is not set: set the id under which {issuer} knows Convoy")
    try:
        groups = read_groups(values["CONVOY_OIDC_GROUPS"])
    except OidcInvalid as e:
        raise ImproperlyConfigured(str(e)) from e
    scopes = tuple((values["CONVOY_OIDC_SCOPES"] or "openid profile email").replace(",", " ").split())
    if "openid" not in scopes:
        raise ImproperlyConfigured(f"CONVOY_OIDC_SCOPES={' '.join(scopes)!r} is without openid: add it")
    optional = {field: values[name] for field, name in _OPTIONAL.items() if values[name]}
    return OidcSettings(
        issuer=issuer,
        client_id=values[_CLIENT],
        client_secret=values["CONVOY_OIDC_CLIENT_SECRET"],
        scopes=scopes,
        groups=groups,
        **optional,
    )
