"""Guards of the product that the engine can take out, to show that the judge would see it: ``--mutate claim-check``.

A mutation changes the text of one module before it is imported. A text that is not there any more is an error, so that a guard
which is rewritten has to be named anew here.
"""

import importlib.machinery
import importlib.util
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType


@dataclass(frozen=True, slots=True)
class Mutation:
    module: str
    before: str
    after: str
    meaning: str

    def source(self, text: str) -> str:
        if text.count(self.before) != 1:
            raise ValueError(f"{self.module} has {text.count(self.before)} times {self.before!r}: name the guard anew")
        return text.replace(self.before, self.after)


MUTATIONS = {
    "claim-check": Mutation(
        "jobs.services.lifecycle.works",
        '        raise ClaimLost(f"{work} is not ours to do any more")\n',
        "        return\n",
        "a worker writes to a member although its claim is lost",
    ),
    "report-fence": Mutation(
        "jobs.services.follow.status",
        "job is None or job.shares or job.attempt != attempt or not _is_expected(job, attempt, cluster_id)",
        "job is None or job.shares",
        "a report of an earlier attempt counts as one of the current attempt",
    ),
    "attempt-fence": Mutation(
        "jobs.services.dispatch.members.member_objects",
        "    if mark.attempt == attempt:\n",
        "    if mark.attempt:\n",
        "an object of any attempt is taken for that of the worker's own",
    ),
    "withdraw-on-failure": Mutation(
        "jobs.services.failover.failover",
        "    works.withdraw_live(job, now, ended=ended)\n",
        "",
        "the copy of a job that is given up is not withdrawn",
    ),
    "preconditions": Mutation(
        "jobs.services.dispatch.members.member_objects",
        'uid=metadata["uid"], version=metadata["resourceVersion"])',
        'uid="", version="")',
        "a deletion names neither the uid nor the version that was checked",
    ),
}


class _Finder(importlib.machinery.PathFinder):
    mutation: Mutation

    @classmethod
    def find_spec(
        cls, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname != cls.mutation.module:
            return None
        spec = super().find_spec(fullname, path, target)
        assert spec is not None and spec.origin is not None
        spec.loader = _Loader(fullname, spec.origin)
        return spec


class _Loader(importlib.machinery.SourceFileLoader):
    def get_code(self, fullname: str) -> object:  # type: ignore[override]  # the code, never the compiled file beside it
        text = _Finder.mutation.source(Path(self.path).read_text())
        return compile(text, self.path, "exec")


def install(name: str) -> None:
    """From now on the module is imported with its guard taken out."""
    _Finder.mutation = MUTATIONS[name]
    assert _Finder.mutation.module not in sys.modules, "the product is imported already"
    sys.meta_path.insert(0, _Finder)
