"""A process that hears kubeai's stop at many addresses, as the pods of a node would: one address a line on its standard input.

It prints ``ready``, and when its input ends a JSON document: address -> when it heard, in seconds since the epoch.
"""

import asyncio
import json
import resource
import socket
import sys
import time

PORT = 9009


async def listen(addresses: list[str]) -> dict[str, float]:
    heard: dict[str, float] = {}

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if (await reader.readline()).startswith(b"GET /stop "):
            heard.setdefault(writer.get_extra_info("sockname")[0], time.time())
            writer.write(b"ok")
        writer.close()

    for address in addresses:
        listener = socket.create_server((address, PORT))
        await asyncio.start_server(answer, sock=listener)
    print("ready", flush=True)
    await asyncio.to_thread(sys.stdin.read)
    return heard


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    count = int(sys.stdin.readline())
    print(json.dumps(asyncio.run(listen([sys.stdin.readline().strip() for _ in range(count)]))))
