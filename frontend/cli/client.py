"""Convoy's REST API as a command calls it: a bearer token, JSON, raw manifests, streamed logs.

The only module that opens a connection; it turns every way a request can fail into a `Problem`. TLS is always verified.
httpx is imported by the first request, so that ``--help`` and shell completion stay quick.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlsplit

from frontend.cli.config import LOGIN_HINT, Target
from frontend.cli.problems import Exit, Problem

if TYPE_CHECKING:
    import httpx

Params = Mapping[str, Any]
Item = dict[str, Any]
TIMEOUT_S = 60.0
PAGE = 200
_EXITS = {404: Exit.NOT_FOUND, 409: Exit.CONFLICT, 412: Exit.CONFLICT, 408: Exit.TIMEOUT, 504: Exit.TIMEOUT}
_HINTS = {
    401: LOGIN_HINT,
    403: "ask a fleet admin for a role that allows it",
    503: "try again in a moment",
}


class Api:
    """One connection pool to one server."""

    def __init__(self, target: Target) -> None:
        if not target.url:
            raise Problem("no server is configured", hint=LOGIN_HINT)
        if urlsplit(target.url).scheme not in ("http", "https") or not urlsplit(target.url).netloc:
            raise Problem(f"{target.url!r} is not an http or https address", exit_code=Exit.USAGE)
        self.target = target
        self._open: httpx.Client | None = None

    def get(self, path: str, params: Params | None = None) -> Any:
        return self._json("GET", path, params=params)

    def post(self, path: str, body: object = None) -> Any:
        return self._json("POST", path, json=body)

    def put(self, path: str, body: object = None) -> Any:
        return self._json("PUT", path, json=body)

    def send(self, path: str, manifests: bytes) -> Any:
        """Manifests just as they were written."""
        return self._json("POST", path, content=manifests, headers={"Content-Type": "application/yaml"})

    def delete(self, path: str, params: Params | None = None) -> Any:
        return self._json("DELETE", path, params=params)

    def list(self, path: str, params: Params | None = None) -> list[Item]:
        """All pages of a collection."""
        wanted = {key: value for key, value in (params or {}).items() if value not in ("", None)}
        found: list[Item] = []
        page = 1
        while True:
            answer = self.get(path, {**wanted, "page_size": PAGE, **({"page": page} if page > 1 else {})})
            if isinstance(answer, list):
                return answer
            found += answer["results"]
            if len(found) >= answer.get("count", 0) or not answer["results"]:
                return found
            page += 1

    @contextmanager
    def stream(self, path: str, params: Params) -> Iterator[Iterator[bytes]]:
        """The body as it comes, for as long as it lasts."""
        import httpx

        with self._told(path), self._client().stream("GET", path, params=params, timeout=_patient()) as answer:
            if answer.is_error:
                answer.read()
                raise refusal(answer.status_code, _decoded(answer))
            try:
                yield answer.iter_raw()
            except httpx.RemoteProtocolError as e:
                raise Problem("the stream broke off", hint="run the command again") from e

    def session(self, username: str, password: str, name: str) -> str:
        """Signs in as a browser does and mints a token; the session is ended again."""
        client = self._client()
        with self._told("session"):
            client.get("session/")
            self._as_browser()
            self.post("session/", {"username": username, "password": password})
            self._as_browser()
            token = str(self.post("tokens/", {"name": name})["token"])
            self.delete("session/")
            return token

    def _as_browser(self) -> None:
        client = self._client()
        client.headers.pop("Authorization", None)
        client.headers["X-CSRFToken"] = client.cookies.get("csrftoken") or ""
        client.headers["Referer"] = self.target.url + "/"

    def _json(self, method: str, path: str, **how: Any) -> Any:
        with self._told(path):
            answer = self._client().request(method, path, **how)
        body = _decoded(answer)
        if answer.is_error:
            raise refusal(answer.status_code, body)
        if body is not None and not isinstance(body, dict | list):
            raise Problem(
                f"{self.target.url} does not answer as Convoy does", hint=f"the address came from {self.target.source}"
            )
        return body

    def _client(self) -> httpx.Client:
        import httpx

        if self._open is None:
            headers = {"Accept": "application/json, application/problem+json", "User-Agent": "convoy-cli"}
            if self.target.token:
                headers["Authorization"] = f"Bearer {self.target.token}"
            root = f"{self.target.url}/api/v1/"
            self._open = httpx.Client(base_url=root, headers=headers, timeout=TIMEOUT_S)
        return self._open

    @contextmanager
    def _told(self, path: str) -> Iterator[None]:
        import httpx

        try:
            yield
        except httpx.TimeoutException as e:
            message = f"{self.target.url} took too long to answer {path}"
            raise Problem(message, hint="try again in a moment", exit_code=Exit.TIMEOUT) from e
        except (httpx.HTTPError, httpx.InvalidURL, UnicodeError) as e:
            hint = f"is it running? the address came from {self.target.source}"
            raise Problem(f"cannot reach {self.target.url}: {e}", hint=hint) from e


def at(*parts: str) -> str:
    """A path of names that may hold anything."""
    return "/".join(quote(part, safe="") for part in parts) + "/"


def refusal(status: int, body: object) -> Problem:
    """What the server's problem details say, as our own."""
    problem = body if isinstance(body, dict) else {}
    message = str(problem.get("detail") or problem.get("title") or f"the server answered {status}")
    faults = problem.get("errors") or []
    details = tuple(f"{each.get('field', '')}: {each.get('detail', '')}" for each in faults if isinstance(each, dict))
    details = tuple(each for each in details if each not in message)
    return Problem(message, hint=_HINTS.get(status, ""), exit_code=_EXITS.get(status, Exit.ERROR), details=details)


def _patient() -> httpx.Timeout:
    """A followed log may be silent for as long as its job is."""
    import httpx

    return httpx.Timeout(TIMEOUT_S, read=None)


def _decoded(answer: httpx.Response) -> Any:
    if not answer.content:
        return None
    try:
        return answer.json()
    except ValueError:
        return answer.text[:300]
