"""``convoy apply`` and ``delete``: read manifests from files and send them to the server unchanged."""

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from frontend.cli import kinds, session
from frontend.cli.arena.jobs import delete as delete_jobs
from frontend.cli.arena.jobs import delete_job
from frontend.cli.client import Item, at
from frontend.cli.commands.describe import kind_and_name
from frontend.cli.kustomize import build
from frontend.cli.problems import Exit, Problem, missing, usage
from frontend.cli.session import DEFAULT_NAMESPACE, Session

ENDINGS = (".yaml", ".yml", ".json")
_AT_ONCE = 50
_DOCUMENT = re.compile(rb"^(?=---(?:\s|$))", re.MULTILINE)
_CONTENT = re.compile(rb"^(?:---)?[ \t]*[^\s#-]", re.MULTILINE)
_DIRECTIVE = re.compile(rb"^%", re.MULTILINE)
Files = Annotated[
    list[str] | None, typer.Option("-f", "--filename", metavar="FILE|DIR|-", help="Repeatable; - is stdin.")
]
Kustomization = Annotated[
    str,
    typer.Option("-k", "--kustomize", metavar="DIR", help="A kustomization; built by kubectl, which must be there."),
]


def apply(context: typer.Context, filename: Files = None, kustomize: Kustomization = "") -> None:
    """Submit manifests of jobs, policies and objects that jobs refer to: all, or none. The same again changes nothing."""
    run = session.session_of(context)
    if bool(filename) == bool(kustomize):
        raise usage("say what to apply: -f FILE, or -k DIR", "for example: convoy apply -f train.yaml")
    _print_results(run, run.api.send("apply", read(filename) if filename else build(kustomize)))


def delete(
    context: typer.Context,
    words: Annotated[list[str] | None, typer.Argument(metavar="[KIND NAME]|JOB...")] = None,
    filename: Annotated[list[str] | None, typer.Option("-f", "--filename", metavar="FILE|DIR|-")] = None,
    namespace: session.Namespace = DEFAULT_NAMESPACE,
    trainer: session.Type = "",
) -> None:
    """Delete one object, or all objects named in files, 50 at a time. With --type: jobs, by their names."""
    run = session.session_of(context)
    if words and trainer:
        delete_jobs(run, words, namespace, trainer)
        return
    if bool(words) == bool(filename):
        raise usage("say what to delete: KIND NAME, or -f FILE", "for example: convoy delete pytorchjob llama")
    if filename:
        for piece in _pieces(read(filename)):
            _print_results(run, run.api.send("delete", piece))
        return
    kind, name = kind_and_name(run, words or [])
    run.screen.line(f"{_delete(run, kind, name, namespace)}/{name} deleted")


def _delete(run: Session, kind: kinds.Kind, name: str, namespace: str) -> str:
    """Deletes one object. Returns the word for its kind."""
    if kind.path == "jobs":
        item = session.job(run.api, name, namespace, kind)
        delete_job(run.api, item)
        return str(item["kind"]).lower()
    if kind.path == "policies":
        item = session.one(run.api, kind, name, namespace)
        run.api.delete(at("policies", str(item["id"])))
        return str(item["kind"]).lower()
    hint = "`convoy cluster detach NAME` takes a cluster out of the fleet" if kind is kinds.CLUSTERS else ""
    raise usage(f"{kind.words[1]} cannot be deleted here", hint)


def _print_results(run: Session, answer: Item) -> None:
    for result in answer["results"]:
        name = f"{result['kind'].lower()}/{result['name']}"
        run.screen.line(f"{name} {result['action']}")
        for warning in result.get("warnings") or []:
            run.screen.note(f"warning: {name}: {warning}", "yellow")


def _pieces(documents: bytes) -> Iterator[bytes]:
    """What one request can delete in its time; of documents with directives of YAML, which belong to the next one, all."""
    split = [] if _DIRECTIVE.search(documents) else _DOCUMENT.split(documents)
    parts = [part for part in split if _CONTENT.search(part)] or [documents]
    for start in range(0, len(parts), _AT_ONCE):
        yield b"".join(parts[start : start + _AT_ONCE])


def read(names: list[str]) -> bytes:
    """All files as one stream of documents."""
    parts = [_content(path) for name in names for path in _files(name)]
    return b"\n---\n".join(_as_document(path, part) for path, part in parts)


def _files(name: str) -> Iterator[str]:
    """The file itself, or the manifests of a directory ordered by name, without subdirectories."""
    path = Path(name)
    if name == "-" or not path.is_dir():
        yield name
        return
    manifests = sorted(file for file in path.iterdir() if file.suffix in ENDINGS and file.is_file())
    if not manifests:
        raise missing(f"there is no manifest in {name}", f"names of manifests end in {', '.join(ENDINGS)}")
    yield from map(str, manifests)


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
