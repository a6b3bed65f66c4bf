"""Every setting of the product, read once from the environment and refused loudly when it makes no sense.

With nothing set, the product runs from ``CONVOY_HOME`` (default ``.convoy`` in the checkout): SQLite, and whatever broker
the supervisor found. In production: ``DATABASE_URL``, ``REDIS_URL``, ``CONVOY_SECRET_KEY``, ``CONVOY_ENCRYPTION_KEYS``
(or files with them), ``CONVOY_ALLOWED_HOSTS``.
"""

import sys
from pathlib import Path

import environ
from csp.constants import SELF
from django.core.exceptions import ImproperlyConfigured
from kombu import Queue

from deploy.config import csp, home, keys, logs, oidc, operator, traces
from deploy.config.beat_schedule import Every
from fleet.core.log_bucket import LogBucket
from fleet.core.security.audit_sinks import Sinks
from fleet.core.security.webhooks import Webhook

env = environ.Env()
_operator = operator.read_all(env.ENVIRON)
ROOT = Path(__file__).resolve().parent.parent.parent
CONVOY_HOME = Path(env.str("CONVOY_HOME", default=str(ROOT / ".convoy")))

DEBUG = env.bool("CONVOY_DEBUG", default=False)
DATABASES = {"default": env.db("DATABASE_URL", default=f"sqlite:///{CONVOY_HOME / 'convoy.sqlite3'}")}
_beside_file = DATABASES["default"]["ENGINE"].endswith("sqlite3")
SECRET_KEY = keys.secret_key(env.ENVIRON, CONVOY_HOME, may_generate=_beside_file)
CONVOY_ENCRYPTION_KEYS = keys.encryption_keys(env.ENVIRON, CONVOY_HOME, may_generate=_beside_file)
"""Fernet keys for credentials at rest: the first encrypts, all decrypt."""
LOOPBACK_NAMES = frozenset({"127.0.0.1", "localhost", "[::1]"})
ALLOWED_HOSTS = env.list("CONVOY_ALLOWED_HOSTS", default=sorted(LOOPBACK_NAMES))
CSRF_TRUSTED_ORIGINS = env.list("CONVOY_TRUSTED_ORIGINS", default=[])

INSTALLED_APPS = [
    "unfold",
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "channels",
    "rest_framework",
    "django_filters",
    "drf_spectacular",
    "drf_spectacular_sidecar",
    "csp",
    "axes",
    "fleet",
    "quotas",
    "jobs",
]
MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "csp.middleware.CSPMiddleware",
    "deploy.config.csp.InlineScriptsMiddleware",
    "fleet.api.sign_in.cookies.OwnSessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "axes.middleware.AxesMiddleware",
    "fleet.api.http.auditing.AuditMiddleware",
]
ROOT_URLCONF = "deploy.config.urls"
WSGI_APPLICATION = "deploy.config.wsgi.application"
ASGI_APPLICATION = "deploy.config.asgi.application"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ]
        },
    }
]

DATABASE_POOL = {
    "min_size": 1,
    "max_size": _operator.process.database_pool,
    "timeout": 10,
    # The pool doubles its pauses between tries until this is over, and begins anew with the next request. By default that is
    # five minutes: a server that is back after minutes away would be looked for only minutes later.
    "reconnect_timeout": 5,
}
"""Of PostgreSQL's connections. A request that gets none in time is answered with 503, and `/readyz` says why."""
if _beside_file:
    # WAL alone fails under several writers; with IMMEDIATE transactions they queue instead.
    DATABASES["default"]["ENGINE"] = "deploy.config.sqlite3"
    DATABASES["default"]["OPTIONS"] = {
        "transaction_mode": "IMMEDIATE",
        "timeout": 20,
        "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; PRAGMA cache_size=-32000;",
    }
    DATABASES["default"]["CONN_MAX_AGE"] = None
    # Celery closes the connection before and after each task, unless this limits its uses. To open one costs
    # as much as a small task, which is done by the first statement that reads the whole schema again.
    CELERY_DB_REUSE_MAX = sys.maxsize
else:
    # A connection that the server has closed meanwhile is replaced when it is next used, not found by the statement that fails.
    DATABASES["default"]["CONN_HEALTH_CHECKS"] = True
    _options = DATABASES["default"].setdefault("OPTIONS", {})
    _options["pool"] = DATABASE_POOL
    # A process that is stopped in the middle of a transaction would keep its locks, a lease's among them, until it goes on.
    _idle = f"-c idle_in_transaction_session_timeout={round(_operator.process.transaction_idle_s * 1000)}"
    _options["options"] = f"{_idle} {_options.get('options', '')}".strip()
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

AUTHENTICATION_BACKENDS = [
    "fleet.api.sign_in.signing_in.LimitByUser",
    "axes.backends.AxesStandaloneBackend",
    "fleet.api.sign_in.passwords.PasswordBackend",
]
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator", "OPTIONS": {"min_length": 10}},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
]
AXES_FAILURE_LIMIT = 10
AXES_COOLOFF_TIME = 0.25
AXES_LOCKOUT_PARAMETERS = [["username", "ip_address"]]
AXES_ENABLE_ADMIN = False
AXES_HANDLER = "fleet.api.sign_in.passwords.Handler"
AXES_SENSITIVE_PARAMETERS = ["code"]
AXES_VERBOSE = False
LOGIN_URL = "/admin/login/"
SESSION_COOKIE_HTTPONLY = True
SESSION_COOKIE_SAMESITE = "Lax"
SESSION_COOKIE_AGE = 12 * 3600
CSRF_COOKIE_SAMESITE = "Lax"
CSRF_FAILURE_VIEW = "fleet.api.http.problems.csrf_failure"
SECURE_REFERRER_POLICY = "same-origin"
# Plain HTTP is for a browser on the same machine: a server with another name has TLS in front, unless it is stated otherwise.
if env.bool("CONVOY_HTTPS", default=not LOOPBACK_NAMES.issuperset(ALLOWED_HOSTS)):
    SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = True
    SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
    SECURE_HSTS_SECONDS = _operator.access.hsts_s
CONTENT_SECURITY_POLICY = {
    "EXCLUDE_URL_PREFIXES": csp.INLINE_SCRIPTS,
    "DIRECTIVES": {
        "default-src": [SELF],
        "img-src": [SELF, "data:"],
        "frame-ancestors": ["'none'"],
        "object-src": ["'none'"],
        "base-uri": [SELF],
    },
}

LANGUAGE_CODE = "en-us"
USE_I18N = True
USE_TZ = True
TIME_ZONE = "UTC"

SUPERVISOR_MANIFEST = ROOT / "deploy" / "supervisor-manifests" / "supervisor.yaml"
CONSOLE_DIST = ROOT / "frontend" / "web" / "dist"
STATIC_URL = "/static/"
STATIC_ROOT = Path(env.str("CONVOY_STATIC_ROOT", default=str(CONVOY_HOME / "static")))
STATIC_ROOT.mkdir(parents=True, exist_ok=True)
WHITENOISE_USE_FINDERS = True
WHITENOISE_ROOT = CONSOLE_DIST if CONSOLE_DIST.is_dir() else None
WHITENOISE_IMMUTABLE_FILE_TEST = r"^/assets/"
"""The console's build names these by a hash of their contents, so a browser need not ask for them again."""
DATA_UPLOAD_MAX_MEMORY_SIZE = 8 * 1024 * 1024

REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": [
        "fleet.api.sign_in.authentication.TokenAuthentication",
        "fleet.api.sign_in.authentication.CountedSession",
    ],
    "DEFAULT_PARSER_CLASSES": [
        "fleet.api.http.parsers.JsonBody",
        "rest_framework.parsers.FormParser",
        "rest_framework.parsers.MultiPartParser",
    ],
    "DEFAULT_PERMISSION_CLASSES": ["rest_framework.permissions.IsAuthenticated"],
    "DEFAULT_PAGINATION_CLASS": "fleet.api.http.pagination.Pages",
    "DEFAULT_FILTER_BACKENDS": [
        "django_filters.rest_framework.DjangoFilterBackend",
        "rest_framework.filters.SearchFilter",
        "rest_framework.filters.OrderingFilter",
    ],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_SCHEMA_CLASS": "drf_spectacular.openapi.AutoSchema",
    "EXCEPTION_HANDLER": "fleet.api.http.problems.handle",
    "UNAUTHENTICATED_USER": "django.contrib.auth.models.AnonymousUser",
}
SPECTACULAR_SETTINGS = {
    "TITLE": "Convoy",
    "DESCRIPTION": "Runs AI training jobs over a fleet of Kubernetes clusters.",
    "VERSION": "v1",
    "SERVE_INCLUDE_SCHEMA": False,
    "COMPONENT_SPLIT_REQUEST": True,
    "SWAGGER_UI_DIST": "SIDECAR",
    "SWAGGER_UI_FAVICON_HREF": "SIDECAR",
    "REDOC_DIST": "SIDECAR",
    "SERVE_PERMISSIONS": ["rest_framework.permissions.IsAuthenticated"],
    "ENUM_NAME_OVERRIDES": {
        "AuditOutcomeEnum": "fleet.models.audit.AuditEntry.Outcome",
        "StateEnum": "fleet.models.Cluster.State",
        "QueueStateEnum": "quotas.models.Queue.State",
        "ExcessPolicyEnum": "quotas.core.trees.tree.ExcessPolicy",
        "JobActionEnum": "jobs.services.submission.bulk.BulkAction",
        "TypeEnum": "fleet.models.Event.Type",
        "KindEnum": "jobs.core.explain.remedies.Kind",
        "IncidentKindEnum": "jobs.core.failover.incidents.IncidentKind",
        "SchemaTypeEnum": "fleet.kube.schema.fields.TYPES",
    },
}

UNFOLD = {
    "SITE_TITLE": "Convoy",
    "SITE_HEADER": "Convoy",
    "SITE_SUBHEADER": "Administration",
    "SITE_URL": "/",
    "SITE_SYMBOL": "conversion_path",
    "LOGIN": {"form": "fleet.admin_access.SignInForm"},
    "COLORS": {
        "primary": {
            "50": "oklch(0.97 0.014 231)",
            "100": "oklch(0.94 0.03 231)",
            "200": "oklch(0.88 0.058 231)",
            "300": "oklch(0.80 0.09 231)",
            "400": "oklch(0.70 0.115 231)",
            "500": "oklch(0.60 0.118 235)",
            "600": "oklch(0.52 0.11 238)",
            "700": "oklch(0.46 0.098 240)",
            "800": "oklch(0.40 0.08 241)",
            "900": "oklch(0.35 0.066 242)",
            "950": "oklch(0.27 0.05 243)",
        }
    },
}

REDIS_URL = env.str("REDIS_URL", default="")
if REDIS_URL:
    CHANNEL_LAYERS = {
        "default": {
            "BACKEND": "channels_redis.pubsub.RedisPubSubChannelLayer",
            "CONFIG": {"hosts": [{"address": REDIS_URL, "socket_timeout": 15}]},
        }
    }
    CELERY_BROKER_URL = REDIS_URL
    # A broker that is away may cost a moment, no more: what was not enqueued is found by the sweeps.
    CELERY_BROKER_TRANSPORT_OPTIONS: dict[str, object] = {
        # A task is a hint: the sweeps find in 2 s what a worker that died had taken, where the broker would send it again after
        # ten minutes. So it keeps no list of tasks that were taken, which costs as much as to deliver them.
        "ack_emulation": False,
        "priority_steps": [0],
        "max_retries": 1,
        "interval_start": 0,
        "interval_step": 0.2,
        "interval_max": 0.2,
    }
else:
    # No server at all: tasks travel as files, websockets follow the journal.
    CHANNEL_LAYERS = {"default": {"BACKEND": "channels.layers.InMemoryChannelLayer"}}
    CELERY_BROKER_URL = "files://localhost/"
    CELERY_BROKER_TRANSPORT_OPTIONS = home.filesystem_broker(CONVOY_HOME)
CELERY_TASK_IGNORE_RESULT = True
CELERY_TASK_ACKS_LATE = True
CELERY_TASK_REJECT_ON_WORKER_LOST = True
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
# A worker takes from both in turn: a thousand dispatches that wait do not keep a check waiting.
CELERY_TASK_QUEUES = [Queue("celery"), Queue("checks")]
# Enforced by `deploy.config.task_limits`: Celery's own enforcement needs a pool of processes.
CELERY_TASK_TIME_LIMIT = 180
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
CELERY_BEAT_SCHEDULE = {
    "heartbeat": {"task": "fleet.beat", "schedule": Every(5.0), "options": {"expires": 10}},
    "clusters": {"task": "fleet.check_clusters", "schedule": Every(2.0), "options": {"expires": 4, "queue": "checks"}},
    "jobs": {"task": "jobs.sweep", "schedule": Every(2.0), "options": {"expires": 4, "queue": "checks"}},
    "series": {"task": "jobs.record_series", "schedule": Every(10.0), "options": {"expires": 10, "queue": "checks"}},
    "gpus": {"task": "fleet.read_gpus", "schedule": Every(10.0), "options": {"expires": 10, "queue": "checks"}},
    "audit": {"task": "fleet.audit", "schedule": Every(5.0), "options": {"expires": 5, "queue": "checks"}},
    "housekeeping": {
        "task": "fleet.housekeeping",
        "schedule": Every(60.0),
        "options": {"expires": 60, "queue": "checks"},
    },
}

CONVOY_SCHEDULER = _operator.scheduler
CONVOY_CYCLE = _operator.cycle
CONVOY_WEIGHTS = _operator.weights
CONVOY_DISPATCH = _operator.dispatch
CONVOY_FAILOVER = _operator.failover
CONVOY_MEMBERS = _operator.members
CONVOY_ACCESS = _operator.access
CONVOY_NODE_EXCLUSIONS = _operator.node_exclusions
CONVOY_OIDC = oidc.settings(env.ENVIRON)
"""How users sign in with accounts of the company; without an issuer there is no such sign-in."""
CONVOY_RETENTION = _operator.retention
CONVOY_LOGS = _operator.logs
CONVOY_LOGS_FOLDER = env.str("CONVOY_LOGS_FOLDER", default="")
"""Where logs of ended pods are kept, encrypted: a folder that all web, kube and worker processes share; empty: the database."""
CONVOY_LOGS_S3 = LogBucket(
    url=env.str("CONVOY_LOGS_S3", default=""),
    access_key=env.str("CONVOY_LOGS_S3_ACCESS_KEY", default=""),
    secret_key=env.str("CONVOY_LOGS_S3_SECRET_KEY", default=""),
    region=env.str("CONVOY_LOGS_S3_REGION", default="us-east-1"),
)
"""The bucket that they are kept in; it goes before the folder."""
if _faults := CONVOY_LOGS_S3.faults():
    raise ImproperlyConfigured("; ".join(_faults))
CONVOY_SERIES = _operator.series
CONVOY_GPUS = _operator.gpus
CONVOY_GPU_EXPORTER_NAMESPACES = env.list(
    "CONVOY_GPU_EXPORTER_NAMESPACES",
    default=["gpu-operator", "gpu-operator-resources", "nvidia-gpu-operator", "gke-managed-system", "dcgm-exporter"],
)
"""Namespaces of members whose pods are believed to be dcgm-exporters, if they have its labels."""
CONVOY_DEVICE_RESOURCES = env.list("CONVOY_DEVICE_RESOURCES", default=[])
"""Resources that count as devices beside those that are known (`fleet.core.devices`): names, or patterns of names."""
CONVOY_AUDIT_SINKS = Sinks(
    file=env.str("CONVOY_AUDIT_FILE", default=""),
    syslog=env.str("CONVOY_AUDIT_SYSLOG", default=""),
    webhook=env.str("CONVOY_AUDIT_WEBHOOK", default=""),
    webhook_token=env.str("CONVOY_AUDIT_WEBHOOK_TOKEN", default=""),
)
"""Where the lines of the audit are handed on to."""
if _faults := CONVOY_AUDIT_SINKS.faults():
    raise ImproperlyConfigured("; ".join(_faults))
CONVOY_HANG_WEBHOOK = Webhook(
    url=env.str("CONVOY_HANG_WEBHOOK", default=""), secret=env.str("CONVOY_HANG_WEBHOOK_SECRET", default="")
)
"""What is called when a training hangs (`jobs.services.follow.hangs`)."""
if _faults := CONVOY_HANG_WEBHOOK.faults("CONVOY_HANG_WEBHOOK"):
    raise ImproperlyConfigured("; ".join(_faults))
CONVOY_LIMITS = _operator.limits
"""What one caller may take of one web or kube process."""
CONVOY_SIMULATOR = env.str("CONVOY_SIMULATOR", default="")
"""The home of the simulator whose members are joined here, where they may be broken on purpose; empty: there is none."""
CONVOY_TRACING = traces.is_on(env)
"""Whether spans are sent to an OpenTelemetry collector; the SDK reads where to from the same variables."""
CONVOY_KUBE_PORT = _operator.process.kube_port
CONVOY_KUBE_NAMES = env.list("CONVOY_KUBE_NAMES", default=[])
"""Names and addresses the Kubernetes-style API is reached by, besides this host's own: its certificate has them."""
CONVOY_KUBE_URL = env.str("CONVOY_KUBE_URL", default="")
"""Where `convoy kubeconfig` sends kubectl, when that is not this host at CONVOY_KUBE_PORT; its certificate is a public one."""
CONVOY_KUBE_TLS = keys.kube_tls(env.ENVIRON)
"""Files of its certificate, of an authority that several replicas share; None: it is made in the home folder."""
CONVOY_TRUSTED_PROXIES = env.list("CONVOY_TRUSTED_PROXIES", default=[])
"""Addresses and networks of proxies whose X-Forwarded-For is believed."""
CONVOY_HEAD_S = _operator.process.head_s
CONVOY_BODY_S = _operator.process.body_s
CONVOY_SEND_S = _operator.process.send_s
CONVOY_PRIVATE_MEMBERS = env.bool("CONVOY_PRIVATE_MEMBERS", default=True)
"""Whether members may live on loopback and private addresses. Off where untrusted users may join clusters."""

LOGGING = logs.configured(env.str("CONVOY_LOG_FORMAT", default="json"), env.str("CONVOY_LOG_LEVEL", default="INFO"))
