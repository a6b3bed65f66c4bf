"""The kinds of jobs that the server runs: asked of it once, remembered in a file beside the configuration.

A kind that the server learns later is found all the same: a word that is in no remembered list is looked up anew before it is
refused. A file that is missing, damaged or of another release counts as empty. Completion reads the file and sends nothing.
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
"""Of the file; another number means another release, and the file is written anew."""
_TEXTS = ("api_version", "kind", "plural", "category")
_JOB = "job"


def find(api: Api, word: str) -> Kind:
    """The kind of that name, of jobs or of anything else that can be listed; a Problem if there is none."""
    if kind := kinds.find(word) or _among(remembered(api.target.url), word):
        return kind
    asked = ask(api)
    if kind := _among(asked, word):
        return kind
    known = ", ".join(each.words[1] for each in (*kinds.ALL, *asked))
    raise usage(f"there is no kind {word!r}", f"one of: {known}")


def word_of(api: Api, job: Item) -> str:
    """What to type for the kind of a job so that no other kind is meant."""
    for known in (remembered(api.target.url), ask(api)):
        group = str(job.get("api_version", "")).partition("/")[0]
        for kind in known:
            if (kind.api_kind, kind.api_group) in ((job["kind"], ""), (job["kind"], group)):
                return kind.word
    return str(job["kind"]).lower()


def ask(api: Api) -> tuple[Kind, ...]:
    """The server's kinds of jobs, remembered from now on; none from a server that does not list its kinds."""
    try:
        listed = api.list("schemas/")
    except Problem as problem:
        if problem.exit_code != Exit.NOT_FOUND:
            raise
        return ()
    entries = [_entry(each) for each in listed]
    with contextlib.suppress(OSError):
        _remember(api.target.url, entries)
    return _kinds(entries)


def remembered(url: str) -> tuple[Kind, ...]:
    entries = _servers().get(url)
    return _kinds(entries) if isinstance(entries, list) and all(map(_is_entry, entries)) else ()


def completions(incomplete: str) -> list[str]:
    """Words for a kind that begin so, of all servers that are remembered."""
    known = [*kinds.ALL, *(kind for url in _servers() for kind in remembered(url))]
    return sorted({kind.words[1] for kind in known if kind.words[1].startswith(incomplete.lower())})


def _path() -> Path:
    return config.saved_path().with_name("kinds.json")


def _servers() -> Mapping[str, Any]:
    try:
        content = json.loads(_path().read_text())
    except (OSError, ValueError):
        return {}
    whole = isinstance(content, dict) and content.get("format") == FORMAT
    return content["servers"] if whole and isinstance(content.get("servers"), dict) else {}


def _remember(url: str, entries: Sequence[Item]) -> None:
    """The whole file is replaced, so that no reader sees half of it."""
    path = _path()
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    draft = path.with_suffix(f".{os.getpid()}")
    try:
        draft.write_text(json.dumps({"format": FORMAT, "servers": {**_servers(), url: entries}}))
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)


def _entry(listed: Item) -> Item:
    """What is remembered of a listed kind. Servers of release 0.1 name neither plurals nor categories."""
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
    """One for each group and kind; several versions of a kind are listed together."""
    jobs = {(_group(each), each["kind"]): each for each in reversed(entries) if each["category"] == _JOB}
    names = [kind for _, kind in jobs]
    return tuple(
        kinds.job_kind(_words(each, group, shared=names.count(kind) > 1), kind, group if names.count(kind) > 1 else "")
        for (group, kind), each in reversed(jobs.items())
    )


def _words(entry: Item, group: str, *, shared: bool) -> tuple[str, ...]:
    """The first is the one to print, the second the one to list: plain ones only where no other group has that kind."""
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
