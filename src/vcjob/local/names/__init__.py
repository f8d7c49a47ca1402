"""Names of pods and Services: the files in a pod, the records, the server that answers."""

CLUSTER_DOMAIN = "cluster.local"
"""The domain of every name, as nearly all clusters have it."""
