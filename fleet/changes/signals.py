"""Signals of supply for the apps above, which the fleet does not know. Sent after the commit; receivers only enqueue tasks."""

from django.dispatch import Signal

cluster_changed = Signal()
"""``cluster_id``: its state, taints, cordon or served kinds changed, or it joined or left."""
capacity_freed = Signal()
"""``cluster_id``: some node has more room than before, or a hold ended."""
detaching = Signal()
"""``cluster``: may it leave? Asked inside the transaction; a receiver says no by returning a sentence."""
