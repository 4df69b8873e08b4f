"""Schemas of medical records over packs: builders and readers, a module a schema."""
