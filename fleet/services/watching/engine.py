"""What all watches of a process share: one event loop that reads, and a few threads that write.

Both are started by the first watch and last as long as the process. Their number does not grow with the members: each writer
uses a connection to the database, and with the one of the watch manager that makes four.
"""

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from functools import cache

_WRITERS = 3
"""How many members one process writes at the same time."""
_LISTS = 4
"""How many lists it reads at the same time: all of what they have read is in memory until they end."""


@cache
def loop() -> asyncio.AbstractEventLoop:
    created = asyncio.new_event_loop()
    threading.Thread(target=created.run_forever, name="read members", daemon=True).start()
    return created


@cache
def turns() -> asyncio.Semaphore:
    return asyncio.Semaphore(_LISTS)


@cache
def writers() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(_WRITERS, thread_name_prefix="write members")
