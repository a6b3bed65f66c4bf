"""Images that stand for virtual environments of this machine: a pod with such an image runs as a process with their programs.

``CONVOY_PROCESS_IMAGES=IMAGE=FOLDER,IMAGE=FOLDER`` configures them. Programs that create pods themselves, as DLRover's master
creates its workers, then need no annotation.
"""

from collections.abc import Mapping
from pathlib import Path

SETTING = "CONVOY_PROCESS_IMAGES"
RUN = "convoy.dev/run"
"""The annotation of pods that run as ``process``."""


class BadImages(ValueError):
    """The setting is invalid. The message shows the wrong entry."""


def parse(environ: Mapping[str, str]) -> dict[str, Path]:
    """Maps each image to the folder of its virtual environment. Raises `BadImages`."""
    images = {}
    for entry in filter(None, environ.get(SETTING, "").replace("\n", ",").split(",")):
        image, separator, folder = entry.strip().partition("=")
        if not separator or not (Path(folder) / "bin" / "python").exists():
            raise BadImages(
                f"{SETTING}: {entry.strip()!r} is not IMAGE=FOLDER with the folder of a virtual environment"
            )
        images[image] = Path(folder)
    return images
