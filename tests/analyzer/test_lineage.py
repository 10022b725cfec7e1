"""Which earlier prompt a prompt is compared with."""

from __future__ import annotations

from typing import Any

from analyzer.core import Conversation
from analyzer.lineage import Lineage, Place

SYSTEM = "You repair programs. Read before you write, run the tests, and say what you changed."
TASK = "The parser drops the last line of a file that has no newline at its end; please repair it."


def conversation(*messages: tuple[str, str], tools: bool = True) -> Conversation:
    return Conversation(
        dialect="chat",
        prompt_index=0,
        messages=tuple({"role": role, "content": content} for role, content in messages),
        tools=({"type": "function", "function": {"name": "read"}},) if tools else None,
    )


def places(*conversations: Conversation, common: Any = lambda a, b: 0) -> list[Place]:
    lineage = Lineage(common)
    return [lineage.place(item, "model") for item in conversations]


def told(placed: list[Place]) -> list[tuple[int, int, int | None]]:
    return [(item.conversation, item.turn, item.parent) for item in placed]


MAIN = [("system", SYSTEM), ("user", TASK)]
STEP = [("assistant", "I read the file first."), ("tool", "def parse(text): ...")]
MORE = [("assistant", "Now I change the loop."), ("tool", "ok")]


def test_a_growing_session_is_one_conversation() -> None:
    placed = places(conversation(*MAIN), conversation(*MAIN, *STEP), conversation(*MAIN, *STEP, *MORE))
    assert told(placed) == [(1, 1, None), (1, 2, 0), (1, 3, 1)]


def test_a_title_request_between_two_turns_is_nobodys_predecessor() -> None:
    title = conversation(("system", "Write a title of at most six words."), ("user", TASK), tools=False)
    placed = places(conversation(*MAIN), title, conversation(*MAIN, *STEP))
    assert told(placed) == [(1, 1, None), (2, 1, None), (1, 2, 0)]


def test_a_sub_agent_with_the_same_head_is_a_conversation_of_its_own() -> None:
    helper = [("system", SYSTEM), ("user", "List every caller of parse().")]
    placed = places(
        conversation(*MAIN),
        conversation(*helper),
        conversation(*MAIN, *STEP),
        conversation(*helper, ("assistant", "There are two callers."), ("tool", "a.py b.py")),
    )
    assert told(placed) == [(1, 1, None), (2, 1, None), (1, 2, 0), (2, 2, 1)]


def test_an_agent_with_another_head_and_other_tools_is_nobodys_next_turn_though_it_has_the_history() -> None:
    writer = ("system", "Distil what is worth remembering, and file it under one of these topics.")
    noted = [*MAIN[1:], *STEP, ("user", "Which facts outlast this task?")]
    again = [*noted, ("assistant", "The parser's fault."), ("tool", "filed")]
    placed = places(
        conversation(*MAIN),
        conversation(*MAIN, *STEP),
        conversation(writer, *noted, tools=False),
        conversation(*MAIN, *STEP, *MORE),
        conversation(writer, *again, tools=False),
    )
    assert told(placed) == [(1, 1, None), (1, 2, 0), (2, 1, None), (1, 3, 1), (2, 2, 2)]


def test_a_head_or_tools_alone_may_be_another_in_the_same_conversation() -> None:
    planner = ("system", "Plan first: name files, risks and an order of work, and touch nothing yet.")
    begun, planned = conversation(*MAIN, *STEP), conversation(planner, *MAIN[1:], *STEP, *MORE)
    assert told(places(begun, planned)) == [(1, 1, None), (1, 2, 0)]
    assert told(places(begun, conversation(*MAIN, *STEP, *MORE, tools=False))) == [(1, 1, None), (1, 2, 0)]


def test_two_sub_agents_with_nearly_the_same_task_stay_apart() -> None:
    one = [("system", SYSTEM), ("user", "Look through the folder alpha and list every test in it.")]
    two = [("system", SYSTEM), ("user", "Look through the folder beta and list every test in it.")]
    placed = places(
        conversation(*one),
        conversation(*two),
        conversation(*one, ("assistant", "alpha has three tests in it."), ("tool", "x")),
        conversation(*two, ("assistant", "beta has none."), ("tool", "y")),
    )
    assert told(placed) == [(1, 1, None), (2, 1, None), (1, 2, 0), (2, 2, 1)]


def test_a_clock_in_the_system_text_does_not_start_a_new_conversation() -> None:
    def at(time: str, *rest: tuple[str, str]) -> Conversation:
        return conversation(("system", f"It is {time}. {SYSTEM}"), ("user", TASK), *rest)

    placed = places(at("12:01:05"), at("12:01:15", *STEP), at("12:01:25", *STEP, *MORE))
    assert told(placed) == [(1, 1, None), (1, 2, 0), (1, 3, 1)]


def test_an_accidentally_longer_token_prefix_does_not_outweigh_shared_messages() -> None:
    placed = places(
        conversation(*MAIN),
        conversation(*MAIN, *STEP),
        conversation(*MAIN, *STEP, *MORE),
        common=lambda a, b: 100 - a,
    )
    assert told(placed)[2] == (1, 3, 1)


def test_between_equal_parents_the_longer_token_prefix_wins_then_the_later() -> None:
    retried = [conversation(*MAIN), conversation(*MAIN), conversation(*MAIN, *STEP)]
    assert told(places(*retried))[2] == (1, 3, 1)
    assert told(places(*retried, common=lambda a, b: 10 if a == 0 else 5))[2] == (1, 3, 0)


def test_an_edited_old_tool_result_keeps_the_conversation_and_its_latest_parent() -> None:
    cleared = [("assistant", "I read the file first."), ("tool", "[cleared]")]
    placed = places(
        conversation(*MAIN, *STEP),
        conversation(*MAIN, *STEP, *MORE),
        conversation(*MAIN, *cleared, *MORE, ("assistant", "Done."), ("tool", "3 passed")),
    )
    assert told(placed) == [(1, 1, None), (1, 2, 0), (1, 3, 1)]


def test_history_cut_at_the_front_still_belongs_to_its_conversation() -> None:
    long = [*MAIN, *STEP, *MORE, ("user", "And now the writer, which has the very same fault.")]
    cut = [("system", SYSTEM), *MORE, long[-1], ("assistant", "The writer is next.")]
    placed = places(conversation(*long), conversation(*cut))
    assert told(placed) == [(1, 1, None), (1, 2, 0)]


def test_another_model_shares_no_conversation() -> None:
    lineage = Lineage(lambda a, b: 0)
    first = lineage.place(conversation(*MAIN), "one")
    second = lineage.place(conversation(*MAIN, *STEP), "two")
    assert (first.conversation, second.conversation, second.parent) == (1, 2, None)


def test_raw_prompts_that_grow_are_one_conversation() -> None:
    def raw(text: str) -> Conversation:
        return Conversation(dialect="completions", prompt_index=0, text=text)

    placed = places(
        raw("line one\nline two\n"), raw("something else\n"), raw("line one\nline two\nline three\n")
    )
    assert told(placed) == [(1, 1, None), (2, 1, None), (1, 2, 0)]


def test_numbers_that_python_calls_equal_are_different_messages() -> None:
    def asked(value: Any) -> Conversation:
        message = {"role": "user", "content": [{"type": "text", "text": TASK, "n": value}]}
        return Conversation(dialect="chat", prompt_index=0, messages=(message,))

    assert [place.conversation for place in places(asked(1), asked(True), asked(1.0))] == [1, 2, 3]


def test_a_session_played_again_is_compared_with_the_same_turn_of_its_first_run() -> None:
    turns = [conversation(*MAIN), conversation(*MAIN, *STEP), conversation(*MAIN, *STEP, *MORE)]
    assert [place.parent for place in places(*turns, *turns)] == [None, 0, 1, 0, 1, 2]
