"""A real API server as a cluster: credentials, requests, watches, streams of pods."""
