"""What every controller is made of: informers, work queues, conditions, clocks."""
