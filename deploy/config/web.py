"""The web process by itself: ``python -m deploy.config.web --port N``. Other servers are given the application in `asgi`."""

import argparse
import sys

from uvicorn import Config

from deploy.config.serving import Server


def config(port: int, host: str = "127.0.0.1") -> Config:
    return Config(
        "deploy.config.asgi:application",
        host=host,
        port=port,
        lifespan="off",
        access_log=False,
        timeout_graceful_shutdown=5,
        http="deploy.config.http:Protocol",
        ws="deploy.config.websockets:Protocol",
        loop="deploy.config.http:loop",
        proxy_headers=False,
    )


def main() -> int:
    parser = argparse.ArgumentParser(prog="deploy.config.web")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, required=True)
    options = parser.parse_args()
    server = Server(config(options.port, options.host))
    server.run()
    return 0 if server.started else 1


if __name__ == "__main__":
    sys.exit(main())
