"""The parts that all controllers share: informers, work queues, conditions, clocks."""
