"""What `locality --help` teaches somebody who has never seen it.

What the commands do, and their exit statuses, are held in `test_cli.py` and beside each command's own tests.
"""

from __future__ import annotations

from click.testing import CliRunner

from analyzer import cli


def test_the_commands_stand_in_the_order_of_use_each_with_a_whole_sentence() -> None:
    lines = CliRunner().invoke(cli.main, ["--help"], terminal_width=80).output.partition("Commands:\n")[2]
    told = [line.split(maxsplit=1) for line in lines.strip().split("\n")]
    assert [name for name, _ in told][:5] == ["doctor", "proxy", "run", "watch", "report"]
    assert {name for name, _ in told} == set(cli.main.commands)
    assert all(sentence.endswith(".") and not sentence.endswith("...") for _, sentence in told)


def test_run_shows_where_the_agents_own_command_begins() -> None:
    told = CliRunner().invoke(cli.main, ["run", "--help"]).output
    assert "[OPTIONS] -- COMMAND [ARG]..." in told
    assert "-- your-agent --its --options" in told
