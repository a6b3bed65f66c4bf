"""The files of the console's build as they are served: a browser asks for each of them once."""

import re

from django.conf import settings


def test_it_lets_a_browser_keep_what_is_named_by_its_contents(client):
    page = (settings.CONSOLE_DIST / "index.html").read_text()
    [script] = re.findall(r'src="(/assets/[^"]+)"', page)
    assert "immutable" in client.get(script)["Cache-Control"]
    assert "immutable" not in client.get("/convoy.svg")["Cache-Control"]
    assert "no-store" in client.get("/")["Cache-Control"]
