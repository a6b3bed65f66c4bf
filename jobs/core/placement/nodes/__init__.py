"""Which nodes of a cluster take the pods of a gang: capacity by the states of nodes, fitting, packing, fragmentation."""
