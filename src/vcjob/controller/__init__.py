"""Carrying plans out against any ``Cluster``: caches, work queue, applying."""
