"""The product's settings on a home of its own that is thrown away, for the tests; each test process has one.

``DATABASE_URL`` and ``REDIS_URL`` still choose the parts, so the same tests run on PostgreSQL and Valkey; of a broker without
a database's number each test process gets a number of its own, and of ``CONVOY_TEST_TEMPLATE``, a migrated database, a copy.
"""

import atexit
import os
import shutil
import tempfile

_home = tempfile.mkdtemp(prefix="convoy-test-")
atexit.register(shutil.rmtree, _home, ignore_errors=True)
os.environ["CONVOY_HOME"] = _home
# Also for the processes that tests start: beside a server none are generated.
os.environ.setdefault("CONVOY_SECRET_KEY", "of the tests alone")
os.environ.setdefault("CONVOY_ENCRYPTION_KEYS", "Y29udm95LXRlc3RzLWNvbnZveS10ZXN0cy1jb252b3k=")
# A test waits in its transaction for what others do, on a busy machine for minutes.
os.environ.setdefault("CONVOY_TRANSACTION_IDLE_S", "0")
_worker = os.environ.get("PYTEST_XDIST_WORKER", "gw0")
_broker = os.environ.get("CONVOY_TEST_BROKER") or os.environ.get("REDIS_URL", "")
if _broker.count("/") == len("//"):
    # Kept beside the URL with a number, which the test processes inherit from the one that starts them: two that share a number
    # carry out and throw away each other's tasks.
    os.environ["CONVOY_TEST_BROKER"] = _broker
    os.environ["REDIS_URL"] = f"{_broker}/{_worker.removeprefix('gw')}"

from deploy.config.settings import *  # noqa: E402, F403
from deploy.config.settings import CHANNEL_LAYERS, CONVOY_HOME, DATABASE_POOL, DATABASES, LOGGING, REDIS_URL  # noqa: E402

if DATABASES["default"]["ENGINE"].endswith("sqlite3"):
    # A file: threads of one test share it, as processes do in production.
    DATABASES["default"]["TEST"] = {"NAME": str(CONVOY_HOME / "test.sqlite3")}
else:
    DATABASE_POOL["timeout"] = 60  # a busy machine is no reason to fail
    if "CONVOY_TEST_TEMPLATE" in os.environ:
        DATABASES["default"]["TEST"] = {"TEMPLATE": os.environ["CONVOY_TEST_TEMPLATE"]}
if REDIS_URL:
    # Messages of groups are published to all numbers of a server.
    CHANNEL_LAYERS["default"]["CONFIG"] |= {"prefix": _worker}  # type: ignore[operator]  # inferred too narrow
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
LOGGING["root"]["level"] = "WARNING"
