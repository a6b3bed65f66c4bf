"""Signals of changes of entitlement, for the apps above, which are not known here."""

from django.dispatch import Signal

tree_changing = Signal()
"""Sent with ``before`` and ``after`` (`quotas.core.trees.tree.Tree`, or None) before a change is written, in its transaction,
and with ``by``, the name of its author. A receiver answers with a sentence to refuse a change that would strand jobs, or with
nothing; it names no job that the author may not see."""

tree_changed = Signal()
"""Sent on commit: jobs may fit now that did not before, or belong elsewhere."""

queue_changed = Signal()
"""Sent on commit with ``queue`` (its primary key) and ``state``: its jobs may start again, or must be taken back."""
