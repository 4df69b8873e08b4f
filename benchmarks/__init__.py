"""Measurements against the peer package and plain library loops: ``./dev bench [NAME ...]``."""
