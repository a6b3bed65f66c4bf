"""The only door to the company's OpenID Connect provider: discovery, where a browser is sent, what a code is exchanged for.

Knows no users and no roles. Protocol and signatures are Authlib's and joserfc's work; here is what is asked for and what is
accepted: PKCE by S256, a nonce, asymmetric signatures of the provider's published keys, this issuer, this client.
"""

import json
import secrets
import ssl
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from functools import cache
from typing import Any
from urllib.parse import urlencode, urlsplit

import httpx
from authlib.oauth2.auth import ClientAuth
from authlib.oauth2.rfc6749.parameters import prepare_grant_uri
from authlib.oauth2.rfc7636 import create_s256_code_challenge
from authlib.oidc.core import CodeIDToken
from joserfc import jwt
from joserfc.errors import JoseError
from joserfc.jwk import JWKRegistry, Key, KeySet

from fleet.core.security.oidc import LONGEST, Account, OidcSettings, issuer_fault
from fleet.errors import Forbidden, Unavailable
from fleet.member import addresses

_ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
"""Signed with a key that the provider alone has: neither `none`, nor those that share the client's secret."""
_CACHED_S = 600.0
_TIMEOUT_S = 10.0
_LEEWAY_S = 60
"""By which the clocks of the provider and of this machine may differ."""
_LARGEST = 512 * 1024
_ENDPOINTS = ("authorization_endpoint", "token_endpoint", "jwks_uri")

Document = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Attempt:
    """What a sign-in that is under way must come back with. The browser keeps it, encrypted."""

    state: str
    nonce: str
    verifier: str
    redirect_uri: str
    next: str

    def as_json(self) -> dict[str, str]:
        return asdict(self)


class Provider:
    """As the settings name it. Thread-safe: documents are replaced whole."""

    def __init__(self, config: OidcSettings, *, private_ok: bool, clock: Callable[[], float] = time.monotonic) -> None:
        """``private_ok``: whether it may have a loopback or private address."""
        self._config, self._private_ok, self._clock = config, private_ok, clock
        self._cache: dict[str, tuple[float, Document]] = {}

    def begin(self, redirect_uri: str, following: str) -> tuple[Attempt, str]:
        """A new attempt, and the address that the browser is sent to."""
        state, nonce, verifier = (secrets.token_urlsafe(32) for _ in range(3))
        attempt = Attempt(state, nonce, verifier, redirect_uri, following)
        url = prepare_grant_uri(
            str(self._metadata()["authorization_endpoint"]),
            client_id=self._config.client_id,
            response_type="code",
            redirect_uri=redirect_uri,
            scope=" ".join(self._config.scopes),
            state=attempt.state,
            nonce=attempt.nonce,
            code_challenge=create_s256_code_challenge(attempt.verifier),
            code_challenge_method="S256",
        )
        return attempt, str(url)

    def account(self, attempt: Attempt, code: str, now: datetime) -> Account:
        """Who the code was made for. Raises `Forbidden` for an answer that is not believed, `Unavailable` for none."""
        metadata = self._metadata()
        tokens = self._exchange(metadata, attempt, code)
        claims = self._claims(metadata, tokens, attempt, now)
        missing = {self._config.username_claim, self._config.groups_claim} - claims.keys()
        if missing and metadata.get("userinfo_endpoint"):
            claims = {**self._user_info(metadata, tokens, str(claims["sub"])), **claims}
        return self._account(claims)

    def _exchange(self, metadata: Document, attempt: Attempt, code: str) -> Document:
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": attempt.redirect_uri,
            "code_verifier": attempt.verifier,
        }
        headers = {"Accept": "application/json", "Content-Type": "application/x-www-form-urlencoded"}
        config = self._config
        auth = ClientAuth(config.client_id, config.client_secret, self._client_auth(metadata))
        url, headers, body = auth.prepare("POST", str(metadata["token_endpoint"]), headers, urlencode(form))
        status, answer = self._send("POST", url, headers, body.encode())
        if 400 <= status < 500:
            raise Forbidden(f"{config.name} refused the code: {str(answer.get('error') or status)[:100]}")
        if status != 200:
            raise self._away(f"it answered {status}")
        return answer

    def _claims(self, metadata: Document, tokens: Document, attempt: Attempt, now: datetime) -> dict[str, Any]:
        """Of the ID token, verified."""
        text, config = str(tokens.get("id_token") or ""), self._config
        try:
            token = self._decode(text, str(metadata["jwks_uri"]))
            claims = CodeIDToken(
                token.claims,
                token.header,
                options={
                    "iss": {"essential": True, "value": config.issuer},
                    "aud": {"essential": True, "value": config.client_id},
                    "sub": {"essential": True},
                    "nonce": {"essential": True, "value": attempt.nonce},
                },
                params={
                    "client_id": config.client_id,
                    "nonce": attempt.nonce,
                    "access_token": tokens.get("access_token"),
                },
            )
            claims.validate(now=int(now.timestamp()), leeway=_LEEWAY_S)
        except (JoseError, ValueError, TypeError) as e:
            raise Forbidden(f"the ID token of {config.name} is not accepted: {e}") from e
        return dict(claims)

    def _decode(self, text: str, jwks_uri: str) -> jwt.Token:
        """With keys as they were read a while ago, or else as they are now: providers change them."""
        keys = self._keys(jwks_uri)
        try:
            return jwt.decode(text, keys, algorithms=_ALGORITHMS)
        except (JoseError, ValueError):
            if not self._forget(jwks_uri, older_than_s=30.0):
                raise
        return jwt.decode(text, self._keys(jwks_uri), algorithms=_ALGORITHMS)

    def _keys(self, jwks_uri: str) -> KeySet:
        """Raises `ValueError` or `JoseError` for what are no keys."""
        entries = self._document(jwks_uri).get("keys")
        if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
            raise ValueError(f"{jwks_uri} has no list of keys")
        return KeySet([key for entry in entries if (key := _key(entry)) is not None])

    def _user_info(self, metadata: Document, tokens: Document, subject: str) -> Document:
        """Claims that the provider keeps out of the ID token; those of another subject are refused."""
        headers = {"Authorization": f"Bearer {tokens.get('access_token', '')}"}
        info = self._read(self._checked("userinfo_endpoint", metadata), headers)
        if info.get("sub") != subject:
            raise Forbidden(f"{self._config.name} described another user than the one who signed in")
        return info

    def _account(self, claims: Document) -> Account:
        config = self._config
        username, groups = claims.get(config.username_claim), claims.get(config.groups_claim, [])
        if not isinstance(username, str) or not username:
            raise Forbidden(
                f"{config.name} sent no claim {config.username_claim}: CONVOY_OIDC_USERNAME_CLAIM names another"
            )
        groups = [groups] if isinstance(groups, str) else groups
        if not isinstance(groups, list):
            raise Forbidden(f"{config.name} sent groups that are no list: CONVOY_OIDC_GROUPS_CLAIM names another claim")
        subject = str(claims["sub"])
        if not (username.isprintable() and subject.isprintable() and len(subject) <= LONGEST):
            raise Forbidden(f"{config.name} sent a name or a subject that no account has")
        named = frozenset(group for group in groups if isinstance(group, str))
        return Account(config.issuer, subject, username, named)

    def _metadata(self) -> Document:
        """The discovery document; refused unless it is of the issuer that the settings name."""
        metadata = self._document(self._config.issuer.rstrip("/") + "/.well-known/openid-configuration")
        if metadata.get("issuer") != self._config.issuer:
            called = metadata.get("issuer")
            raise Unavailable(f"the provider calls itself {called!r}: set CONVOY_OIDC_ISSUER to that, if it is meant")
        for name in _ENDPOINTS:
            self._checked(name, metadata)
        return metadata

    def _checked(self, name: str, metadata: Document) -> str:
        if fault := issuer_fault(str(metadata.get(name) or ""), name):
            raise Unavailable(f"the discovery document of {self._config.issuer} cannot be used: {fault}")
        return str(metadata[name])

    def _document(self, url: str) -> Document:
        known = self._cache.get(url)
        if known is None or known[0] + _CACHED_S < self._clock():
            known = self._cache[url] = self._clock(), self._read(url)
        return known[1]

    def _forget(self, url: str, *, older_than_s: float) -> bool:
        """Whether the document was old enough for another look: made-up tokens must not cause a request each."""
        known = self._cache.get(url)
        if known is None or known[0] + older_than_s > self._clock():
            return False
        del self._cache[url]
        return True

    def _read(self, url: str, headers: Mapping[str, str] | None = None) -> Document:
        status, answer = self._send("GET", url, headers or {})
        if status != 200:
            raise self._away(f"{url} answered {status}")
        return answer

    def _send(self, method: str, url: str, headers: Mapping[str, str], body: bytes = b"") -> tuple[int, Document]:
        """Follows no redirect, uses no proxy of the environment, and checks the peer: its name before it sends
        anything, and its address before the answer is believed."""
        hooks: Any = {"request": [self._check_name], "response": [self._check_peer]}
        try:
            with (
                httpx.Client(timeout=_TIMEOUT_S, trust_env=False, event_hooks=hooks, verify=_trust()) as client,
                client.stream(method, url, headers=dict(headers), content=body) as response,
            ):
                status, answer = response.status_code, json.loads(_body(response))
        except (httpx.HTTPError, httpx.InvalidURL, ValueError, RecursionError) as e:
            raise self._away(str(e) or type(e).__name__) from e
        if not isinstance(answer, dict):
            raise self._away(f"{url} did not answer with an object")
        return status, answer

    def _client_auth(self, metadata: Document) -> str:
        if not self._config.client_secret:
            return "none"
        methods = metadata.get("token_endpoint_auth_methods_supported") or ["client_secret_basic"]
        if not isinstance(methods, list):
            raise self._away("token_endpoint_auth_methods_supported of its discovery document is no list")
        return "client_secret_basic" if "client_secret_basic" in methods else "client_secret_post"

    def _check_name(self, request: httpx.Request) -> None:
        if refusal := addresses.server_refusal(str(request.url), private_ok=self._may_be_private()):
            raise httpx.ConnectError(refusal)

    def _check_peer(self, response: httpx.Response) -> None:
        peer = response.extensions["network_stream"].get_extra_info("server_addr")
        if refusal := addresses.refusal(str(peer[0]), private_ok=self._may_be_private()):
            raise httpx.ConnectError(refusal)

    def _may_be_private(self) -> bool:
        """A provider that the operator placed on this machine is meant."""
        return self._private_ok or urlsplit(self._config.issuer).scheme == "http"

    def _away(self, cause: str) -> Unavailable:
        return Unavailable(f"{self._config.name} cannot be asked: {cause}")


@cache
def _trust() -> ssl.SSLContext:
    """The authorities of the web, loaded once: it takes 20 ms, and a sign-in asks three times."""
    return httpx.create_ssl_context(trust_env=False)


def _key(entry: Document) -> Key | None:
    """Nothing for a key of another use, type or curve than is known here: sign-ins go on with the others (RFC 7517, 5)."""
    if entry.get("use", "sig") != "sig" or entry.get("kty") not in ("RSA", "EC", "OKP"):
        return None
    try:
        return JWKRegistry.import_key(dict(entry))
    except (JoseError, ValueError, TypeError, KeyError):
        return None


def _body(answer: httpx.Response) -> bytes:
    body = b""
    for chunk in answer.iter_bytes():
        body += chunk
        if len(body) > _LARGEST:
            raise ValueError("the answer is too large")
    return body
