"""The container runtime of simulated nodes: processes of pods, isolated on this machine, and the network between them."""
