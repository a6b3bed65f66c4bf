"""A client of Convoy's REST API: a bearer token, JSON, raw manifests, streamed logs.

This is the only module that opens a connection. It turns every failure of a request into a `Problem`. TLS is always verified.
httpx is imported by the first request, so that ``--help`` and shell completion stay fast.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlsplit

from frontend.cli.config import LOGIN_HINT, Target
from frontend.cli.problems import Exit, Problem, usage

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

    def patch(self, path: str, body: object) -> Any:
        return self._json("PATCH", path, json=body)

    def send(self, path: str, manifests: bytes) -> Any:
        """Posts manifests as they are."""
        return self._json("POST", path, content=manifests, headers={"Content-Type": "application/yaml"})

    def delete(self, path: str, params: Params | None = None) -> Any:
        return self._json("DELETE", path, params=params)

    def list(self, path: str, params: Params | None = None) -> list[Item]:
        """All items of a collection, from all its pages."""
        query = {key: value for key, value in (params or {}).items() if value not in ("", None)}
        items: list[Item] = []
        page = 1
        while True:
            answer = self.get(path, {**query, "page_size": PAGE, **({"page": page} if page > 1 else {})})
            if isinstance(answer, list):
                return answer
            items += answer["results"]
            if len(items) >= answer.get("count", 0) or not answer["results"]:
                return items
            page += 1

    @contextmanager
    def stream(self, path: str, params: Params) -> Iterator[Iterator[bytes]]:
        """The chunks of a response body as they arrive, until the server ends it."""
        import httpx

        with (
            self._problems(path),
            self._client().stream("GET", path, params=params, timeout=_no_read_limit()) as answer,
        ):
            if answer.is_error:
                answer.read()
                raise refusal(answer.status_code, _decoded(answer))
            try:
                yield answer.iter_raw()
            except httpx.RemoteProtocolError as e:
                raise Problem("the connection was lost", hint="run the command again") from e

    def session(self, username: str, password: str, code: str, name: str) -> str:
        """Signs in with a password as a browser does, mints a token, and ends the session. Returns the token."""
        client = self._client()
        with self._problems("session"):
            client.get("session/")
            self._as_browser()
            self.post("session/", {"username": username, "password": password, "code": code})
            self._as_browser()
            token = str(self.post("tokens/", {"name": name})["token"])
            self.delete("session/")
            return token

    def _as_browser(self) -> None:
        client = self._client()
        client.headers.pop("Authorization", None)
        client.headers["X-CSRFToken"] = client.cookies.get("csrftoken") or ""
        client.headers["Referer"] = self.target.url + "/"

    def _json(self, method: str, path: str, **options: Any) -> Any:
        with self._problems(path):
            answer = self._client().request(method, path, **options)
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
    def _problems(self, path: str) -> Iterator[None]:
        """Turns errors of the connection into problems."""
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
    """A path of these parts, each escaped. Names that a path has no room for are refused: `..` would name the level above."""
    if not_names := [part for part in parts if part in ("", ".", "..")]:
        raise usage(f"{not_names[0]!r} is not a name", "give the name of an object")
    return "/".join(quote(part, safe="") for part in parts) + "/"


def refusal(status: int, body: object) -> Problem:
    """The problem details (RFC 9457) of an error response as a `Problem`."""
    problem = body if isinstance(body, dict) else {}
    message = str(problem.get("detail") or problem.get("title") or f"the server answered {status}")
    faults = [fault for fault in problem.get("errors") or [] if isinstance(fault, dict)]
    lines = (f"{fault.get('field', '')}: {fault.get('detail', '')}" for fault in faults)
    details = tuple(line for line in lines if line not in message)
    return Problem(message, hint=_HINTS.get(status, ""), exit_code=_EXITS.get(status, Exit.ERROR), details=details)


def _no_read_limit() -> httpx.Timeout:
    """No time limit between chunks, because a job may not log for a long time."""
    import httpx

    return httpx.Timeout(TIMEOUT_S, read=None)


def _decoded(answer: httpx.Response) -> Any:
    if not answer.content:
        return None
    try:
        return answer.json()
    except ValueError:
        return answer.text[:300]
