"""The kinds of jobs that the server supports: requested once, and cached in a file beside the configuration.

If a word is not in the cache, the server is asked again before the word is refused, so new kinds are found. A cache file that
is missing, damaged or of another release counts as empty. Shell completion only reads the file.
"""

import contextlib
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from frontend.cli import config, kinds
from frontend.cli.client import Api, Item
from frontend.cli.kinds import Kind
from frontend.cli.problems import Exit, Problem, usage

FORMAT = 1
"""The version of the cache file's format. A file of another version is replaced."""
_TEXTS = ("api_version", "kind", "plural", "category")
_JOB = "job"


def find(api: Api, word: str) -> Kind:
    """The kind that a word names: a kind of job, or another kind that can be listed. Raises a Problem if there is none."""
    if kind := kinds.find(word) or _among(cached(api.target.url), word):
        return kind
    current = fetch(api)
    if kind := _among(current, word):
        return kind
    known = ", ".join(kind.words[1] for kind in (*kinds.ALL, *current))
    raise usage(f"there is no kind {word!r}", f"one of: {known}")


def word_of(api: Api, job: Item) -> str:
    """A word for the kind of a job that names no other kind."""
    for known in (cached(api.target.url), fetch(api)):
        group = str(job.get("api_version", "")).partition("/")[0]
        for kind in known:
            if (kind.api_kind, kind.api_group) in ((job["kind"], ""), (job["kind"], group)):
                return kind.word
    return str(job["kind"]).lower()


def fetch(api: Api) -> tuple[Kind, ...]:
    """Requests the server's kinds of jobs and caches them. Empty if the server does not list its kinds."""
    try:
        listed = api.list("schemas/")
    except Problem as problem:
        if problem.exit_code != Exit.NOT_FOUND:
            raise
        return ()
    entries = [_entry(item) for item in listed]
    with contextlib.suppress(OSError):
        _save(api.target.url, entries)
    return _kinds(entries)


def cached(url: str) -> tuple[Kind, ...]:
    entries = _servers().get(url)
    return _kinds(entries) if isinstance(entries, list) and all(map(_is_entry, entries)) else ()


def completions(incomplete: str) -> list[str]:
    """The words for kinds that begin with ``incomplete``, from the caches of all servers."""
    known = [*kinds.ALL, *(kind for url in _servers() for kind in cached(url))]
    return sorted({kind.words[1] for kind in known if kind.words[1].startswith(incomplete.lower())})


def _path() -> Path:
    return config.saved_path().with_name("kinds.json")


def _servers() -> Mapping[str, Any]:
    try:
        content = json.loads(_path().read_text())
    except (OSError, ValueError):
        return {}
    is_valid = isinstance(content, dict) and content.get("format") == FORMAT
    return content["servers"] if is_valid and isinstance(content.get("servers"), dict) else {}


def _save(url: str, entries: Sequence[Item]) -> None:
    """Replaces the cache file atomically, so that no reader sees a part of it."""
    path = _path()
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    draft = path.with_suffix(f".{os.getpid()}")
    try:
        draft.write_text(json.dumps({"format": FORMAT, "servers": {**_servers(), url: entries}}))
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)


def _entry(listed: Item) -> Item:
    """The cached fields of a listed kind. Servers of release 0.1 list neither plurals nor categories."""
    text = {name: str(listed.get(name) or "") for name in _TEXTS}
    text["plural"] = text["plural"] or f"{text['kind'].lower()}s"
    text["category"] = text["category"] or (_JOB if "/" in text["api_version"] else "support")
    return {**text, "short_names": [str(name) for name in listed.get("short_names") or []]}


def _is_entry(entry: object) -> bool:
    return (
        isinstance(entry, dict)
        and all(isinstance(entry.get(name), str) for name in _TEXTS)
        and isinstance(entry.get("short_names"), list)
    )


def _among(known: Sequence[Kind], word: str) -> Kind | None:
    return next((kind for kind in known if word.lower() in kind.words), None)


def _kinds(entries: Sequence[Item]) -> tuple[Kind, ...]:
    """One `Kind` for each group and kind. Several versions of a kind are listed together."""
    jobs = {(_group(entry), entry["kind"]): entry for entry in reversed(entries) if entry["category"] == _JOB}
    names = [kind for _, kind in jobs]
    return tuple(
        kinds.job_kind(_words(entry, group, shared=names.count(kind) > 1), kind, group if names.count(kind) > 1 else "")
        for (group, kind), entry in reversed(jobs.items())
    )


def _words(entry: Item, group: str, *, shared: bool) -> tuple[str, ...]:
    """The words for a kind: the first is printed for one object, the second for a list.

    The plain kind is among them only if no other group has a kind of that name.
    """
    return tuple(dict.fromkeys(_spellings(entry, group, shared=shared)))


def _spellings(entry: Item, group: str, *, shared: bool) -> Iterator[str]:
    singular, plural = entry["kind"].lower(), entry["plural"]
    short = [spelling for name in entry["short_names"] for spelling in (name, f"{name}s")]
    if not shared:
        yield from (singular, plural)
    yield from short
    yield from (f"{singular}.{group}", f"{plural}.{group}")


def _group(entry: Item) -> str:
    group, _, version = str(entry["api_version"]).rpartition("/")
    return group if version else ""
