"""``convoy submit KIND --flags COMMAND``, as arena has it, beside ``convoy submit FILE``.

The commands are made from the tables of `frontend.cli.submit.flags`. A flag that is refused, and a switch with a value, are
handled before the flags are parsed: no parser knows either.
"""

import time
from collections.abc import Callable, Iterable
from inspect import Parameter, Signature
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from frontend.cli import session
from frontend.cli.commands import apply as files
from frontend.cli.problems import Problem, usage
from frontend.cli.submit import flags, kinds, values
from frontend.cli.submit.flags import Flag
from frontend.cli.submit.kinds import Trainer
from frontend.cli.submit.submission import submit

FILE = "file"
_EXAMPLES = {"--name": "bert-1", "--image": "example.com/team/bert:v1"}
_TRUE, _FALSE = ("true", "t", "1"), ("false", "f", "0")


class Group(TyperGroup):
    """Whatever is no kind of job is a file of manifests."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if args and args[0].startswith("--") and args[0] != "--help":
            words = "|".join(trainer.word for trainer in kinds.SUBMITTED)
            raise usage(
                f"{args[0].partition('=')[0]} stands before the kind of the job", f"submit {words} {args[0]} ..."
            )
        return list(super().parse_args(ctx, args))

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        known = args and args[0] in self.commands and args[0] != FILE
        return super().resolve_command(ctx, args if known else [FILE, *args])


def _command(trainer: Trainer) -> type[TyperCommand]:
    """A command that knows the trainer's switches and refused flags."""

    class Command(TyperCommand):
        def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
            if not ctx.resilient_parsing:
                args = _checked(trainer, args)
            return list(super().parse_args(ctx, args))

    return Command


def _checked(trainer: Trainer, args: list[str]) -> list[str]:
    """The arguments with ``--gang=true`` as ``--gang`` and without ``--gang=false``. Raises for refused and unknown flags."""
    by_name = {name: flag for flag in trainer.flags for name in flag.names}
    end = args.index("--") if "--" in args else len(args)
    checked: list[str] = []
    is_value = False
    for arg in args[:end]:
        name, sign, value = arg.partition("=")
        flag = None if is_value else by_name.get(name)
        if not is_value and flag is None and name.startswith("--") and name != "--help":
            hint = f"`submit {trainer.word} --help` lists them; flags of the command itself stand in its quotes, or after --"
            raise usage(f"{name} is no flag of {trainer.word}", hint)
        if flag is not None and flag.instead:
            raise usage(f"{name} is not supported for {trainer.word}", flag.instead)
        if flag is None or flag.kind is not bool or not sign:
            checked.append(arg)
        elif value.lower() in _TRUE:
            checked.append(name)
        elif value.lower() not in _FALSE:
            raise usage(f"{name}: {value!r} is neither true nor false", f"for example: {name}=true")
        is_value = flag is not None and flag.kind is not bool and not sign
    return [*checked, *args[end:]]


def _parameters(trainer: Trainer) -> Iterable[Parameter]:
    """Those of a function that Typer makes the command from."""
    yield Parameter("context", Parameter.POSITIONAL_OR_KEYWORD, annotation=typer.Context)
    for flag in trainer.flags:
        if not flag.instead:
            yield Parameter(flag.key, Parameter.KEYWORD_ONLY, default=_default(flag), annotation=_annotation(flag))
    command = typer.Argument(
        metavar="COMMAND", help="One argument: a line for the shell. Several: a program's, after --."
    )
    yield Parameter("command", Parameter.KEYWORD_ONLY, default=None, annotation=Annotated[list[str] | None, command])


def _default(flag: Flag) -> Any:
    """The default as it is written: numbers are read by `_value`, whose refusal names the value."""
    if flag.kind is int:
        return "" if flag.default is None else str(flag.default)
    return None if flag.kind is list else flag.default


def _annotation(flag: Flag) -> Any:
    if flag.kind is bool:
        return Annotated[bool, typer.Option(*flag.names, help=flag.help)]
    complete = (
        (lambda incomplete: [each for each in flag.choices if each.startswith(incomplete)]) if flag.choices else None
    )
    option = typer.Option(*flag.names, help=_help(flag), metavar=flag.metavar, autocompletion=complete)
    return Annotated[list[str] | None if flag.kind is list else str, option]


def _help(flag: Flag) -> str:
    return f"{flag.help} One of: {', '.join(flag.choices)}." if flag.choices else flag.help


def _function(trainer: Trainer) -> Callable[..., None]:
    def run(context: typer.Context, *, command: list[str] | None, **values: Any) -> None:
        options = {flag.key: _value(flag, values.get(flag.key)) for flag in trainer.flags if not flag.instead}
        options["namespace"] = options["namespace"] or session.DEFAULT_NAMESPACE
        for flag in _EXAMPLES:
            if not options[flag.lstrip("-")] and not (flag == "--image" and options.get("worker_image")):
                raise usage(f"{flag} is missing", f"for example: {flag}={_EXAMPLES[flag]}")
        run = session.session_of(context)
        submit(run, trainer, options, list(command or []), program=_program(context), began=time.monotonic())

    run.__signature__ = Signature(list(_parameters(trainer)))  # type: ignore[attr-defined]
    run.__annotations__ = {each.name: each.annotation for each in _parameters(trainer)}
    run.__doc__ = f"{trainer.title}\n\n{_refusals(trainer)}"
    return run


def _value(flag: Flag, value: Any) -> Any:
    if flag.kind is list:
        return tuple(value or ())
    if flag.kind is int:
        return values.whole(flag.long, value, least=flag.least) if value else None
    if flag.choices and value and value not in flag.choices:
        raise usage(f"{flag.long}: {value!r} is not supported", f"one of: {', '.join(flag.choices)}")
    return value


def _refusals(trainer: Trainer) -> str:
    names = ", ".join(flag.long for flag in trainer.flags if flag.instead and flag.long not in flags.ELSEWHERE)
    return f"These flags of arena are refused, with what to do instead: {names}."


def _program(context: typer.Context) -> str:
    """The name that the command line was called by: convoy, or arena."""
    return str(context.find_root().info_name or "convoy")


def _file(
    context: typer.Context,
    filename: Annotated[str, typer.Argument(metavar="FILE|-", help="One file of manifests.")],
) -> None:
    """Submit one file of manifests: short for `convoy apply -f FILE`."""
    try:
        files.apply(context, [filename])
    except Problem as problem:
        refusal = kinds.not_submitted(filename)
        raise (refusal if refusal else problem) from problem


def _made() -> typer.Typer:
    app = typer.Typer(
        cls=Group,
        no_args_is_help=True,
        help="Submit a job by its kind and flags, as arena does, or a file of manifests: `submit FILE`.",
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    for trainer in kinds.SUBMITTED:
        function, command = _function(trainer), _command(trainer)
        for word in trainer.words:
            app.command(word, cls=command, hidden=word != trainer.word)(function)
    app.command(FILE)(_file)
    return app


app = _made()
