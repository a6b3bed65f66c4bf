"""Builds manifests of a kustomization with the kustomize of a stock kubectl, which is not part of Convoy."""

import shutil
import subprocess
import sys
from pathlib import Path

from frontend.cli.problems import Exit, Problem, missing

NAMES = ("kustomization.yaml", "kustomization.yml", "Kustomization")
_LONGEST_S = 300.0
"""A kustomization may name others by URL."""


def build(directory: str) -> bytes:
    """The manifests that `kubectl kustomize` prints. kubectl is looked for on PATH, then beside `convoy`."""
    path = Path(directory)
    if path.is_dir() and not any((path / name).is_file() for name in NAMES):
        raise missing(f"there is no {NAMES[0]} in {directory}", "-f applies plain manifests")
    program = shutil.which("kubectl") or shutil.which("kubectl", path=str(Path(sys.executable).parent))
    if program is None:
        hint = "install kubectl, or build elsewhere: kustomize build DIR | convoy apply -f -"
        raise Problem("-k needs kubectl, which builds kustomizations, and there is none on PATH", hint=hint)
    try:
        built = subprocess.run([program, "kustomize", directory], capture_output=True, timeout=_LONGEST_S, check=False)
    except subprocess.TimeoutExpired as e:
        raise Problem(f"{directory} was not built within {_LONGEST_S:.0f} s", exit_code=Exit.TIMEOUT) from e
    if built.returncode:
        error = built.stderr.decode(errors="replace").strip().removeprefix("error: ")
        raise Problem(f"cannot build {directory}: {error}", exit_code=Exit.USAGE)
    return built.stdout
