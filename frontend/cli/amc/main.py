"""The ``kubectl-amc`` command, a plugin that kubectl runs for ``kubectl amc``. It exits like kubectl, with 0 or 1."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from typing import NoReturn

from frontend.cli.amc import describe, get, verbs
from frontend.cli.amc.fleet import Failure
from frontend.cli.main import run_and_exit
from frontend.cli.output import screen
from frontend.cli.problems import Problem

DEFAULT_TIMEOUT_S = 15.0


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise Problem(message, hint=f"see `{self.prog} --help`")


def parsers() -> dict[str, argparse.ArgumentParser]:
    """One parser for each verb, so that options may come anywhere after it."""
    get_ = _verb("get", "Show objects of the clusters.", get.get)
    get_.add_argument(
        "kind", metavar="KIND", help="as the cluster serves it: pods, po, jobs.batch, or several: pods,pvc"
    )
    get_.add_argument("names", metavar="NAME", nargs="*")
    get_.add_argument("-l", "--selector", default="", help="select by labels, such as app=train,tier!=test")
    get_.add_argument("--field-selector", default="", help="select by fields, such as status.phase=Running")
    get_.add_argument("-o", "--output", default="", help="wide, yaml, json, name, jsonpath=... or custom-columns=...")
    get_.add_argument("-w", "--watch", action="store_true", help="after listing, print every change")
    get_.add_argument("--output-watch-events", action="store_true", help="with --watch, print the type of each change")
    get_.add_argument("--sort-by", default="", metavar="PATH", help="such as .metadata.creationTimestamp")
    get_.add_argument("--no-headers", action="store_true")
    describe_ = _verb("describe", "Show objects of the clusters in full, with their events.", describe.describe)
    describe_.add_argument("kind", metavar="KIND")
    describe_.add_argument("names", metavar="NAME", nargs="*")
    describe_.add_argument("-l", "--selector", default="")
    logs = _verb("logs", "Print the log of a pod in a cluster.", verbs.logs)
    logs.add_argument("pod", metavar="POD")
    logs.add_argument("-c", "--container", default="", help="the container, if the pod has several")
    logs.add_argument("-f", "--follow", action="store_true")
    logs.add_argument("-p", "--previous", action="store_true", help="the log of the container's previous instance")
    logs.add_argument("--timestamps", action="store_true")
    logs.add_argument("--tail", type=int, default=None, metavar="LINES")
    logs.add_argument("--since", type=_seconds, default=None, metavar="SECONDS", help="such as 90, 90s or 5m")
    top = _verb("top", "Show the current resource use of nodes or pods.", verbs.top)
    top.add_argument("what", choices=("node", "nodes", "no", "pod", "pods", "po"), metavar="node|pod")
    delete = _verb("delete", "Delete objects in a cluster. The fleet creates its own objects again.", verbs.delete)
    delete.add_argument("kind", metavar="KIND")
    delete.add_argument("names", metavar="NAME", nargs="*")
    return {"get": get_, "describe": describe_, "logs": logs, "top": top, "delete": delete}


def _verb(name: str, description: str, run: Callable[[argparse.Namespace], int]) -> argparse.ArgumentParser:
    """A parser with the options that all verbs have."""
    parser = _Parser(prog=f"kubectl amc {name}", description=description, allow_abbrev=False)
    parser.set_defaults(run=run)
    parser.add_argument(
        "-m", "--member", metavar="CLUSTER[,CLUSTER]", action="append", default=[], help="the clusters to ask"
    )
    parser.add_argument("-M", "--all-members", action="store_true", help="ask every cluster of the fleet (default)")
    parser.add_argument("-n", "--namespace", default="", help="default: the namespace of the context")
    parser.add_argument("-A", "--all-namespaces", action="store_true")
    parser.add_argument("--kubeconfig", default="", help="default: KUBECONFIG, else ~/.kube/config")
    parser.add_argument("--context", default="", help="a context of the kubeconfig; default: its current one")
    parser.add_argument(
        "--request-timeout", type=_timeout, default=DEFAULT_TIMEOUT_S, metavar="SECONDS", help="for each cluster"
    )
    return parser


def _seconds(text: str) -> float:
    """Parses ``5``, ``5s`` and ``1m``."""
    number = float(text.removesuffix("s").removesuffix("m") or "x") * (60 if text.endswith("m") else 1)
    if number < 0:
        raise ValueError(text)
    return number


def _timeout(text: str) -> float:
    """0 means no limit to kubectl. Here it means the default, so that a silent cluster cannot block the command."""
    return _seconds(text) or DEFAULT_TIMEOUT_S


def main() -> None:
    run_and_exit(_run)


def _run() -> None:
    try:
        arguments = _read(sys.argv[1:])
        code = arguments.run(arguments)
    except Failure as e:
        screen().note(str(e), style="red")
        code = 1
    except Problem as e:
        screen().problem(e)
        code = 1
    sys.exit(code)


def _read(words: list[str]) -> argparse.Namespace:
    known = parsers()
    if not words or words[0] in ("-h", "--help", "help"):
        for parser in known.values():
            sys.stdout.write(f"{parser.prog:24}{parser.description}\n")
        sys.exit(0)
    if words[0] not in known:
        raise Problem(
            f"unknown verb {words[0]!r}", hint=f"the verbs are {', '.join(known)}; options come after the verb"
        )
    return known[words[0]].parse_intermixed_args(words[1:])


if __name__ == "__main__":
    main()
