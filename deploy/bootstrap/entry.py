"""Decides what answers a command: the seven commands here, or Django for every other; both inside ``.venv``.

Outside of ``.venv`` the process first makes it, then becomes the same command inside it.
"""

import os
import sys
from collections.abc import Callable

from deploy.bootstrap import bytecode, doctor, observe, problems, running, stop, testing, up
from deploy.bootstrap.environment import Environment
from deploy.bootstrap.home import ROOT, Home
from deploy.bootstrap.problems import Problem
from deploy.bootstrap.progress import Steps

COMMANDS: dict[str, Callable[[list[str], Home, Steps], int]] = {
    "up": up.command,
    "down": stop.down,
    "reset": stop.reset,
    "status": observe.status,
    "logs": observe.logs,
    "doctor": doctor.command,
    "test": testing.command,
}
GROUPS = {"test": ("dev",), "up": ("kubectl",)}
WITHOUT_ENVIRONMENT = {"down", "reset", "status", "logs", "doctor"}
"""These must work when the environment is what is broken."""
USAGE = """\
Convoy: a control plane that runs AI training jobs over a fleet of Kubernetes clusters.

  up [--detach] [--empty] [--members DIR] [--ci]   set everything up and run it, with a demo job
  down        stop it; `up` resumes the same state      reset [--yes]   forget its state
  status      what runs, and is it ready                logs [-f] [NAME...]   what it says
  doctor      what is wrong, and what to do             test [ARG...]   run the tests

Any other command is Django's: python3 manage.py help
"""


def main(argv: list[str]) -> int:
    steps = Steps()
    try:
        return _run(argv, steps)
    except Problem as problem:
        sys.stderr.write(f"{problem}\n")
        return problem.code
    except KeyboardInterrupt:
        sys.stderr.write("\nStopped.\n")
        return 130
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        if error.errno not in (*problems.FULL, *problems.CLOSED):
            raise
        sys.stderr.write(f"{problems.of_error(error, f'run {argv[0]}')}\n")
        return 1


def _run(argv: list[str], steps: Steps) -> int:
    name = argv[0] if argv else ""
    if name in ("", "-h", "--help"):
        steps.say(USAGE)
        return 0
    if name not in WITHOUT_ENVIRONMENT:
        _go_inside(argv, Environment(ROOT, steps))
    if name in COMMANDS:
        return COMMANDS[name](argv[1:], Home.here(), steps)
    return _django(argv)


def _go_inside(argv: list[str], environment: Environment) -> None:
    """Returns only when this process already runs inside the environment."""
    environment.ensure(*GROUPS.get(argv[0], ()))
    bytecode.keep(environment.venv)
    if not environment.is_ours():
        python = str(environment.python)
        sys.stdout.flush()
        os.execv(python, [python, str(ROOT / "manage.py"), *argv])  # noqa: S606


def _django(argv: list[str]) -> int:
    for key, value in running.environment(Home.here()).items():
        os.environ.setdefault(key, value)
    from django.core.management import execute_from_command_line

    execute_from_command_line(["manage.py", *argv])
    return 0
