"""The endpoints' own words around a prompt: settings, counts and settled values of requests and answers.

With `analyzer.vocabulary` all that a structure without text may show as it is (vLLM 0.32
entrypoints/openai/*/protocol.py, entrypoints/anthropic/protocol.py).
"""

from __future__ import annotations

from collections.abc import Mapping

from analyzer.vocabulary import FREE_BELOW, NAMED_BY_THE_CLIENT, PROMPT_FIELDS, words

COUNTS = words("""
    max_tokens max_completion_tokens max_output_tokens max_tool_calls n best_of top_k top_logprobs logprobs
    prompt_logprobs temperature top_p min_p presence_penalty frequency_penalty repetition_penalty
    length_penalty min_tokens truncate_prompt_tokens priority budget_tokens index created created_at
    completed_at output_index content_index sequence_number
    prompt_tokens completion_tokens total_tokens input_tokens output_tokens cached_tokens reasoning_tokens
    audio_tokens cache_read_input_tokens cache_creation_input_tokens accepted_prediction_tokens
    rejected_prediction_tokens
    """)
"""Fields whose number is the endpoint's business; any other number is a client's, or a token."""

_SETTINGS = words("""
    model stream stream_options include_usage continuous_usage_stats user metadata store stop stop_sequences
    seed logit_bias echo ignore_eos skip_special_tokens add_special_tokens add_generation_prompt
    continue_final_message return_token_ids cache_salt parallel_tool_calls reasoning_effort effort
    previous_response_id truncation service_tier include background verbosity modalities structured_outputs
    mm_processor_kwargs kv_transfer_params request_id thinking output_config
    """)
_ANSWER = words("""
    id object choices message finish_reason stop_reason stop_sequence usage prompt_tokens_details
    completion_tokens_details input_tokens_details output_tokens_details system_fingerprint output error
    code param annotations audio token_ids prompt_token_ids incomplete_details reason
    """)

OWN = PROMPT_FIELDS | COUNTS | _SETTINGS | _ANSWER

_TYPES = words("""
    text function object string integer number boolean array null image_url input_text output_text input_image
    input_audio audio_url video_url input_file image audio video document file refusal thinking
    redacted_thinking tool_use tool_result tool_reference message reasoning function_call
    function_call_output custom_tool_call reasoning_text summary_text enabled disabled adaptive ephemeral
    json_object json_schema auto any none tool base64 url error
    """)

PLAIN_VALUES: Mapping[str, frozenset[str]] = {
    "role": words("system developer user assistant tool function"),
    "type": _TYPES,
    "object": words("chat.completion text_completion response"),
    "finish_reason": words("stop length tool_calls content_filter abort error"),
    "stop_reason": words("end_turn max_tokens stop_sequence tool_use refusal pause_turn"),
    "status": words("completed incomplete in_progress failed cancelled queued"),
    "reason": words("max_output_tokens content_filter"),
    "tool_choice": words("auto none required any"),
    "truncation": words("auto disabled"),
    "reasoning_effort": words("none minimal low medium high max xhigh"),
    "effort": words("none minimal low medium high max xhigh"),
    "detail": words("auto low high"),
    "service_tier": words("auto default flex priority"),
}
"""What may stand in a field as it is: values that the endpoint itself has settled."""


def is_own(key: str, field: str) -> bool:
    """Whether a key is the endpoint's, given the field that holds the object it is in."""
    return key in OWN and field not in NAMED_BY_THE_CLIENT


def is_free(field: str, key: str) -> bool:
    """Whether everything below a key is the client's own."""
    return field != "" and key in FREE_BELOW
