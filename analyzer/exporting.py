"""Writes a capture as others replay it: what `export` does.

What a format may see is chosen here, and no text of a prompt is among it. Data goes to stdout, a file or a
folder; what is not in it is told on stderr.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import click

from analyzer.exports import Exported, ExportForm, Row, Trace
from analyzer.importing import MADE_UP_TIMES, how_imported
from analyzer.no_text import without_text
from analyzer.open_capture import open_capture
from analyzer.pipeline import Analysis, Options
from analyzer.prompts import Prompt
from analyzer.registry import plugins
from analyzer.reporting import DONE, FAILED, check_usage, read_analysis
from analyzer.servers import ServerProfile, read_profile, read_settings
from analyzer.whole_file import write_whole
from store.records import ServerFact

_SESSION, _PARENT_SESSION = "x-session-id", "x-parent-session-id"
"""What agents name their sessions by, of the headers that a capture keeps."""


def run_export(target: str, options: Options, *, form: str, output: Path | None) -> int:
    """Write one export; returns the exit status: 1 where there was nothing to write.

    Raises click.UsageError for a format that is none, and what an analysis raises.
    """
    chosen = _form(form)
    check_usage(options)
    analysis = read_analysis(target, replace(options, explain=False), no_text=True)
    with open_capture(target) as capture:
        facts = capture.facts()
    adapters = read_profile(facts).adapters | set(read_settings(facts, options.serve_command).lora_modules)
    trace = trace_of(analysis, read_profile(facts), adapters)
    exported = chosen.export(trace)
    if exported.rows:
        _write(exported, output)
    for note in (*without_text(analysis.report).problems, *exported.notes, *_doubts(trace, facts)):
        print(f"locality: {note}", file=sys.stderr)
    print(f"{exported.rows} of {len(trace.rows)} prompts exported", file=sys.stderr)
    return DONE if exported.rows else FAILED


def trace_of(analysis: Analysis, profile: ServerProfile, adapters: frozenset[str] | set[str]) -> Trace:
    """An analysis as formats may see it."""
    names = _ModelNames({*adapters, *([profile.model] if profile.model else [])})
    turns = {(turn.id, turn.prompt_index): turn for turn in analysis.report.turns}
    rows = []
    for placed in analysis.placed:
        prompt = placed.prompt
        request = prompt.source.request
        namespace = request.namespace(frozenset(adapters))
        headers = {name.lower(): value for name, value in prompt.source.exchange.request_headers}
        counted, retokenized = _output_tokens(prompt)
        rows.append(
            Row(
                turn=turns[prompt.key],
                key=prompt.key,
                parent=placed.relation.parent.key if placed.relation else None,
                token_ids=None if prompt.rendering is None else prompt.rendering.token_ids,
                namespace=(namespace.adapter, namespace.cache_salt),
                model=names.shown(request.model),
                streams=request.streams,
                media=prompt.traits.media,
                output_tokens=counted,
                output_retokenized=retokenized,
                finish=prompt.generated[0].finish if len(prompt.generated) == 1 else None,
                session=headers.get(_SESSION),
                parent_session=headers.get(_PARENT_SESSION),
            )
        )
    return Trace(rows=tuple(rows), engine=analysis.report.server.engine)


class _ModelNames:
    """The server's own names are safe to show; what else a client wrote there may be anything: a number."""

    def __init__(self, known: set[str]) -> None:
        self._known = known
        self._numbers: dict[str, int] = {}

    def shown(self, name: str | None) -> str | None:
        """The name, or a placeholder that is equal for equal names."""
        if name is None or name in self._known:
            return name
        return f"model-{self._numbers.setdefault(name, len(self._numbers) + 1)}"


def _output_tokens(prompt: Prompt) -> tuple[int | None, bool]:
    """The tokens of a prompt's one answer, and whether only the tokenizer counted them."""
    if len(prompt.generated) != 1:
        return None, False
    if prompt.source.prompt_count == 1 and prompt.source.reply.usage.completion_tokens is not None:
        return prompt.source.reply.usage.completion_tokens, False
    answer = prompt.generated[0]
    return (None if answer.source is None else len(answer.token_ids)), answer.source == "retokenized"


def _form(name: str) -> ExportForm:
    forms = plugins("exports")
    if name not in forms:
        raise click.UsageError(f"--format {name}: there are {', '.join(forms)}")
    form: ExportForm = forms[name]
    return form


def _write(exported: Exported, output: Path | None) -> None:
    if output is None or not output.is_dir():
        text = "".join(f"{part}\n" for part in exported.parts)
        if output is None:
            print(text, end="")
        else:
            write_whole(output, text)
        return
    if exported.part_names is None:
        raise click.UsageError(f"-o {output} is a folder; this format is one file")
    for name, part in zip(exported.part_names, exported.parts, strict=True):
        write_whole(output / name, f"{part}\n")


def _doubts(trace: Trace, facts: Sequence[ServerFact]) -> list[str]:
    """What to know of the rows that were written."""
    doubts = []
    if wrong := sum(row.turn.rendering == "mismatch" for row in trace.rows):
        doubts.append(
            f"{wrong} prompts have another number of tokens than the server counted; see the report"
        )
    if counted_here := sum(row.output_retokenized for row in trace.rows):
        doubts.append(
            f"{counted_here} answers were counted with the tokenizer: the server did not report them"
        )
    if how_imported(facts) == MADE_UP_TIMES:
        doubts.append("the times are made up: the file that the capture was imported from had none")
    return doubts
