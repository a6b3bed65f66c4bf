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
    """The machine was so busy that the world did not keep its own times: what is found is not to be trusted."""
    excused: bool = False
    """So busy that members did not answer in time: what that excuses was not judged either."""
    settled_s: float = 0.0
    took_s: float = 0.0
    processor_s: float = 0.0
    waited_s: float = 0.0
    """For a processor, all its threads together."""
    effects: list[str] = field(default_factory=list)
    """What of that which users and members do was really carried out (`effects`)."""
    mutation: str = ""
    """Which guard of the product was taken out for it."""

    def write(self, file: Path) -> None:
        file.write_text(json.dumps(asdict(self)))

    @classmethod
    def read(cls, file: Path) -> "Verdict":
        return cls(**json.loads(file.read_text()))
