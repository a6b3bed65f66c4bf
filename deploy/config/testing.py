"""The product's settings on a home of its own that is thrown away, for the tests; each test process has one.

``DATABASE_URL`` and ``REDIS_URL`` still choose the parts, so the same tests run on PostgreSQL and Redis.
"""

import atexit
import os
import shutil
import tempfile

_home = tempfile.mkdtemp(prefix="convoy-test-")
atexit.register(shutil.rmtree, _home, ignore_errors=True)
os.environ["CONVOY_HOME"] = _home

from deploy.config.settings import *  # noqa: E402, F403
from deploy.config.settings import CONVOY_HOME, DATABASES, LOGGING  # noqa: E402

if DATABASES["default"]["ENGINE"].endswith("sqlite3"):
    # A file: threads of one test share it, as processes do in production.
    DATABASES["default"]["TEST"] = {"NAME": str(CONVOY_HOME / "test.sqlite3")}
elif "CONVOY_DATABASE_POOL" not in os.environ:
    # The test database is dropped at the end: no pool may keep a connection to it.
    DATABASES["default"]["OPTIONS"].pop("pool", None)
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
LOGGING["root"]["level"] = "WARNING"
