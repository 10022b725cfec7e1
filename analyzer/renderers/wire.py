"""Takes the token ids that the server itself returned (`return_token_ids`; vLLM 0.32 chat serving.py:561).

It renders nothing: where the response carries no ids, it does not fit.
"""

from __future__ import annotations

import numpy as np

from analyzer.core import Rendering
from analyzer.renderers import Job, RenderFailed


class WireRenderer:
    """The ids the server returned with its response."""

    name = "wire"
    rank = 0

    def fits(self, job: Job) -> bool:
        """Whether the response carries this prompt's ids."""
        return _index(job) < len(job.reply.prompt_token_ids)

    def render(self, job: Job) -> Rendering:
        """The ids as returned."""
        if not self.fits(job):
            raise RenderFailed("the response carries no prompt_token_ids; ask for return_token_ids")
        ids = job.reply.prompt_token_ids[_index(job)]
        return Rendering(token_ids=np.array(ids, dtype=np.int32), source=self.name)

    def render_text(self, job: Job, *, generation_prompt: bool = True) -> str:
        """The wire carries ids, not text."""
        raise RenderFailed("the server returned token ids without their text")


def _index(job: Job) -> int:
    # Completions repeat a prompt's ids with each of its choices (vLLM 0.32 completion/serving.py).
    return job.conversation.prompt_index * job.conversation.choices


RENDERER = WireRenderer()
