"""Models of a series taken apart: what all its instances share, and what is each one's own."""

from __future__ import annotations

import json
from typing import Any

Json = dict[str, Any]

_SCOPES = ("dataset", "file_meta")


def dumped(value: Any) -> str:
    """JSON as packs hold it: compact, keys sorted, text as UTF-8."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), sort_keys=True)


class Template:
    """What all models added so far have in common: elements equal as JSON, and the preamble."""

    def __init__(self, model: Json) -> None:
        self._elements = {scope: _dumped_elements(model[scope]) for scope in _SCOPES}
        self._preamble = model["preamble"]

    def add(self, model: Json) -> None:
        """Leaves out what this model does not share."""
        for scope, shared in self._elements.items():
            elements = model[scope]
            for tag in [tag for tag, text in shared.items() if not _is(elements.get(tag), text)]:
                del shared[tag]
        if model["preamble"] != self._preamble:
            self._preamble = None

    def to_json(self) -> str:
        """The template as packs hold it."""
        scopes = ",".join(
            f'"{scope}":{{{",".join(f"{json.dumps(t)}:{v}" for t, v in sorted(shared.items()))}}}'
            for scope, shared in self._elements.items()
        )
        return f'{{{scopes},"preamble":{dumped(self._preamble)}}}'

    def delta(self, model: Json) -> str:
        """What the model has beyond the template, as packs hold it."""
        delta: Json = {
            scope: {tag: e for tag, e in model[scope].items() if tag not in shared}
            for scope, shared in self._elements.items()
        }
        delta["preamble"] = None if self._preamble is not None else model["preamble"]
        if "errors" in model:
            delta["errors"] = model["errors"]
        return dumped(delta)


def merged(template: Json, delta: Json) -> Json:
    """The model that was taken apart."""
    model: Json = {scope: {**template[scope], **delta[scope]} for scope in _SCOPES}
    preamble = template.get("preamble")
    model["preamble"] = delta.get("preamble") if preamble is None else preamble
    if "errors" in delta:
        model["errors"] = delta["errors"]
    return model


def _dumped_elements(elements: Json) -> dict[str, str]:
    return {tag: dumped(element) for tag, element in elements.items()}


def _is(element: Any, text: str) -> bool:
    return element is not None and dumped(element) == text
