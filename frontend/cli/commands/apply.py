"""``convoy apply``, ``submit`` and ``delete``: manifests go to the server as they are; this end only finds the files."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from frontend.cli import kinds, session
from frontend.cli.client import Item, at
from frontend.cli.commands.describe import kind_and_name
from frontend.cli.problems import Exit, Problem, missing, usage
from frontend.cli.session import DEFAULT_NAMESPACE, Session

ENDINGS = (".yaml", ".yml", ".json")
Files = Annotated[list[str], typer.Option("-f", "--filename", metavar="FILE|DIR|-", help="Repeatable; - is stdin.")]


def apply(context: typer.Context, filename: Files) -> None:
    """Submit manifests: jobs, policies, and what jobs refer to. All of them, or none."""
    run = session.session_of(context)
    _say(run, run.api.send("apply", read(filename)))


def submit(
    context: typer.Context, filename: Annotated[str, typer.Argument(metavar="FILE|-", help="One file of manifests.")]
) -> None:
    """Submit one file: short for `apply -f FILE`."""
    apply(context, [filename])


def delete(
    context: typer.Context,
    words: Annotated[list[str] | None, typer.Argument(metavar="[KIND NAME]")] = None,
    filename: Annotated[list[str] | None, typer.Option("-f", "--filename", metavar="FILE|DIR|-")] = None,
    namespace: session.Namespace = DEFAULT_NAMESPACE,
) -> None:
    """Delete one object, or all that files name."""
    run = session.session_of(context)
    if bool(words) == bool(filename):
        raise usage("say what to delete: KIND NAME, or -f FILE", "for example: convoy delete pytorchjob llama")
    if filename:
        _say(run, run.api.send("delete", read(filename)))
        return
    kind, name = kind_and_name(run, words or [])
    path, word = _place(run, kind, name, namespace)
    run.api.delete(path)
    run.screen.line(f"{word}/{name} deleted")


def _place(run: Session, kind: kinds.Kind, name: str, namespace: str) -> tuple[str, str]:
    if kind.path == "jobs":
        item = session.job(run.api, name, namespace, kind)
        return session.job_path(item), str(item["kind"]).lower()
    if kind.path == "policies":
        item = session.one(run.api, kind, name, namespace)
        return at("policies", str(item["id"])), str(item["kind"]).lower()
    hint = "`convoy cluster detach NAME` takes a cluster out of the fleet" if kind is kinds.CLUSTERS else ""
    raise usage(f"{kind.words[1]} cannot be deleted here", hint)


def _say(run: Session, answer: Item) -> None:
    for each in answer["results"]:
        run.screen.line(f"{each['kind'].lower()}/{each['name']} {each['action']}")
        for warning in each.get("warnings") or []:
            run.screen.note(f"warning: {each['kind'].lower()}/{each['name']}: {warning}", "yellow")


def read(names: list[str]) -> bytes:
    """All files as one stream of documents."""
    parts = [_content(path) for name in names for path in _files(name)]
    return b"\n---\n".join(_as_document(path, part) for path, part in parts)


def _files(name: str) -> Iterator[str]:
    """A directory gives its manifests in the order of their names, without those of its subdirectories."""
    path = Path(name)
    if name == "-" or not path.is_dir():
        yield name
        return
    found = sorted(each for each in path.iterdir() if each.suffix in ENDINGS and each.is_file())
    if not found:
        raise missing(f"there is no manifest in {name}", f"a manifest ends in {', '.join(ENDINGS)}")
    yield from map(str, found)


def _content(name: str) -> tuple[str, bytes]:
    if name == "-":
        return name, sys.stdin.buffer.read()
    try:
        return name, Path(name).read_bytes()
    except OSError as e:
        code = Exit.NOT_FOUND if isinstance(e, FileNotFoundError) else Exit.ERROR
        raise Problem(f"cannot read {name}: {e.strerror}", exit_code=code) from e


def _as_document(name: str, content: bytes) -> bytes:
    try:
        content.decode()
    except UnicodeDecodeError as e:
        raise Problem(f"{name} is not UTF-8 text", hint="is it a manifest?") from e
    return content.removeprefix(b"\xef\xbb\xbf").rstrip()
