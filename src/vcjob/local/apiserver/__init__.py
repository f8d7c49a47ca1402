"""The engine as a Kubernetes API server: HTTP in front of the store. ``server.serve`` starts it."""
