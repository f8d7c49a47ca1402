"""Doors of running pods, as an API server opens them: logs, programs, ports."""
