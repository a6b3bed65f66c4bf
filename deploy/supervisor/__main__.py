"""``python -m deploy.supervisor``: runs the product until it is stopped. Started by ``manage.py up``."""

import argparse
import asyncio
import os
import sys
from pathlib import Path

from deploy.bootstrap import locks, ports
from deploy.supervisor import broker, product
from deploy.supervisor.supervisor import Supervisor


def main() -> int:
    parser = argparse.ArgumentParser(prog="deploy.supervisor")
    parser.add_argument("--home", type=Path, required=True)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--broker-port", type=int, required=True)
    parser.add_argument("--simulated", type=int, default=0)
    parser.add_argument("--lively", action="store_true")
    options = parser.parse_args()
    run = options.home / "run"
    if locks.try_hold(run / "supervisor.lock") is None:
        sys.stderr.write("a supervisor already runs on this home\n")
        return 1
    chosen = broker.choose(os.environ, options.broker_port, os.environ.get("CONVOY_BROKER_PASSWORD", ""))
    kube_port = ports.first_free(int(os.environ.get("CONVOY_KUBE_PORT") or 8443))
    plan = product.Plan(options.home, options.port, kube_port, chosen, options.simulated, options.lively)
    facts: dict[str, str | int] = {
        "port": options.port,
        "kube_port": kube_port,
        "broker": chosen.kind,
        "broker_url": chosen.url,
        "simulated": options.simulated,
    }
    supervisor = Supervisor(product.specs(plan), options.home / "logs", run / "supervisor.json", facts)
    asyncio.run(supervisor.run())
    return 0


if __name__ == "__main__":
    sys.exit(main())
