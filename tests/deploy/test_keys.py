"""Where keys come from, and that none is generated where it would be lost."""

from pathlib import Path

import pytest
from cryptography.fernet import Fernet
from django.core.exceptions import ImproperlyConfigured

from deploy.config import keys

KEY, OTHER = Fernet.generate_key().decode(), Fernet.generate_key().decode()


def of(environ: dict[str, str], folder: Path, *, sqlite: bool = True) -> tuple[str, list[str]]:
    about = {"may_generate": sqlite}
    return keys.secret_key(environ, folder, **about), keys.encryption_keys(environ, folder, **about)


def test_it_generates_keys_beside_sqlite_once(tmp_path):
    first = of({}, tmp_path)
    assert of({}, tmp_path) == first and {path.stat().st_mode & 0o777 for path in tmp_path.iterdir()} == {0o600}


@pytest.mark.parametrize("separator", [",", "\n", " , "])
def test_it_takes_keys_from_the_environment_and_from_files(tmp_path, separator):
    text = f"{KEY}{separator}{OTHER}"
    (tmp_path / "keys").write_text(f"{text}\n")
    (tmp_path / "secret").write_text("secret\n")
    stated = {"CONVOY_SECRET_KEY": "secret", "CONVOY_ENCRYPTION_KEYS": text}
    files = {"CONVOY_SECRET_KEY_FILE": f"{tmp_path}/secret", "CONVOY_ENCRYPTION_KEYS_FILE": f"{tmp_path}/keys"}
    assert of(stated, tmp_path, sqlite=False) == of(files, tmp_path, sqlite=False) == ("secret", [KEY, OTHER])


@pytest.mark.parametrize("missing", ["CONVOY_SECRET_KEY", "CONVOY_ENCRYPTION_KEYS"])
def test_beside_a_database_server_it_generates_none_and_says_what_to_do(tmp_path, missing):
    stated = {"CONVOY_SECRET_KEY": "secret", "CONVOY_ENCRYPTION_KEYS": KEY}
    del stated[missing]
    with pytest.raises(ImproperlyConfigured, match=f"set {missing}.* {missing}_FILE; the same for every process"):
        of(stated, tmp_path, sqlite=False)
    assert not list(tmp_path.iterdir())


def test_beside_a_database_server_it_names_the_file_of_a_key_that_was_generated_before(tmp_path):
    of({}, tmp_path)
    with pytest.raises(ImproperlyConfigured, match="CONVOY_ENCRYPTION_KEYS_FILE=.*encryption-key keeps the one"):
        of({"CONVOY_SECRET_KEY": "secret"}, tmp_path, sqlite=False)
    kept = {"CONVOY_SECRET_KEY": "x", "CONVOY_ENCRYPTION_KEYS_FILE": f"{tmp_path}/encryption-key"}
    assert of(kept, tmp_path, sqlite=False)[1] == of({}, tmp_path)[1]


@pytest.mark.parametrize(
    ("environ", "fault"),
    [
        ({"CONVOY_ENCRYPTION_KEYS": f"{KEY},short"}, "key 2 of CONVOY_ENCRYPTION_KEYS is no Fernet key"),
        ({"CONVOY_ENCRYPTION_KEYS": KEY, "CONVOY_ENCRYPTION_KEYS_FILE": "x"}, "both set"),
        ({"CONVOY_ENCRYPTION_KEYS_FILE": "/nowhere/at/all"}, "cannot be read"),
        ({"CONVOY_ENCRYPTION_KEYS_FILE": "/dev/null"}, "is empty"),
        ({"CONVOY_ENCRYPTION_KEYS": " , "}, "CONVOY_ENCRYPTION_KEYS has no key in it"),
    ],
    ids=str,
)
def test_it_refuses_keys_that_cannot_be_and_shows_none(tmp_path, environ, fault):
    with pytest.raises(ImproperlyConfigured, match=fault) as refusal:
        keys.encryption_keys(environ, tmp_path, may_generate=True)
    assert KEY not in str(refusal.value) and "short" not in str(refusal.value)


def test_it_takes_all_files_of_the_kubernetes_certificate_or_none():
    environ = {f"CONVOY_KUBE_{name}_FILE": f"/etc/tls/{name}" for name in ("CA", "CERT", "KEY")}
    assert keys.kube_tls({}) is None and str(keys.kube_tls(environ).certificate) == "/etc/tls/CERT"
    with pytest.raises(ImproperlyConfigured, match="CONVOY_KUBE_KEY_FILE: set all of"):
        keys.kube_tls({**environ, "CONVOY_KUBE_KEY_FILE": ""})
