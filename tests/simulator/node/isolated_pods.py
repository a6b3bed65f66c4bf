"""Process pods for the tests of what they cannot reach."""

import textwrap
from pathlib import Path

import pytest

SECRET = "the-control-plane's-own-secret"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A control plane's home with its keys, and the folder of one simulated member in it."""
    home = tmp_path / "convoy"
    tmp_path.chmod(0o755)
    (home / "broker").mkdir(parents=True)
    for name in ("encryption-key", "convoy.sqlite3", "admin-password", "broker/server.conf"):
        (home / name).write_text(SECRET)
    monkeypatch.setenv("CONVOY_HOME", str(home))
    monkeypatch.setenv("CONVOY_BROKER_PASSWORD", SECRET)
    return home


def pod(script: str, uid: str, job: str = "job1", **spec: object) -> dict:
    container = {"name": "x", "command": ["python3", "-c", textwrap.dedent(script)], **spec.pop("container", {})}  # type: ignore[dict-item]
    owners = [{"kind": "PyTorchJob", "uid": job, "controller": True}]
    meta = {"name": uid, "namespace": "default", "uid": uid, "ownerReferences": owners}
    return {"metadata": meta, "spec": {"containers": [container], **spec}}


def fetch(_kind: str, _namespace: str, _name: str) -> dict[str, str]:
    return {"token": "s3cret"}
