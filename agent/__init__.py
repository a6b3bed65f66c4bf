"""Runs in a member: stops the copies that depend on the fleet's Lease when the member is cut off. Needs no fleet and no Django.

It has no way into the fleet and no state of its own: what it has to do follows from the Lease and the copies.
"""
