"""Files of the built console that a page of the admin loads: names carry a hash of their content, so they are looked up."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from django.conf import settings


@dataclass(frozen=True, slots=True)
class Bundle:
    """Paths under the site's root."""

    script: str
    styles: tuple[str, ...]


def entry(source: str) -> Bundle | None:
    """The bundle built from ``source``, a path in frontend/web; None when the console is not built."""
    manifest = Path(settings.CONSOLE_DIST) / ".vite" / "manifest.json"
    if not manifest.is_file():
        return None
    chunks = json.loads(manifest.read_text(encoding="utf-8"))
    if source not in chunks:
        return None
    return Bundle(f"/{chunks[source]['file']}", tuple(f"/{css}" for css in _styles(chunks, source, set())))


def _styles(chunks: dict[str, Any], name: str, seen: set[str]) -> list[str]:
    """Of the chunk and all that it imports, those imported first."""
    seen.add(name)
    imported = [
        css for other in chunks[name].get("imports", ()) if other not in seen for css in _styles(chunks, other, seen)
    ]
    return [*imported, *chunks[name].get("css", ())]
