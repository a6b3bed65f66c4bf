"""Inspection: explanations, what-if answers, history, logs and maps. Reads only."""
