"""The ``kubectl-amc`` command, which kubectl finds by its name and runs for ``kubectl amc``. It exits like kubectl: 0 or 1."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from typing import NoReturn

from frontend.cli.amc import describe, get, verbs
from frontend.cli.amc.fleet import Failure
from frontend.cli.main import ended
from frontend.cli.output import screen
from frontend.cli.problems import Problem

PATIENCE_S = 15.0


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise Problem(message, hint=f"see `{self.prog} --help`")


def parsers() -> dict[str, argparse.ArgumentParser]:
    """One a verb, so that options may stand anywhere behind it."""
    shown = _verb("get", "Show objects of the clusters.", get.get)
    shown.add_argument("kind", metavar="KIND", help="as the cluster serves it: pods, po, jobs.batch ...")
    shown.add_argument("names", metavar="NAME", nargs="*")
    shown.add_argument("-l", "--selector", default="", help="labels, such as app=train,tier!=test")
    shown.add_argument("--field-selector", default="", help="such as status.phase=Running")
    shown.add_argument("-o", "--output", default="", help="wide, yaml, json, name, jsonpath=... or custom-columns=...")
    shown.add_argument("-w", "--watch", action="store_true", help="and then every change, as it comes")
    shown.add_argument("--output-watch-events", action="store_true", help="with what happened, in front")
    shown.add_argument("--sort-by", default="", metavar="PATH", help="such as .metadata.creationTimestamp")
    shown.add_argument("--no-headers", action="store_true")
    describing = _verb("describe", "Show objects of the clusters in full, with their events.", describe.describe)
    describing.add_argument("kind", metavar="KIND")
    describing.add_argument("names", metavar="NAME", nargs="*")
    describing.add_argument("-l", "--selector", default="")
    log = _verb("logs", "Print what a pod of a cluster wrote.", verbs.logs)
    log.add_argument("pod", metavar="POD")
    log.add_argument("-c", "--container", default="", help="where a pod has several")
    log.add_argument("-f", "--follow", action="store_true")
    log.add_argument("-p", "--previous", action="store_true", help="of the container before this one")
    log.add_argument("--timestamps", action="store_true")
    log.add_argument("--tail", type=int, default=None, metavar="LINES")
    log.add_argument("--since", type=_seconds, default=None, metavar="SECONDS", help="such as 90, 90s or 5m")
    used = _verb("top", "Show what nodes or pods of the clusters use now.", verbs.top)
    used.add_argument("what", choices=("node", "nodes", "no", "pod", "pods", "po"), metavar="node|pod")
    gone = _verb("delete", "Delete objects of a cluster; the fleet makes again what it put there.", verbs.delete)
    gone.add_argument("kind", metavar="KIND")
    gone.add_argument("names", metavar="NAME", nargs="*")
    return {"get": shown, "describe": describing, "logs": log, "top": used, "delete": gone}


def _verb(name: str, description: str, run: Callable[[argparse.Namespace], int]) -> argparse.ArgumentParser:
    """With the options of every verb."""
    parser = _Parser(prog=f"kubectl amc {name}", description=description, allow_abbrev=False)
    parser.set_defaults(run=run)
    parser.add_argument(
        "-m", "--member", metavar="CLUSTER[,CLUSTER]", action="append", default=[], help="clusters to ask"
    )
    parser.add_argument("-M", "--all-members", action="store_true", help="ask every cluster of the fleet; the default")
    parser.add_argument("-n", "--namespace", default="", help="else that of the context")
    parser.add_argument("-A", "--all-namespaces", action="store_true")
    parser.add_argument("--kubeconfig", default="", help="else KUBECONFIG, else ~/.kube/config")
    parser.add_argument("--context", default="", help="a context of the kubeconfig; else its current one")
    parser.add_argument(
        "--request-timeout", type=_patience, default=PATIENCE_S, metavar="SECONDS", help="for each cluster"
    )
    return parser


def _seconds(text: str) -> float:
    """``5``, ``5s`` and ``1m``."""
    number = float(text.removesuffix("s").removesuffix("m") or "x") * (60 if text.endswith("m") else 1)
    if number < 0:
        raise ValueError(text)
    return number


def _patience(text: str) -> float:
    """0 asks for kubectl's own patience; here that is an end as well."""
    return _seconds(text) or PATIENCE_S


def main() -> None:
    ended(_run)


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
        for each in known.values():
            sys.stdout.write(f"{each.prog:24}{each.description}\n")
        sys.exit(0)
    if words[0] not in known:
        raise Problem(
            f"unknown verb {words[0]!r}", hint=f"the verbs are {', '.join(known)}; options come after the verb"
        )
    return known[words[0]].parse_intermixed_args(words[1:])


if __name__ == "__main__":
    main()
