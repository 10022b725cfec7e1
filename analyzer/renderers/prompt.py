"""Raw prompts: text that is tokenized as it stands, or token ids taken verbatim (`/v1/completions`).

No template is involved (vLLM 0.32 entrypoints/openai/completion/protocol.py).
"""

from __future__ import annotations

import numpy as np

from analyzer.core import Rendering
from analyzer.prompt_ids import encoded, truncated
from analyzer.renderers import Job, RenderFailed


class PromptRenderer:
    """Raw prompts, given as text or as token ids."""

    name = "prompt"
    rank = 20

    def fits(self, job: Job) -> bool:
        """Whether the prompt is raw, and can be tokenized where it is text."""
        conversation = job.conversation
        return conversation.token_ids is not None or (
            conversation.text is not None and conversation.suffix is None and job.tokenizer is not None
        )

    def render(self, job: Job) -> Rendering:
        """Ids verbatim, or the text's."""
        conversation = job.conversation
        if conversation.token_ids is not None:
            given = np.array(conversation.token_ids, dtype=np.int32)
            ids = truncated(given, conversation.truncation, max_model_len=job.max_model_len)
            return Rendering(token_ids=ids, source=self.name)
        text = self.render_text(job)
        if job.tokenizer is None:
            raise RenderFailed("no tokenizer: give --tokenizer DIR")
        ids = encoded(job.tokenizer, text, conversation, max_model_len=job.max_model_len)
        return Rendering(token_ids=ids, source=self.name, text=text)

    def render_text(self, job: Job, *, generation_prompt: bool = True) -> str:
        """The prompt itself; a raw prompt has no generation prompt."""
        if job.conversation.text is None:
            raise RenderFailed("the prompt was given as token ids, without text")
        if job.conversation.suffix is not None:
            raise RenderFailed("a prompt with a suffix is rendered by the model's own encoder only")
        return job.conversation.text


RENDERER = PromptRenderer()
