"""Runs flows over HTTP, blocking or not. The only module that opens connections; TLS is always verified."""

import asyncio
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from typing import Any, TypeVar
from urllib.parse import urlsplit

import httpx

from convoy import errors
from convoy.errors import ConvoyError, Unreachable
from convoy.flows import Call, Flow, Pause
from frontend.cli import config
from frontend.cli.problems import Problem

T = TypeVar("T")
_TIMEOUT_S = 60.0
_STREAM = httpx.Timeout(_TIMEOUT_S, read=None)
"""A job may print nothing for hours."""


def options(url: str, token: str) -> dict[str, Any]:
    """Of the HTTP client: by the arguments, else by the environment, else by the files that `convoy login` and `up` write."""
    try:
        target = config.resolve(url, token)
    except Problem as e:
        raise ConvoyError(f"{e}") from e
    if urlsplit(target.url).scheme not in ("http", "https"):
        remedy = "give Fleet(url=..., token=...), set CONVOY_URL and CONVOY_TOKEN, or `convoy login`"
        raise Unreachable(f"no server is known: {remedy}")
    headers = {"Accept": "application/json, application/problem+json", "User-Agent": "convoy-python"}
    if target.token:
        headers["Authorization"] = f"Bearer {target.token}"
    return {"base_url": f"{target.url}/api/v1/", "headers": headers, "timeout": _TIMEOUT_S}


class Blocking:
    def __init__(self, url: str, token: str) -> None:
        self.client = httpx.Client(**options(url, token))

    def run(self, flow: Flow[T]) -> T:
        began = time.monotonic()
        try:
            step = flow.send(None)
            while True:
                if isinstance(step, Pause):
                    time.sleep(step.seconds)
                    step = flow.send(time.monotonic() - began)
                    continue
                try:
                    answer = _decoded(self._send(step))
                except ConvoyError as e:
                    step = flow.throw(e)
                else:
                    step = flow.send(answer)
        except StopIteration as e:
            result: T = e.value
            return result

    def _send(self, call: Call) -> httpx.Response:
        try:
            return self.client.request(call.method, call.path, **_parts(call))
        except httpx.HTTPError as e:
            raise _unreachable(self.client.base_url, e) from e

    def lines(self, path: str, params: Mapping[str, str]) -> Iterator[str]:
        try:
            with self.client.stream("GET", path, params=params, timeout=_STREAM) as answer:
                if answer.is_error:
                    answer.read()
                    raise errors.of_answer(answer.status_code, _body(answer))
                yield from answer.iter_lines()
        except httpx.HTTPError as e:
            raise _unreachable(self.client.base_url, e) from e

    def close(self) -> None:
        self.client.close()


class NonBlocking:
    def __init__(self, url: str, token: str) -> None:
        self.client = httpx.AsyncClient(**options(url, token))

    async def run(self, flow: Flow[T]) -> T:
        began = time.monotonic()
        try:
            step = flow.send(None)
            while True:
                if isinstance(step, Pause):
                    await asyncio.sleep(step.seconds)
                    step = flow.send(time.monotonic() - began)
                    continue
                try:
                    answer = _decoded(await self._send(step))
                except ConvoyError as e:
                    step = flow.throw(e)
                else:
                    step = flow.send(answer)
        except StopIteration as e:
            result: T = e.value
            return result

    async def _send(self, call: Call) -> httpx.Response:
        try:
            return await self.client.request(call.method, call.path, **_parts(call))
        except httpx.HTTPError as e:
            raise _unreachable(self.client.base_url, e) from e

    async def lines(self, path: str, params: Mapping[str, str]) -> AsyncIterator[str]:
        try:
            async with self.client.stream("GET", path, params=params, timeout=_STREAM) as answer:
                if answer.is_error:
                    await answer.aread()
                    raise errors.of_answer(answer.status_code, _body(answer))
                async for line in answer.aiter_lines():
                    yield line
        except httpx.HTTPError as e:
            raise _unreachable(self.client.base_url, e) from e

    async def close(self) -> None:
        await self.client.aclose()


def _parts(call: Call) -> dict[str, Any]:
    parts: dict[str, Any] = {"params": dict(call.params or {})}
    if call.content is not None:
        return parts | {"content": call.content, "headers": {"Content-Type": "application/yaml"}}
    return parts if call.body is None else parts | {"json": call.body}


def _decoded(answer: httpx.Response) -> Any:
    body = _body(answer)
    if answer.is_error:
        raise errors.of_answer(answer.status_code, body)
    if not isinstance(body, dict | list):
        raise Unreachable(f"{answer.url} does not answer as Convoy does: is it the address of a fleet?")
    return body


def _body(answer: httpx.Response) -> Any:
    try:
        return answer.json()
    except ValueError:
        return None


def _unreachable(url: httpx.URL, error: Exception) -> Unreachable:
    return Unreachable(f"cannot reach {url}: {error or type(error).__name__}")
