"""The Kubernetes-style API as a process of its own: every kind of every app, over TLS. ``python -m deploy.config.kube``"""

import argparse
import os
import sys

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "deploy.config.settings")

import django

django.setup()

from django.conf import settings  # noqa: E402
from django.core.management import call_command  # noqa: E402
from django.utils import timezone  # noqa: E402
from uvicorn import Config  # noqa: E402

from deploy.config.http import Protocol, behind  # noqa: E402
from deploy.config.serving import Server  # noqa: E402
from fleet import gc_tuning  # noqa: E402
from fleet.api.http import exposition  # noqa: E402
from fleet.kubeapi import certificate  # noqa: E402
from fleet.kubeapi.app import Application  # noqa: E402
from fleet.kubeapi.limits import refusal, sort  # noqa: E402
from fleet.kubeapi.objects.clusters import Clusters  # noqa: E402
from fleet.kubeapi.objects.fleet_kinds import Events, Services  # noqa: E402
from fleet.kubeapi.objects.metrics import Metrics  # noqa: E402
from fleet.kubeapi.objects.namespaces import Namespaces  # noqa: E402
from fleet.kubeapi.objects.nodes import Nodes  # noqa: E402
from fleet.kubeapi.objects.pods import Pods  # noqa: E402
from fleet.limits.limited import Limited  # noqa: E402
from jobs.kubeapi.kinds import CONTENTS, kinds  # noqa: E402
from quotas.kubeapi import kinds as quotas  # noqa: E402


def application() -> Application:
    pods, nodes = Pods(), Nodes()
    regarded = [*kinds(), *quotas.kinds(), Clusters(), pods, nodes]
    others = [Namespaces(CONTENTS, quotas.namespaces), Events(regarded), Services()]
    return Application([*others, *regarded, Metrics(pods), Metrics(nodes)])


def server(port: int, host: str = "127.0.0.1") -> Server:
    files = certificate.ensure(timezone.now())
    limited = Limited(application(), settings.CONVOY_LIMITS, sort, refusal)
    config = Config(
        behind(settings.CONVOY_TRUSTED_PROXIES, limited),
        http=Protocol,
        loop="deploy.config.http:loop",
        proxy_headers=False,
        host=host,
        port=port,
        ssl_certfile=str(files.certificate),
        ssl_keyfile=str(files.key),
        lifespan="off",
        ws="none",
        access_log=False,
        log_level="warning",
        timeout_graceful_shutdown=2,
    )
    return Server(config)


def main() -> int:
    parser = argparse.ArgumentParser(prog="deploy.config.kube")
    parser.add_argument("--host", default=os.environ.get("CONVOY_KUBE_HOST", "127.0.0.1"))
    parser.add_argument("--port", type=int, default=int(os.environ.get("CONVOY_KUBE_PORT", "8443")))
    parser.add_argument("--kubeconfig", action="store_true", help="first write one for user admin, made when missing")
    options = parser.parse_args()
    if options.kubeconfig:
        call_command("ensure_admin")
        call_command("write_kubeconfig", server=f"https://{options.host}:{options.port}")
    running = server(options.port, options.host)
    gc_tuning.shorten()
    exposition.serve()
    running.run()
    return 0 if running.started else 1


if __name__ == "__main__":
    sys.exit(main())
