"""Why and how, over REST: explanations, history, logs, ranks, GPUs, notices, what-if answers. Reads only."""
