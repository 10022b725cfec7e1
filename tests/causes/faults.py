"""All ways to break a session's next request, each with the label that an outside reader would give it."""

from __future__ import annotations

from datetime import timedelta

from tests.causes import faults_head as head
from tests.causes import faults_history as history
from tests.causes.faults_head import Fault

FAULTS: dict[str, tuple[str, Fault]] = {
    "clock seconds": ("volatile.clock", head.clock(head.STAMPS, timedelta(seconds=17))),
    "clock minutes": ("volatile.clock", head.clock(head.MINUTES, timedelta(minutes=7))),
    "clock hours": ("volatile.clock", head.clock(head.HOURS, timedelta(hours=1))),
    "clock days": ("volatile.clock", head.clock(head.DAYS, timedelta(days=1))),
    "nonce": ("volatile.head_nonce", head.head_nonce),
    "snapshot": ("volatile.env_snapshot", head.env_snapshot),
    "reordered facts": ("volatile.env_snapshot", head.reordered),
    "sentence": ("system.changed", head.system_changed),
    "tools order": ("tools.order", head.tools_order),
    "schema keys": ("tools.schema_drift", head.schema_key_order),
    "schema nonce": ("tools.schema_drift", head.schema_nonce),
    "schema text": ("tools.schema_drift", head.schema_description),
    "tools set": ("tools.set_changed", head.tools_set_changed),
    "tool renamed": ("tools.set_changed", head.tool_renamed),
    "tools dropped": ("tools.dropped", head.tools_dropped),
    "moving block": ("history.moving_block", history.moving_block),
    "status put in": ("history.moving_block", history.inserted_status),
    "whitespace": ("history.reserialised", history.whitespace),
    "arguments": ("history.reserialised", history.tool_args),
    "ids": ("history.ids_reminted", history.ids_reminted),
    "reasoning": ("history.reasoning_dropped", history.reasoning_dropped),
    "tool result": ("history.tool_result_edited", history.tool_result_edited),
    "compaction": ("history.compacted", history.compacted),
    "front": ("history.front_truncated", history.front_truncated),
    "message": ("history.message_dropped", history.message_dropped),
    "nudge": ("history.message_dropped", history.nudge_dropped),
    "branch": ("history.branch", history.branch),
    "rewound": ("history.branch", history.rewound),
    "edited": ("history.edited", history.edited),
    "identity": ("system.changed", head.identity),
    "system part": ("system.changed", head.system_part_added),
    "system gone": ("system.changed", head.system_gone),
    "snapshot part": ("volatile.env_snapshot", head.snapshot_part),
    "system whitespace": ("history.reserialised", head.system_whitespace),
    "moving part": ("history.moving_block", history.moving_part),
    "moving message": ("history.moving_block", history.moving_message),
    "moving numbers": ("history.moving_block", history.moving_with_numbers),
    "result as JSON": ("history.reserialised", history.result_rejsoned),
    "compaction with tail": ("history.compacted", history.compacted_with_tail),
    "front behind task": ("history.front_truncated", history.front_behind_task),
    "front by one": ("history.front_truncated", history.front_by_one),
    "failed turn": ("history.message_dropped", history.failed_turn),
    "retried": ("history.branch", history.retried),
    "image gone": ("history.media_evicted", history.image_gone),
    "image changed": ("media.changed", history.image_changed),
    "required": ("tools.schema_drift", head.required_order),
    "clock twice": ("volatile.clock", head.clock_twice),
    "second system": ("volatile.env_snapshot", history.second_system_edited),
}
