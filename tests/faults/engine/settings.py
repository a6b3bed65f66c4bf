"""The product's settings with short claims, leases and graces, so that "longer than every claim" is a matter of seconds.

``FAULTS_HOME`` has the keys of all worlds. Which database and broker a world uses is set in its processes (`nursery`).
"""

import os
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

from deploy.config import home

os.environ["CONVOY_HOME"] = os.environ["FAULTS_HOME"]
for _name, _file in (("CONVOY_SECRET_KEY", home.secret), ("CONVOY_ENCRYPTION_KEYS", home.encryption_key)):
    os.environ.setdefault(_name, _file(Path(os.environ["FAULTS_HOME"]), _name.lower()))
os.environ.setdefault("REDIS_URL", "redis://127.0.0.1:1/0")
os.environ.setdefault("CONVOY_LOG_FORMAT", "console")

from deploy.config.beat_schedule import Every  # noqa: E402
from deploy.config.settings import *  # noqa: E402, F403
from deploy.config.settings import (  # noqa: E402
    CELERY_BEAT_SCHEDULE,
    CELERY_BROKER_TRANSPORT_OPTIONS,
    CONVOY_CYCLE,
    CONVOY_DISPATCH,
    CONVOY_FAILOVER,
    CONVOY_MEMBERS,
    CONVOY_SCHEDULER,
    DATABASES,
)

SLOW = float(os.environ.get("FAULTS_SLOW", "1"))
"""All times below are so many times as long, for a machine that is busy with other things."""
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
CONVOY_SCHEDULER = replace(
    CONVOY_SCHEDULER,
    lease_s=3.0 * SLOW,
    reason_refresh_s=1.0 * SLOW,
    rejected_retry_s=2.0 * SLOW,
    failures_refresh_s=2.0 * SLOW,
)
CONVOY_CYCLE = replace(CONVOY_CYCLE, nomination_s=4.0 * SLOW)
CONVOY_DISPATCH = replace(
    CONVOY_DISPATCH, claim_s=4.0 * SLOW, longest_retry_s=2.0 * SLOW, reservation_wait_s=10.0 * SLOW
)
CONVOY_FAILOVER = replace(
    CONVOY_FAILOVER,
    cluster_toleration_s=1.0 * SLOW,
    start_timeout_s=20.0 * SLOW,
    crash_loop_s=10.0 * SLOW,
    crash_loop_restarts=2,
    cool_off_s=2.0 * SLOW,
)
CONVOY_MEMBERS = replace(
    CONVOY_MEMBERS,
    heartbeat_grace_s=2.5 * SLOW,
    probe_timeout_s=1.0 * SLOW,
    watch_lease_s=3.0 * SLOW,
    picture_max_age_s=5.0 * SLOW,
    disruption_window_s=10.0 * SLOW,
)
CELERY_BEAT_SCHEDULE["heartbeat"].update(schedule=Every(2.0))
CELERY_BEAT_SCHEDULE["clusters"].update(schedule=Every(0.7))
CELERY_BEAT_SCHEDULE["jobs"].update(schedule=Every(0.7))
CELERY_BEAT_SCHEDULE["housekeeping"].update(schedule=Every(5.0))
CELERY_BROKER_TRANSPORT_OPTIONS["visibility_timeout"] = int(8 * SLOW)
if DATABASES["default"]["ENGINE"].endswith("sqlite3.base") or "sqlite3" in DATABASES["default"]["ENGINE"]:
    DATABASES["default"]["TURN_TIMEOUT_S"] = 12.0 * SLOW

CONSTANTS = {
    "fleet.services.watching.manager:WatchManager.heartbeat_every": timedelta(seconds=0.6 * SLOW),
    "fleet.services.watching.manager:WatchManager.resync_every": timedelta(seconds=5 * SLOW),
    "fleet.services.watching.manager:WatchManager.restart_s": 1.0 * SLOW,
    "fleet.services.watching.member_watch:_MAX_LAG_S": 2.0 * SLOW,
    "fleet.core.members.freshness:CURRENT": timedelta(seconds=2 * SLOW),
    "fleet.core.members.freshness:HEARTBEAT_GAP": timedelta(seconds=5 * SLOW),
    "fleet.services.clusters.freshness:HEARTBEAT_GAP": timedelta(seconds=5 * SLOW),
    "fleet.models.cluster:HEARTBEAT_GAP": timedelta(seconds=5 * SLOW),
    "fleet.services.clusters.freshness:_INITIAL_WATCH_GRACE": timedelta(seconds=8 * SLOW),
    "fleet.tasks:_CHECK_TERM": timedelta(seconds=4 * SLOW),
    "fleet.tasks:_HOUSEKEEPING_TERM": timedelta(seconds=5 * SLOW),
    "jobs.services.follow.sweep:TERM": timedelta(seconds=3 * SLOW),
    "fleet.member.watching:_PAUSE_S": (0.1, 1.0),
    "fleet.member.watching:_HOPELESS_S": 3.0 * SLOW,
    "fleet.member.watching:Reflector.watch_s": int(4 * SLOW),
    "fleet.member.watching:Reflector.relist_s": 15.0 * SLOW,
}
"""What an operator cannot set, and the engine shortens: where it is, and its value here."""
CALL_S = 1.5 * SLOW
"""Longest call to a member, instead of ten seconds: less than a claim."""
COOL_OFF_S = 2.0 * SLOW
