"""Secrets in other spellings than their own, where in a body they stood, and what is said on stderr."""

from __future__ import annotations

import base64
import json
import sys
from io import StringIO
from urllib.parse import quote

import pytest

from store.db import Capture
from store.messages import stderr_redacted, without_secrets
from store.places import paths_of
from store.redact import Redactor
from store.vault import Vault
from tests.store.planted import PLACES, VALUE_PLACES, escaped, planted, spellings

VAULT = Vault(b"salt" * 4)
KEY = "gh" + "p_" + "Zx9Yw8Vu7Ts6Rq5Po4Nm3Lk2Ji1Hg0Fe9Dc8"


@pytest.fixture
def redactor() -> Redactor:
    return Redactor(VAULT)


@pytest.mark.parametrize("place", [*PLACES, *VALUE_PLACES])
def test_every_kind_is_found_in_every_place(redactor: Redactor, place: str) -> None:
    for secret in planted(3, 45):
        if place in VALUE_PLACES and not secret.one_line:
            continue
        put = PLACES.get(place) or VALUE_PLACES[place]
        text = put(secret.text if place in PLACES else secret.value)
        for body in (text, json.dumps({"content": text}), f'{{"content": "{escaped(text)}"}}'):
            clean = redactor.body(body.encode())[0]
            left = [form for line in secret.lines for form in spellings(line) if form in clean]
            assert left == [], (secret.kind, body)


def test_in_base64_only_what_holds_the_secret_is_replaced(redactor: Redactor) -> None:
    encoded = base64.b64encode(f"{'a' * 29} {KEY} {'b' * 29}".encode()).decode()
    clean = redactor.body(encoded.encode())[0].decode()
    head, tail = base64.b64encode(b"a" * 29 + b" ").decode(), "Yg=="
    name = redactor.body(KEY.encode())[0].decode()
    assert clean.startswith(head + name)
    assert clean.endswith(tail)
    assert "b" * 28 in base64.b64decode(clean.removeprefix(head + name) + "====").decode()


def test_a_secret_has_one_placeholder_in_all_its_spellings(redactor: Redactor) -> None:
    forms = (KEY, quote(KEY).replace("_", "%5F"), escaped(KEY), base64.b64encode(KEY.encode()).decode())
    for form in forms:
        body = redactor.body(f'{{"a": "{form}"}}'.encode())[0]
        assert body == f'{{"a": "{VAULT.identify(KEY, "").placeholder}"}}'.encode()


def test_counts_name_the_path_in_the_words_of_the_report(redactor: Redactor) -> None:
    body = {
        "messages": [
            {"content": "x"},
            {"content": [{"type": "text", "text": f"{KEY} and {KEY}"}]},
            {"tool_calls": [{"function": {"arguments": json.dumps({"a": KEY})}}]},
        ],
        "a.b": {"": KEY},
        KEY: 1,
    }
    assert redactor.body(json.dumps(body, indent=2).encode())[1] == {
        ("github-token", "messages[1].content[0].text"): 2,
        ("github-token", "messages[2].tool_calls[0].function.arguments"): 1,
        ("github-token", '["a.b"][""]'): 1,
        ("github-token", ""): 1,
    }
    events = f'event: x\ndata: {{"a": [1, "{KEY}"]}}\n\ndata: {{"b": "{KEY}"}}\n\n'
    assert redactor.body(events.encode())[1] == {("github-token", "a[1]"): 1, ("github-token", "b"): 1}
    cut = json.dumps(body)[:130]
    assert list(paths_of(cut, [cut.index(KEY)], streamed=False)) == ["messages[1].content[0].text"]


def test_counts_come_back_from_a_capture(capture: Capture, ask: object, answer: object) -> None:
    request = ask(json.dumps({"messages": [{"content": KEY}]}).encode())  # type: ignore[operator]
    capture.save_request(request)
    capture.save_response(answer(request, f"no: {KEY}".encode()))  # type: ignore[operator]
    (read,) = capture.exchanges()
    assert read.request.secrets == read.response.secrets == {"github-token": 1}
    assert read.request.secret_paths == {("github-token", "messages[0].content"): 1}
    assert read.response.secret_paths == {("github-token", ""): 1}


@pytest.mark.parametrize("levels", [1, 3, 6])
def test_json_in_json_is_searched_at_any_depth(redactor: Redactor, levels: int) -> None:
    body = json.dumps({"db_password": "hunter-2-hunter"})
    for _ in range(levels):
        body = json.dumps({"a": body})
    assert b"hunter" not in redactor.body(body.encode())[0]


def test_messages_lose_their_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    assert without_secrets(f"cannot read {KEY}: no") == "cannot read <secret:github-token>: no"
    url = "https://me:hunter2hunter@host/v1"
    assert (
        without_secrets(f"{url} does not answer")
        == "https://me:<secret:url-userinfo>@host/v1 does not answer"
    )
    assert without_secrets("listening on http://127.0.0.1:8900") == "listening on http://127.0.0.1:8900"
    said = StringIO()
    monkeypatch.setattr(sys, "stderr", said)
    with stderr_redacted():
        print(KEY, url, file=sys.stderr)
        sys.stderr.writelines([f"--api-key {KEY}\n"])
    assert KEY not in said.getvalue()
    assert "hunter" not in said.getvalue()
    assert sys.stderr is said


@pytest.mark.parametrize(
    "text",
    [
        "%41" * 60_000,
        "QUFB" * 60_000,
        "password=" * 20_000,
        "https://" * 30_000,
        "cookie: a1=" * 20_000,
        "curl -u " * 20_000,
        "login password " * 10_000,
        ("\\" * 63 + '"') * 3000,
    ],
)
def test_spellings_made_to_be_slow_are_not(redactor: Redactor, text: str) -> None:
    import time

    redactor.body(b"")
    started = time.process_time()
    redactor.body(text.encode())
    assert time.process_time() - started < 3
