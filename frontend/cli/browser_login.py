"""Signing in through a browser: the console makes a code for this program, which alone has the verifier for it (PKCE).

The browser on this machine brings the code to a port of loopback; without one the user copies it from the page.
"""

import base64
import hashlib
import html
import secrets
import sys
import webbrowser
from http.server import BaseHTTPRequestHandler, HTTPServer
from time import monotonic
from urllib.parse import parse_qs, urlencode, urlsplit

import typer

from frontend.cli import human
from frontend.cli.client import Api
from frontend.cli.config import Target
from frontend.cli.output import Screen
from frontend.cli.problems import Exit, Problem, usage

PATIENCE_S = 300.0
_PAGE = "<!doctype html><html lang='en'><meta charset='utf-8'><title>Convoy</title><h1>{}</h1><p>{}</p></html>"


def token(server: str, name: str, life: str, screen: Screen, *, opens: bool) -> str:
    """A token of the user who signs in. ``opens``: in a browser of this machine."""
    try:
        seconds = int(human.seconds(life))
    except ValueError as e:
        raise usage(f"--life {life} is not a duration", "write it as 90s, 12h or 30d") from e
    verifier, state = secrets.token_urlsafe(48), secrets.token_urlsafe(32)
    digest = hashlib.sha256(verifier.encode()).digest()
    wanted = {"challenge": base64.urlsafe_b64encode(digest).decode().rstrip("="), "name": name, "life": str(seconds)}
    if opens:
        with _Loopback(state) as door:
            url = _url(server, wanted | {"port": str(door.server_port), "state": state})
            screen.note(f"sign in with your browser: {url}")
            webbrowser.open(url)
            code = door.wait(PATIENCE_S)
    else:
        screen.note(f"open this with a browser, sign in, and copy the code from the page:\n{_url(server, wanted)}")
        code = _code()
    return str(Api(Target(server)).post("login/token/", {"code": code, "verifier": verifier})["token"])


def _url(server: str, wanted: dict[str, str]) -> str:
    return f"{server}/login?{urlencode(wanted)}"


def _code() -> str:
    if sys.stdin.isatty():
        return str(typer.prompt("Code", err=True)).strip()
    return sys.stdin.readline().strip()


class _Loopback(HTTPServer):
    """Waits for the one request that has the state; any other page may try this port as well."""

    def __init__(self, state: str) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.state, self.code = state, ""

    def wait(self, patience_s: float) -> str:
        deadline = monotonic() + patience_s
        while not self.code:
            self.timeout = deadline - monotonic()
            if self.timeout <= 0:
                message = f"no sign-in within {int(patience_s // 60)} minutes"
                raise Problem(message, hint="try again, or with --no-browser", exit_code=Exit.TIMEOUT)
            self.handle_request()
        return self.code


class _Handler(BaseHTTPRequestHandler):
    server: _Loopback
    timeout = 5

    def do_GET(self) -> None:
        split = urlsplit(self.path)
        query = {name: values[0] for name, values in parse_qs(split.query).items()}
        is_ours = secrets.compare_digest(query.get("state", "").encode(), self.server.state.encode())
        if split.path == "/callback" and is_ours and query.get("code"):
            self.server.code = query["code"]
            self._answer(200, "Signed in", "Go back to your terminal; this page may be closed.")
        else:
            self._answer(400, "Not signed in", "This is not the sign-in that convoy login waits for.")

    def _answer(self, status: int, title: str, text: str) -> None:
        body = _PAGE.format(html.escape(title), html.escape(text)).encode()
        self.send_response(status)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: object) -> None:
        """Logs nothing, because the request line contains the code."""
