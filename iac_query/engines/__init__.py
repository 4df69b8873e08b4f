"""Packs in query engines, a module each."""
