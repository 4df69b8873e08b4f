"""From record references to payloads."""
