"""A Kubernetes API server without storage, users or network code: it answers HTTP requests as an ASGI application.

The fleet's API (`fleet.kubeapi`) and the API of a simulated member (`simulator.apiserver`) are this server. Each supplies
its kinds with their storage (`kinds.Kind`, `kinds.History`), who may do what (`app.Server.authenticate` and `authorize`),
and what is recorded of a write (`app.Server.attempt`).
"""
