"""By the definitions, without a ledger: what fits, and who is in whose right."""

import numpy as np

from quotas.core.queues import admission
from quotas.core.queues.admission import Admitted, check_admission


def anywhere(_gone):
    return True


def fits_without(ledger, preemptor, jobs):
    with ledger.released(job.charge for job in jobs):
        charge = preemptor.charge
        return isinstance(
            check_admission(ledger, charge.leaf, charge.amounts, preemptible=charge.preemptible), Admitted
        )


def in_its_right(ledger, preemptor, victims):
    """By the definition: with these gone, what it takes from others is within the min of its side of the parting."""
    others = [job for job in victims if job.leaf != preemptor.leaf]
    way, asked = ledger.path_rows[preemptor.leaf], ledger.vector(preemptor.charge.amounts)
    with ledger.released(job.charge for job in victims):
        within = admission.within_min(ledger, asked, way)
    short = admission.find_short(ledger, asked, way)
    promised = (asked > 0) & ledger.min[1:].any(axis=0)
    for job in others:
        parting = next(step for step, row in enumerate(way) if row in ledger.path_rows[job.leaf])
        helps = short[parting:].any(axis=0) & (ledger.vector(job.charge.amounts) > 0)
        if ((helps | promised) & ~within[parting - 1]).any():
            return False
    own = sum(ledger.vector(job.charge.amounts) for job in victims if job.leaf == preemptor.leaf)
    most = np.maximum(ledger.held.used[way[0]], ledger.min[way[0]])
    swaps = ledger.held.used[way[0]] + asked - own <= most
    return len(others) == len(victims) or (swaps | ~promised).all()
