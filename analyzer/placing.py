"""Gives each prompt its place in the capture: its conversation, its parent, and where it leaves it.

It renders nothing and predicts nothing.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from analyzer.blocks import common_prefix
from analyzer.core import TokenIds
from analyzer.divergences import DivergenceFinder, Pair
from analyzer.lineage import Lineage
from analyzer.prompts import Prompt
from analyzer.renderers import unexpected
from analyzer.turns import Placed, Relation


class Placer:
    """Gives each prompt its place, one after another."""

    def __init__(self, finder: DivergenceFinder) -> None:
        self._finder = finder
        self._rendered: list[Prompt] = []
        self._ids: list[TokenIds] = []
        self._lineage = Lineage(lambda a, b: common_prefix(self._ids[a], self._ids[b]))
        self._parents: set[int] = set()

    def place(self, prompt: Prompt) -> Placed:
        """The next prompt's place; a prompt that was not rendered has none, and becomes no parent."""
        rendering = prompt.rendering
        if rendering is None or prompt.conversation is None:
            return Placed(prompt=prompt)
        self._ids.append(rendering.token_ids)
        request = prompt.source.request
        try:
            place = self._lineage.place(prompt.conversation, (request.dialect, request.model))
        except Exception as error:  # it has read the prompt in vain, and holds nothing of it
            self._ids.pop()
            problem = f"not placed: {unexpected(error)}"
            return Placed(prompt=replace(prompt, rendering=None, verdict=None, problem=problem))
        # The parsed messages of all turns would outweigh everything else that is kept.
        prompt = replace(prompt, conversation=None)
        self._rendered.append(prompt)
        if place.parent is None:
            return Placed(prompt=prompt, place=place)
        return Placed(prompt=prompt, place=place, relation=self._relate(place.parent, len(self._ids) - 1))

    def complete(self, placed: Placed, prompt: Prompt) -> Placed | None:
        """The place of a prompt that was placed before its answer came, with all that is known of it now.

        None where it would have another one, or another child: then all are to be placed anew.
        """
        before, now = placed.prompt.rendering, prompt.rendering
        if before is None or now is None:
            return replace(placed, prompt=prompt) if before is now else None
        prompt = replace(prompt, conversation=None)
        number = next(at for at, kept in enumerate(self._rendered) if kept.key == prompt.key)
        if not np.array_equal(before.token_ids, now.token_ids):
            return None
        if number in self._parents and _told_ids(prompt) is not None:
            return None  # a child was compared with it without its answer
        self._rendered[number] = prompt
        return replace(placed, prompt=prompt)

    def _relate(self, parent: int, child: int) -> Relation:
        self._parents.add(parent)
        pair = Pair(
            parent=self._rendered[parent].key,
            child=self._rendered[child].key,
            parent_ids=self._ids[parent],
            child_ids=self._ids[child],
            answer_ids=_told_ids(self._rendered[parent]),
        )
        return Relation(
            parent=self._rendered[parent],
            parent_tokens=len(self._ids[parent]),
            common_tokens=common_prefix(self._ids[parent], self._ids[child]),
            parting=self._finder.find(pair),
        )


def _told_ids(prompt: Prompt) -> TokenIds | None:
    """The ids of a prompt's answer, where the server told them and there was one answer."""
    if prompt.generated_source != "wire" or len(prompt.generated) != 1:
        return None
    return np.array(prompt.generated[0].token_ids, dtype=np.int32)
