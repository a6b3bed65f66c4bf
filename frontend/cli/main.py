"""The ``convoy`` command: its verbs, and how every run ends. Speaks to the server over HTTP alone.

Exit codes are stable: 0 done, 1 failed, 2 wrong usage, 3 not found, 4 conflict, 5 took too long.
"""

import os
import sys
from collections.abc import Callable
from typing import Annotated

import typer

from frontend.cli.commands import (
    apply,
    audit,
    clusters,
    describe,
    explain,
    get,
    jobs,
    keys,
    kubeconfig,
    login,
    namespaces,
    queue,
    simulate,
    tokens,
    users,
    whatif,
)
from frontend.cli.output import screen
from frontend.cli.problems import Exit, Problem
from frontend.cli.session import Session

HELP = """Run AI training jobs over a fleet of Kubernetes clusters.

Exit codes: 0 done, 1 failed, 2 wrong usage, 3 not found, 4 conflict, 5 took too long.
"""

app = typer.Typer(
    name="convoy",
    help=HELP,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback()
def options(
    context: typer.Context,
    server: Annotated[str, typer.Option(metavar="URL", help="Else CONVOY_URL, else what `convoy config` shows.")] = "",
    token: Annotated[str, typer.Option(metavar="TOKEN", help="Else CONVOY_TOKEN.")] = "",
) -> None:
    context.obj = Session(server, token)


app.command("apply")(apply.apply)
app.command("submit")(apply.submit)
app.command("get")(get.get)
app.command("list")(get.listing)
app.command("describe")(describe.describe)
app.command("explain")(explain.explain)
app.command("whatif")(whatif.whatif)
app.command("simulate")(simulate.simulate)
app.command("logs")(jobs.logs)
app.command("wait")(jobs.wait)
app.command("suspend")(jobs.suspend)
app.command("resume")(jobs.resume)
app.command("delete")(apply.delete)
app.command("top")(clusters.top)
app.add_typer(clusters.app, name="cluster")
app.add_typer(queue.app, name="queue")
app.add_typer(users.app, name="user")
app.add_typer(namespaces.app, name="namespace")
app.add_typer(tokens.app, name="token")
app.add_typer(audit.app, name="audit")
app.command("rotate-keys")(keys.rotate)
app.command("login")(login.login)
app.command("kubeconfig")(kubeconfig.kubeconfig)
app.command("credential")(kubeconfig.credential)
app.command("config")(login.show_config)


def main() -> None:
    ended(lambda: app(prog_name="convoy"))


def ended(run: Callable[[], object]) -> None:
    """No way out of here shows a traceback for what a person or a network can do."""
    try:
        run()
    except Problem as problem:
        screen().problem(problem)
        sys.exit(problem.exit_code)
    except KeyboardInterrupt:
        sys.exit(Exit.INTERRUPTED)
    except BrokenPipeError:
        _hush()
        sys.exit(Exit.ERROR)
    except SystemExit:
        _flush()
        raise


def _flush() -> None:
    """Flush stdout; the reader of a pipe may be gone before the last bytes are written."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        _hush()


def _hush() -> None:
    """Point stdout at /dev/null after a broken pipe, so that the interpreter's own flush at exit does not fail."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


if __name__ == "__main__":
    main()
