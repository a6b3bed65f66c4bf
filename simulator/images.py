"""Images that this machine has as virtual environments: a pod whose image is one of them runs as a process, with its programs.

``CONVOY_PROCESS_IMAGES=IMAGE=FOLDER,IMAGE=FOLDER`` names them. A stock program that makes pods by itself, as DLRover's master
makes its workers, then needs no annotation of ours.
"""

from collections.abc import Mapping
from pathlib import Path

SETTING = "CONVOY_PROCESS_IMAGES"
RUN = "convoy.dev/run"
"""The annotation of pods that run as ``process``."""


class BadImages(ValueError):
    """The setting cannot mean anything; the message says where."""


def parse(environ: Mapping[str, str]) -> dict[str, Path]:
    """Image to the folder of its virtual environment. Raises `BadImages`."""
    images = {}
    for entry in filter(None, environ.get(SETTING, "").replace("\n", ",").split(",")):
        image, separator, folder = entry.strip().partition("=")
        if not separator or not (Path(folder) / "bin" / "python").exists():
            raise BadImages(
                f"{SETTING}: {entry.strip()!r} is not IMAGE=FOLDER with the folder of a virtual environment"
            )
        images[image] = Path(folder)
    return images
