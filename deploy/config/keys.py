"""The keys of an installation: from the environment, from a file that a secret is mounted as, or generated in the home folder.

A generated key is for one machine with its database beside it. Beside a database server it is refused: each machine would make
a key of its own, and a database that is restored without the folder could not be read.
"""

from collections.abc import Mapping
from pathlib import Path

from cryptography.fernet import Fernet
from django.core.exceptions import ImproperlyConfigured

from deploy.config import home
from fleet.kube.pki import Files

_KUBE_FILES = ("CONVOY_KUBE_CA_FILE", "CONVOY_KUBE_CERT_FILE", "CONVOY_KUBE_KEY_FILE")
SECRET, ENCRYPTION = "CONVOY_SECRET_KEY", "CONVOY_ENCRYPTION_KEYS"


def secret_key(environ: Mapping[str, str], folder: Path, *, may_generate: bool) -> str:
    if text := stated(environ, SECRET):
        return text
    _require(may_generate, SECRET, folder / "secret-key")
    return home.secret(folder, "secret-key")


def encryption_keys(environ: Mapping[str, str], folder: Path, *, may_generate: bool) -> list[str]:
    """The first encrypts, all of them decrypt."""
    text = stated(environ, ENCRYPTION)
    keys = text.replace(",", " ").split()
    if text and not keys:
        raise ImproperlyConfigured(f"{ENCRYPTION} has no key in it: unset it, or make a key with {_MAKE}")
    for number, key in enumerate(keys, 1):
        _check(key, number)
    if keys:
        return keys
    _require(may_generate, ENCRYPTION, folder / "encryption-key")
    return [home.encryption_key(folder, "encryption-key")]


def kube_tls(environ: Mapping[str, str]) -> Files | None:
    files = {name: environ.get(name, "").strip() for name in _KUBE_FILES}
    if missing := [name for name, path in files.items() if not path]:
        if len(missing) < len(files):
            raise ImproperlyConfigured(f"{' and '.join(missing)}: set all of {', '.join(_KUBE_FILES)}, or none")
        return None
    authority, certificate, key = map(Path, files.values())
    return Files(authority, certificate, key)


def stated(environ: Mapping[str, str], name: str) -> str:
    """What the variable says, or the file that ``<name>_FILE`` names."""
    text, path = environ.get(name, "").strip(), environ.get(f"{name}_FILE", "").strip()
    if text and path:
        raise ImproperlyConfigured(f"{name} and {name}_FILE are both set: unset one of them")
    if not path:
        return text
    try:
        content = Path(path).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as e:
        raise ImproperlyConfigured(f"{name}_FILE={path} cannot be read: {e}") from e
    if not content:
        raise ImproperlyConfigured(f"{name}_FILE={path} is empty")
    return content


def _check(key: str, number: int) -> None:
    """Says which key is wrong, and nothing of it."""
    try:
        Fernet(key)
    except ValueError as e:
        raise ImproperlyConfigured(f"key {number} of {ENCRYPTION} is no Fernet key: make one with {_MAKE}") from e


def _require(may_generate: bool, name: str, kept: Path) -> None:
    if may_generate:
        return
    if kept.exists():
        raise ImproperlyConfigured(
            f"{name} is not set, and generated keys are not used beside a database server: {name}_FILE={kept} keeps the one"
            " that was generated before; keep a copy of it elsewhere"
        )
    remedy = f"{name}: make one with {_MAKE}" if name == ENCRYPTION else f"{name}, a long random text"
    raise ImproperlyConfigured(
        f"beside a database server set {remedy}, or name a file in {name}_FILE; the same for every process"
    )


_MAKE = 'python -c "from cryptography.fernet import Fernet; print(Fernet.generate_key().decode())"'
