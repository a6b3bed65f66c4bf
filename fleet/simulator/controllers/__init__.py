"""The controllers that bring a member to life: nodes, scheduler, kubelet, training operator, Job controller, collector.

Each is a plain client of an API server and keeps no private door to it, so the same code drives the simulated server and
a real kube-apiserver. They know nothing of Convoy.
"""
