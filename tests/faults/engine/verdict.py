"""What became of one schedule, as it travels from the process that ran it to the one that reports."""

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path


@dataclass
class Verdict:
    seed: int
    schedule: str
    faults: list[str]
    reached: list[bool] = field(default_factory=list)
    struck: list[str] = field(default_factory=list)
    looks: int = 0
    starved: bool = False
    """The machine was so busy that members did not answer in time: what that excuses was not judged."""
    settled_s: float = 0.0
    took_s: float = 0.0
    processor_s: float = 0.0
    waited_s: float = 0.0
    """For a processor, all its threads together."""
    mutation: str = ""
    """Which guard of the product was taken out for it."""

    def write(self, file: Path) -> None:
        file.write_text(json.dumps(asdict(self)))

    @classmethod
    def read(cls, file: Path) -> "Verdict":
        return cls(**json.loads(file.read_text()))
