"""A real OpenID Connect provider as a process of its own: Django OAuth Toolkit, which signs with RSA and insists on PKCE.

Whoever the cookie `account` describes (base64 of JSON claims) is signed in there already. The claim `fault` makes the provider
misbehave as a broken or hostile one would: see `_FAULTS`.
"""

import base64
import json
import os
import ssl
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx

CLIENT, SECRET = "convoy", "the client's secret"
NO_TLS = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
"""Trusts nobody, whom nobody asks: to load all authorities of the world takes 20 ms, for each request anew."""
REDIRECTS = "http://testserver/oidc/callback/ http://127.0.0.1/oidc/callback/ http://localhost/oidc/callback/"


@dataclass(frozen=True)
class Running:
    issuer: str

    def authorize(self, url: str, **claims: Any) -> dict[str, str]:
        """What the browser of this account brings back from where Convoy sent it: the query of the redirect."""
        answer = httpx.get(url, cookies={"account": cookie(claims)}, trust_env=False, verify=NO_TLS)
        assert answer.status_code == 302, answer.text
        query = parse_qs(urlsplit(answer.headers["Location"]).query)
        return {name: values[0] for name, values in query.items()}


def cookie(claims: dict[str, Any]) -> str:
    return base64.urlsafe_b64encode(json.dumps(claims).encode()).decode()


@contextmanager
def started(home: Path) -> Iterator[Running]:
    command = [sys.executable, "-m", "tests.support.oidc_provider", str(home)]
    environ = {name: text for name, text in os.environ.items() if name != "DJANGO_SETTINGS_MODULE"}
    process = subprocess.Popen(command, env={**environ, "OAUTHLIB_INSECURE_TRANSPORT": "1"})
    try:
        ready = home / "issuer"
        deadline = time.monotonic() + 60
        while not ready.exists():
            assert process.poll() is None and time.monotonic() < deadline, "the provider did not start"
            time.sleep(0.05)
        yield Running(ready.read_text())
    finally:
        process.terminate()
        process.wait(60)


def _serve(home: Path) -> None:
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import rsa
    from django.conf import settings

    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    plain = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    settings.configure(
        SECRET_KEY="of the provider",
        # The secret of the client is kept as a password is, and compared at each sign-in.
        PASSWORD_HASHERS=["django.contrib.auth.hashers.MD5PasswordHasher"],
        ALLOWED_HOSTS=["*"],
        ROOT_URLCONF=__name__,
        USE_TZ=True,
        DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": str(home / "provider.sqlite3")}},
        INSTALLED_APPS=[
            "django.contrib.auth",
            "django.contrib.contenttypes",
            "django.contrib.sessions",
            "oauth2_provider",
        ],
        MIDDLEWARE=["django.contrib.sessions.middleware.SessionMiddleware", f"{__name__}.signed_in_by_cookie"],
        TEMPLATES=[{"BACKEND": "django.template.backends.django.DjangoTemplates", "APP_DIRS": True}],
        OAUTH2_PROVIDER={
            "OIDC_ENABLED": True,
            "OIDC_RSA_PRIVATE_KEY": key.private_bytes(serialization.Encoding.PEM, *plain).decode(),
            "PKCE_REQUIRED": True,
            "SCOPES": {"openid": "", "profile": "", "email": ""},
            "OAUTH2_VALIDATOR_CLASS": _validator,
        },
        DEFAULT_AUTO_FIELD="django.db.models.BigAutoField",
    )
    import django
    from django.core.management import call_command
    from django.core.servers.basehttp import ThreadedWSGIServer, WSGIRequestHandler
    from django.core.wsgi import get_wsgi_application

    django.setup()
    call_command("migrate", verbosity=0)
    from oauth2_provider.models import Application

    for client, kind, secret in ((CLIENT, "confidential", SECRET), ("public", "public", "")):
        Application.objects.create(
            client_id=client, client_secret=secret, client_type=kind, redirect_uris=REDIRECTS, algorithm="RS256",
            authorization_grant_type="authorization-code", skip_authorization=True,
        )  # fmt: skip
    server = ThreadedWSGIServer(("127.0.0.1", 0), WSGIRequestHandler)
    server.set_app(get_wsgi_application())
    (home / "starting").write_text(f"http://127.0.0.1:{server.server_port}/o")
    (home / "starting").rename(home / "issuer")
    server.serve_forever()


def _urls() -> list[Any]:
    from django.urls import include, path

    return [path("o/", include("oauth2_provider.urls"))]


def signed_in_by_cookie(get_response: Callable[[Any], Any]) -> Callable[[Any], Any]:
    from django.contrib.auth.models import AnonymousUser, User

    def middleware(request: Any) -> Any:
        request.user = AnonymousUser()
        if text := request.COOKIES.get("account"):
            claims = json.loads(base64.urlsafe_b64decode(text))
            request.user, _ = User.objects.get_or_create(username=claims["sub"])
            _CLAIMS[request.user.pk] = claims
        return get_response(request)

    return middleware


_CLAIMS: dict[int, dict[str, Any]] = {}


def _claims(claims: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in claims.items() if name not in ("fault", "elsewhere")}


def _sign(claims: dict[str, Any], key: Any, algorithm: str = "RS256", **header: str) -> str:
    from jwcrypto import jwt

    token = jwt.JWT(header={"alg": algorithm, "typ": "JWT", **header}, claims=claims, algs=[algorithm])
    token.make_signed_token(key)
    return str(token.serialize())


def _unsigned(claims: dict[str, Any], _: Any) -> str:
    parts = [
        base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") for part in ({"alg": "none"}, claims)
    ]
    return f"{'.'.join(parts)}."


def _by_secret(claims: dict[str, Any], _: Any) -> str:
    from jwcrypto import jwk

    secret = jwk.JWK(kty="oct", k=base64.urlsafe_b64encode(SECRET.encode() * 2).decode().rstrip("="))
    return _sign(claims, secret, "HS256")


def _by_another_key(claims: dict[str, Any], key: Any) -> str:
    from jwcrypto import jwk

    return _sign(claims, jwk.JWK.generate(kty="RSA", size=2048), kid=key.thumbprint())


def _with(**changes: Any) -> Callable[[dict[str, Any], Any], str]:
    def change(claims: dict[str, Any], key: Any) -> str:
        changed = {name: value for name, value in (claims | changes).items() if value is not None}
        return _sign(changed, key, kid=key.thumbprint())

    return change


_FAULTS: dict[str, Callable[[dict[str, Any], Any], str]] = {
    "wrong issuer": _with(iss="https://another.example"),
    "wrong audience": _with(aud="another-client"),
    "audience beside another, for another": _with(aud=["convoy", "another-client"], azp="another-client"),
    "expired": _with(exp=1_700_000_000, iat=1_699_999_000),
    "no expiry": _with(exp=None),
    "no nonce": _with(nonce=None),
    "another nonce": _with(nonce="of another attempt"),
    "another subject": lambda claims, key: _with(sub=claims["subject"])(claims, key),
    "another claim": lambda claims, key: _with(**{claims["claim"]: claims["value"]})(claims, key),
    "no subject": _with(sub=None),
    "unsigned": _unsigned,
    "signed with the client's secret": _by_secret,
    "signed with another key": _by_another_key,
}
FAULTS = tuple(fault for fault in _FAULTS if fault not in ("another subject", "another claim"))


def _make_validator() -> Any:
    from jwcrypto.jws import JWS
    from oauth2_provider.oauth2_validators import OAuth2Validator

    class Validator(OAuth2Validator):  # type: ignore[misc]  # it has no types
        oidc_claim_scope = None

        def get_additional_claims(self, request: Any) -> dict[str, Any]:
            return _claims(_CLAIMS[request.user.pk])

        def finalize_id_token(self, id_token: Any, token: Any, token_handler: Any, request: Any) -> str:
            text = str(super().finalize_id_token(id_token, token, token_handler, request))
            claims, known = JWS(), _CLAIMS[request.user.pk]
            claims.deserialize(text)
            payload = json.loads(claims.objects["payload"])
            if elsewhere := known.get("elsewhere"):
                kept = {name: value for name, value in payload.items() if name not in elsewhere}
                return _sign(kept, request.client.jwk_key, kid=request.client.jwk_key.thumbprint())
            if fault := known.get("fault"):
                return _FAULTS[fault](payload, request.client.jwk_key)
            return text

    return Validator


def __getattr__(name: str) -> Any:
    """What can be made only once Django is set up."""
    made = {"urlpatterns": _urls, "Validator": _make_validator}
    if name not in made:
        raise AttributeError(name)
    globals()[name] = made[name]()
    return globals()[name]


_validator = "tests.support.oidc_provider.Validator"

if __name__ == "__main__":
    # Under its own name: settings refer to it.
    from tests.support import oidc_provider

    oidc_provider._serve(Path(sys.argv[1]))
