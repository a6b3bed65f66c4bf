"""Which size a job gets after a reclaim took some of its pods and no others came in their place. Pure.

The size follows the pods that are left only where the job's operator would then end none of them.
"""

from collections.abc import Collection, Mapping

from jobs.core.resizing.bounds import Sizes

Bound = Mapping[str, Collection[int]]
"""Role -> the indexes of its pods that have a node."""


def missing(sizes: Sizes, bound: Bound) -> set[str]:
    """The roles with fewer such pods than their size."""
    return {role for role, size in sizes.items() if len(bound[role]) < size}


def smaller(sizes: Sizes, bound: Bound, *, ends_last: bool, ends_any: bool) -> dict[str, int]:
    """The roles that become smaller, with their new size.

    An operator that ends the last pods would end one that runs for one that left before it; one that ends any, any that runs.
    """
    if ends_any:
        return {}
    left = {role: max(bound[role], default=-1) + 1 if ends_last else len(bound[role]) for role in missing(sizes, bound)}
    return {role: size for role, size in left.items() if size < sizes[role]}
