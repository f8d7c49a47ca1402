"""What the end-to-end suite works with: any API server, by its kubeconfig and standard API only.

No pod runs: the suite is their node, and where the cluster has no scheduler for gangs also that.
"""
