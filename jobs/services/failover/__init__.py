"""Failover: records why attempts fail, moves jobs off clusters, resumes copies on recovered clusters, and handles shares."""
