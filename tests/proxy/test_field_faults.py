"""The 26 ways in which capture proxies were seen to break, and the tests that hold each of them.

Nothing is tried here: the table is held against the tests that there are, so that it cannot rot.
"""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

TESTS = Path(__file__).parent.parent

TABLE = """
1 bytes pass unchanged in both directions
  proxy/test_proxy.py
    test_the_upstream_gets_the_clients_bytes
  proxy/test_encodings.py
    test_a_request_arrives_as_it_was_sent_and_is_recorded_decoded
  proxy/test_headers.py
    test_of_a_request_only_the_fields_of_its_hop_and_host_are_changed
    test_of_an_answer_only_the_fields_of_its_hop_are_left_out
  proxy/test_messages.py
    test_trailers_of_an_answer_reach_the_client
    test_trailers_of_a_request_reach_the_upstream
    test_interim_answers_reach_the_client_and_are_not_taken_for_the_answer
2 responses stream as they arrive
  proxy/test_proxy.py
    test_the_first_event_reaches_the_client_within_20_ms_of_its_sending
    test_each_chunks_arrival_is_stamped
  proxy/test_encodings.py
    test_an_encoded_stream_passes_event_by_event
3 nothing is decompressed on the way, error bodies neither
  proxy/test_encodings.py
    test_a_request_arrives_as_it_was_sent_and_is_recorded_decoded
    test_a_stream_that_ends_in_its_compression_passes_as_far_as_it_came
  proxy/test_proxy.py
    test_a_compressed_answer_passes_as_it_is_and_is_recorded_decoded
4 request bodies of every encoding and framing; what cannot be read never fails the request
  proxy/test_encodings.py
    test_a_request_arrives_as_it_was_sent_and_is_recorded_decoded
  proxy/test_uploads.py
    test_a_chunked_upload_arrives_and_is_recorded_without_its_framing
    test_a_client_that_expects_100_gets_it_and_then_its_answer
  store/test_encodings.py
    test_a_bomb_is_cut_at_the_cap
    test_no_bytes_make_it_raise
  proxy/test_bombs.py
    test_a_bomb_passes_both_ways_and_stays_small_in_the_proxy
5 large bodies pass in bounded memory; a copy that is cut says so
  proxy/test_uploads.py
    test_40_mb_pass_in_bounded_memory
    test_an_upload_reaches_the_upstream_while_it_is_being_sent
    test_of_a_body_that_is_too_long_the_beginning_is_kept
    test_copies_take_no_more_than_their_room
    test_a_body_that_was_cut_on_the_way_says_how_long_it_was
6 no limit on silence; TCP keep-alive
  proxy/test_hours_of_silence.py
    test_a_day_of_silence_before_the_first_byte_and_within_the_answer_is_no_end
    test_a_day_of_silence_within_a_request_and_between_two_is_no_end
    test_the_clock_that_is_set_is_the_one_that_mitmproxys_own_limit_goes_by
    test_tcp_looks_after_silent_connections_on_both_sides
7 a client that leaves closes the upstream, in every phase
  proxy/test_client_gone.py
    test_the_upstream_is_closed_within_a_second
    test_a_client_of_http_1_0_that_leaves_is_noticed_too
  proxy/test_uploads.py
    test_a_client_gone_during_an_upload_is_seen_within_a_second
  proxy/test_messages.py
    test_a_client_that_closes_its_sending_side_gets_its_answer
8 an upstream that breaks is passed on, recorded and not asked again
  proxy/test_passing.py
    test_an_upstream_that_breaks_off_before_its_answer_gives_502_and_is_not_asked_again
    test_an_upstream_that_breaks_off_in_its_answer_breaks_off_at_the_client
  proxy/test_uploads.py
    test_an_upload_that_no_upstream_takes_gets_502_and_is_recorded
    test_an_answer_before_the_upload_is_complete_reaches_a_client_that_goes_on_sending
  proxy/test_proxy.py
    test_a_refused_upstream_gives_502_and_is_recorded
9 WebSocket and HTTP/2 are refused at once, and say so
  proxy/test_messages.py
    test_a_websocket_to_a_silent_upstream_is_refused_at_once
    test_http_2_without_tls_is_refused_at_once_in_its_own_words
    test_an_upgrade_to_http_2_is_left_out_and_the_request_answered
    test_an_upstream_that_speaks_otherwise_gives_502_at_once_and_says_so
  proxy/test_tls.py
    test_http_1_1_is_asked_for_where_an_upstream_has_both
    test_an_upstream_of_http_2_alone_gives_502_at_once
10 Host, hop-by-hop fields, targets, HEAD; IPv6, https and paths of upstreams
  proxy/test_headers.py
    test_of_a_request_only_the_fields_of_its_hop_and_host_are_changed
    test_the_clients_own_host_arrives_where_that_is_asked_for
    test_an_upstream_at_an_ipv6_address_is_named_in_brackets
    test_the_proxy_listens_on_an_ipv6_address
    test_a_target_arrives_below_the_upstreams_path_as_it_was_spelled
  proxy/test_tls.py
    test_an_https_upstream_is_reached_where_its_authority_is_trusted
    test_an_untrusted_certificate_gives_502_and_says_what_to_do
    test_a_certificate_for_another_address_is_refused
  proxy/test_passing.py
    test_a_side_call_is_answered_by_the_upstream_alone_and_is_no_turn
11 side calls are passed on, never faked, and no turns
  proxy/test_passing.py
    test_a_side_call_is_answered_by_the_upstream_alone_and_is_no_turn
12 event streams of every framing
  proxy/test_streams.py
    test_a_stream_arrives_unchanged_and_is_read
    test_the_framing_itself_may_be_cut_anywhere
  analyzer/test_sse.py
    test_one_byte_at_a_time_gives_the_same_events
    test_any_cut_of_the_stream_gives_the_same_events
13 characters cut at every byte
  proxy/test_proxy.py
    test_a_stream_passes_unchanged_and_is_recorded_whole
  proxy/test_streams.py
    test_a_stream_arrives_unchanged_and_is_read
  analyzer/test_sse.py
    test_one_byte_at_a_time_gives_the_same_events
14 ends are told apart
  proxy/test_streams.py
    test_ends_are_told_apart
    test_a_stream_that_breaks_off_breaks_off_at_the_client_too
  proxy/test_proxy.py
    test_how_an_exchange_ended_is_recorded
  analyzer/test_replies.py
    test_a_responses_stream_that_failed_says_why
    test_a_messages_stream_may_end_with_an_error_event
15 choices and usage of odd shapes
  analyzer/test_answer_shapes.py
    test_choices_may_be_missing_empty_null_or_several_in_turn
    test_of_counts_that_grow_are_null_or_come_alone_the_last_holds
  analyzer/test_replies.py
    test_a_body_of_any_other_shape_is_read_without_an_error
16 tool calls of every shape
  analyzer/test_answer_shapes.py
    test_tool_calls_are_put_together_with_their_arguments_as_they_came
17 reasoning under every name
  analyzer/test_answer_shapes.py
    test_reasoning_is_read_under_every_name_it_has_even_if_they_change
18 every spelling of usage; what is not reported is unknown
  analyzer/test_replies.py
    test_every_spelling_of_usage_gives_the_same_counts
    test_sglang_without_its_cache_report_is_not_known_and_not_zero
19 error bodies are kept whole and shown
  proxy/test_streams.py
    test_an_error_page_is_recorded_whole
  analyzer/test_replies.py
    test_a_refusal_in_html_is_told_by_its_first_line
20 a full disk or a locked capture costs a record and no request
  proxy/test_losses.py
    test_a_full_disk_ends_with_counts_and_not_with_a_stack_trace
    test_a_busy_sink_is_asked_again_until_it_takes_everything_in_order
  proxy/test_full_disk.py
    test_a_full_disk_loses_records_and_no_answer_and_goes_on_where_it_gets_room
    test_a_capture_that_turns_read_only_loses_records_and_no_answer
  proxy/test_own_faults.py
    test_traffic_goes_on_as_it_comes_and_the_loss_is_counted
    test_a_capture_that_another_process_holds_for_long_gets_everything_afterwards
21 the capture survives a kill, and is readable meanwhile
  store/test_capture.py
    test_a_killed_writer_leaves_every_finished_row
    test_a_reader_in_another_process_sees_rows_while_they_are_written
  proxy/test_proxy.py
    test_a_killed_proxy_leaves_what_it_saw
  proxy/test_kills.py
    test_a_hundred_kills_at_random_moments_leave_what_was_finished_and_count_what_is_missing
22 no credential is kept or said
  proxy/test_planted_secrets.py
    test_a_thousand_planted_secrets_are_in_no_file_and_no_output
  sealed/test_planted.py
    test_no_secret_and_no_text_is_written_while_it_runs_nor_when_it_ended
    test_a_sealing_proxy_killed_at_any_moment_leaves_neither
  store/test_capture.py
    test_the_file_and_its_log_are_private_whatever_the_umask
  proxy/test_uploads.py
    test_a_copy_of_an_upload_is_kept_in_no_file
23 retries are marked, with the number the client gives
  analyzer/test_notes.py
    test_an_equal_request_within_seconds_is_a_retry_and_a_later_one_is_not
  proxy/test_passing.py
    test_a_retry_that_the_client_says_is_one_is_recorded_with_its_number
24 long runs in flat memory
  proxy/test_flood.py
    test_memory_does_not_grow_with_the_exchanges
    test_of_64_agents_that_stream_at_once_nothing_is_lost
25 a hint where no traffic comes
  proxy/test_silence.py
    test_a_proxy_that_nobody_asks_says_once_where_clients_read_their_base_url
    test_a_request_to_any_path_is_traffic
    test_a_command_that_asked_for_nothing_is_told_where_clients_read_their_base_url
    test_a_command_whose_requests_are_not_recorded_is_told_which_ones_are
  test_doctor.py
    test_with_a_proxy_a_variable_that_leads_past_it_is_named
    test_without_an_address_it_looks_at_this_shell_and_tells_where_clients_look
26 the proxy is not the cause: what was sent is what arrived
  wire/test_wire.py
    test_random_exchanges_are_the_same_at_both_ends_and_in_the_capture
    test_the_rules_find_each_change_on_either_way
  proxy/test_encodings.py
    test_a_request_arrives_as_it_was_sent_and_is_recorded_decoded
"""

POINTS = re.findall(r"^(\d+) (.+)\n((?: .+\n)*)", TABLE, re.MULTILINE)


@cache
def names_in(file: str) -> set[str]:
    """The tests of one file."""
    tree = ast.parse((TESTS / file).read_text(encoding="utf-8"))
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


def test_no_point_is_left_out() -> None:
    assert [int(number) for number, _, _ in POINTS] == list(range(1, 27))


@pytest.mark.parametrize(("number", "what", "held"), POINTS)
def test_what_is_said_to_hold_a_point_is_there(number: str, what: str, held: str) -> None:
    assert held, f"nothing holds {number} {what}"
    file = ""
    for line in held.split():
        if line.endswith(".py"):
            file = line
        else:
            assert line in names_in(file), f"{number} {what}: {file}"
