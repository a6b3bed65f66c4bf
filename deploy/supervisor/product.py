"""The product as a list of processes: what each runs, what it waits for, and how its readiness is known."""

import shutil
import signal
import sys
from dataclasses import dataclass
from pathlib import Path

from deploy.supervisor import probes
from deploy.supervisor.broker import Broker
from deploy.supervisor.child import Spec
from deploy.supervisor.probes import Readiness

ROOT = Path(__file__).resolve().parent.parent.parent
FLEET_FILE = ROOT / "deploy" / "demo" / "fleet.yaml"
WEDGED_S = 90.0
"""A process without a heartbeat for so long does no work although it exists."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What one run is made of."""

    home: Path
    port: int
    kube_port: int
    broker: Broker
    simulated: int
    """How many simulated clusters; none where real ones are joined."""


def specs(plan: Plan) -> list[Spec]:
    broker = plan.broker.spec(plan.home)
    _empty(metrics_folder(plan.home))
    simulator = [_simulator(plan)] if plan.simulated else []
    return ([broker] if broker else []) + [_migrate(plan), *_services(plan, bool(broker)), *simulator]


def _env(plan: Plan) -> dict[str, str]:
    return {
        "CONVOY_HOME": str(plan.home),
        "CONVOY_PORT": str(plan.port),
        "CONVOY_KUBE_PORT": str(plan.kube_port),
        "DJANGO_SETTINGS_MODULE": "deploy.config.settings",
        "PYTHONUNBUFFERED": "1",
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


def _migrate(plan: Plan) -> Spec:
    return Spec("migrate", _manage("migrate", "--noinput"), probes.always, _env(plan), once=True)


def _services(plan: Plan, has_broker: bool) -> list[Spec]:
    env = _env(plan)
    ready = Readiness(plan.port)
    first = ("migrate", "broker") if has_broker else ("migrate",)
    celery = _python("-m", "celery", "-A", "deploy.config.celery")
    schedule = str(plan.home / "run" / "beat-schedule")
    worker = ("worker", "--pool=threads", "--concurrency=8", "--without-gossip", "--without-mingle", "--loglevel=INFO")
    beat = ("beat", "--schedule", schedule, "--pidfile=", "--loglevel=INFO")
    return [
        Spec("web", web_command(plan.port), ready.of("database", "broker"), env, after=first),
        Spec(
            "kube",
            _kube(plan.kube_port),
            probes.serves_tls(plan.kube_port, plan.home / "pki" / "ca.pem"),
            env,
            after=first,
        ),
        Spec("worker", (*celery, *worker), ready.of("worker"), env, after=first, wedged_s=WEDGED_S),
        Spec("beat", (*celery, *beat), ready.of("beat"), env, after=first, wedged_s=WEDGED_S),
        Spec("watcher", _manage("watch_members"), ready.of("watcher"), env, after=first, wedged_s=WEDGED_S),
    ]


def web_command(port: int) -> tuple[str, ...]:
    return _python(
        *("-m", "uvicorn", "deploy.config.asgi:application", "--host", "127.0.0.1", "--port", str(port)),
        *("--lifespan", "off", "--no-access-log", "--timeout-graceful-shutdown", "5"),
    )


def _kube(port: int) -> tuple[str, ...]:
    return _python("-m", "deploy.config.kube", "--port", str(port), "--kubeconfig")


def _simulator(plan: Plan) -> Spec:
    """Its pods may be real processes, so it must hear of the supervisor's death and tidy up."""
    folder = plan.home / "simulator"
    folder.mkdir(mode=0o700, exist_ok=True)
    return Spec(
        "simulator",
        _python("-m", "fleet.simulator.main", "--home", str(folder), "--config", str(FLEET_FILE)),
        probes.serves_kubeconfigs(folder, plan.simulated),
        _env(plan),
        death_signal=signal.SIGTERM,
    )
