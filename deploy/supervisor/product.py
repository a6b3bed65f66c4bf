"""The product as a list of processes: what each runs, what it waits for, and how its readiness is known."""

import os
import shutil
import signal
import sys
from dataclasses import dataclass
from pathlib import Path

from deploy.supervisor import forked, probes
from deploy.supervisor.broker import Broker
from deploy.supervisor.child import Spec

ROOT = Path(__file__).resolve().parent.parent.parent
LONGEST_SOCKET = 100
PROCESS_PATHS = "CONVOY_PROCESS_PATHS"
FLEET_FILE = ROOT / "deploy" / "demo" / "fleet.yaml"


@dataclass(frozen=True, slots=True)
class Plan:
    """What one run is made of."""

    home: Path
    port: int
    kube_port: int
    broker: Broker
    simulated: int
    """How many simulated clusters; none where real ones are joined."""
    lively: bool = False
    """The demo's teams submit jobs for ever."""


def specs(plan: Plan) -> list[Spec]:
    broker = plan.broker.spec(plan.home)
    _empty(metrics_folder(plan.home))
    simulator = [_simulator(plan)] if plan.simulated else []
    life = [_life(plan)] if plan.simulated and plan.lively else []
    return ([broker] if broker else []) + [
        *_preload(plan),
        _migrate(plan),
        *_services(plan, bool(broker)),
        *simulator,
        *life,
    ]


def _env(plan: Plan) -> dict[str, str]:
    return {
        "CONVOY_HOME": str(plan.home),
        "CONVOY_PORT": str(plan.port),
        "CONVOY_KUBE_PORT": str(plan.kube_port),
        "DJANGO_SETTINGS_MODULE": "deploy.config.settings",
        "PYTHONUNBUFFERED": "1",
        **({"CONVOY_SIMULATOR": str(plan.home / "simulator")} if plan.simulated else {}),
        "CONVOY_LOG_FORMAT": "console",
        "PROMETHEUS_MULTIPROC_DIR": str(metrics_folder(plan.home)),
        **plan.broker.env,
    }


def metrics_folder(home: Path) -> Path:
    """Where the processes of one run keep their counters, so that any of them can serve the sums."""
    return home / "run" / "metrics"


def _empty(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(mode=0o700, parents=True)


def _python(*args: str) -> tuple[str, ...]:
    return (sys.executable, *args)


def _manage(*args: str) -> tuple[str, ...]:
    return _python(str(ROOT / "manage.py"), *args)


def preload_door(home: Path) -> Path | None:
    """Where processes are forked; none where that is not possible, or the name is too long for a socket."""
    door = home / "run" / "preload.sock"
    return door if forked.IS_POSSIBLE and len(str(door).encode()) < LONGEST_SOCKET else None


def _preload(plan: Plan) -> list[Spec]:
    """Imports the product once, for all that is forked from it."""
    door = preload_door(plan.home)
    argv = _python("-m", "deploy.config.preload", str(door))
    env = _env(plan) | {"OPENBLAS_NUM_THREADS": "1"}
    return [Spec("preload", argv, probes.listens(door), env)] if door else []


def _migrate(plan: Plan) -> Spec:
    after = ("preload",) if preload_door(plan.home) else ()
    argv = _manage("migrate_if_needed")
    return Spec("migrate", argv, probes.always, _env(plan), once=True, after=after, forked_by=preload_door(plan.home))


def _services(plan: Plan, has_broker: bool) -> list[Spec]:
    env = _env(plan)
    first = ("migrate", "broker") if has_broker else ("migrate",)
    kube = probes.serves_tls(plan.kube_port, plan.home / "pki" / "ca.pem")
    return [
        Spec(
            "web",
            web_command(plan.port),
            probes.checks(plan.port, "database", "broker"),
            env,
            after=first,
            alive=probes.serves(plan.port, "/livez"),
            forked_by=preload_door(plan.home),
        ),
        Spec("kube", _kube(plan.kube_port), kube, env, after=first, alive=kube, forked_by=preload_door(plan.home)),
        *(_beating(plan, name, argv, first) for name, argv in _loops(plan).items()),
    ]


def _loops(plan: Plan) -> dict[str, tuple[str, ...]]:
    """The processes that serve no port."""
    celery = _python("-m", "celery", "-A", "deploy.config.celery")
    schedule = str(plan.home / "run" / "beat-schedule")
    beat = ("beat", "--schedule", schedule, "--pidfile=")
    return {
        "worker": (
            *celery,
            *("worker", "--pool=threads", "--concurrency=8"),
            # Workers do not know each other: no process listens to their events.
            *("--without-gossip", "--without-mingle", "--without-heartbeat"),
        ),
        "beat": (*celery, *beat, "--scheduler", "deploy.config.celery_heartbeat:Scheduler"),
        "watcher": _manage("watch_members"),
    }


def _beating(plan: Plan, name: str, argv: tuple[str, ...], after: tuple[str, ...]) -> Spec:
    """A process whose heartbeat file says that its loop turns."""
    file = plan.home / "run" / f"{name}.heartbeat"
    env = _env(plan) | {"CONVOY_HEARTBEAT_FILE": str(file)}
    return Spec(
        name,
        argv,
        probes.always,
        env,
        after=after,
        heartbeat=file,
        log_is_life=name in ("worker", "beat"),
        forked_by=preload_door(plan.home),
    )


def web_command(port: int) -> tuple[str, ...]:
    return _python("-m", "deploy.config.web", "--port", str(port))


def _kube(port: int) -> tuple[str, ...]:
    return _python("-m", "deploy.config.kube", "--port", str(port), "--kubeconfig")


def _simulator(plan: Plan) -> Spec:
    """Its pods may be real processes, so it must hear of the supervisor's death and tidy up."""
    folder = plan.home / "simulator"
    folder.mkdir(mode=0o700, exist_ok=True)
    return Spec(
        "simulator",
        _python("-m", "simulator.main", "--home", str(folder), "--config", str(FLEET_FILE)),
        probes.serves_kubeconfigs(folder, plan.simulated),
        _env(plan) | {"CONVOY_FLEET_FILE": str(plan.home / "run" / "fleet.json"), PROCESS_PATHS: _sources()},
        death_signal=signal.SIGTERM,
    )


def _sources() -> str:
    """What pods may read: the packages from which the supervisor of elastic jobs runs in a member, and what is set."""
    packages = [str(ROOT / name) for name in ("fleet", "jobs", "supervisor")]
    return os.pathsep.join([*filter(None, [os.environ.get(PROCESS_PATHS)]), *packages])


def _life(plan: Plan) -> Spec:
    """Waits by itself until there is a token to speak with."""
    life = _python("-m", "deploy.demo.life", "--home", str(plan.home), "--port", str(plan.port))
    return Spec("demo", life, probes.always, _env(plan), after=("web", "simulator"))
