"""Bodies of the corpus whose ids are known to differ from vLLM's, and why: a report's row shows it."""

from __future__ import annotations

KNOWN: dict[str, dict[str, str]] = {}
"""Set-up, case, reason. A case that comes to agree fails its test until it leaves this list."""
