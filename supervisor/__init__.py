"""Runs in a member: gives the pods of elastic jobs notice before their places are taken back. Needs no fleet and no Django.

``core`` decides without a clock or network. What is known and what was done stands on objects of the member only.
"""
