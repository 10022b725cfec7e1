from __future__ import annotations

import base64
import gzip
import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from store.db import Capture
from store.door import Door
from store.records import Headers, RequestSeen, ResponseSeen, ServerFact
from store.redact import Redactor
from store.vault import Vault

type AskFor = Callable[..., RequestSeen]
type Answer = Callable[..., ResponseSeen]

ROOT = Path(__file__).parents[2]
TAIL = "Zx9Yw8Vu7Ts6Rq5Po4Nm3Lk2Ji1Hg0Fe9Dc8Ba7"
PEM = f"-----BEGIN RSA PRIVATE KEY-----\n{TAIL}\n{TAIL}\n-----END RSA PRIVATE KEY-----"
JWT = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9P"
# Each is put together here, so that no scanner takes this file for a leak.
SECRETS = {
    "anthropic-key": "sk-" + "ant-api03-" + TAIL,
    "openai-key": "sk-" + "proj-" + TAIL,
    "api-key": "sk-" + TAIL,
    "google-key": "AIza" + TAIL[:35],
    "huggingface-token": "hf_" + TAIL[:34],
    "github-token": "github_" + "pat_" + TAIL,
    "gitlab-token": "glpat-" + TAIL[:20],
    "awskey": "AKIA" + "IOSFODNN7EXAMPLE",
    "slack-token": "xoxb-" + "123456789012-123456789012-" + TAIL[:24],
    "stripe-key": "sk_" + "live_" + TAIL[:24],
    "jwt": JWT,
    "private-key": PEM,
}


@pytest.fixture
def redactor() -> Redactor:
    return Redactor(Vault(b"salt" * 4))


@pytest.mark.parametrize(("kind", "secret"), SECRETS.items())
def test_a_credential_leaves_a_body_whole(redactor: Redactor, kind: str, secret: str) -> None:
    written = json.dumps({"messages": [{"content": f"use {secret} now"}], "n": 1})
    expected = json.dumps({"messages": [{"content": f"use <secret:{kind}:1> now"}], "n": 1})
    assert redactor.body(written.encode()) == (
        expected.encode(),
        {(kind, "messages[0].content"): 1},
    )
    plain = f"use {secret} now".encode()
    assert redactor.body(plain) == (f"use <secret:{kind}:1> now".encode(), {(kind, ""): 1})
    event = f"data: {written}\n\n".encode()
    assert redactor.body(event)[0] == f"data: {expected}\n\n".encode()


def test_a_credential_is_found_through_escapes(redactor: Redactor) -> None:
    secret = SECRETS["anthropic-key"]
    inner = json.dumps({"arguments": f'export KEY="{secret}"'})
    twice = json.dumps({"content": inner})
    assert redactor.body(twice.encode())[0] == twice.replace(secret, "<secret:anthropic-key:1>").encode()
    odd = '{"a\\u00e9": "caf\\u00e9 \\/ ' + secret.replace("a", "\\u0061") + ' \\/ \\ud83d"}'
    assert (
        redactor.body(odd.encode())[0]
        == b'{"a\\u00e9": "caf\\u00e9 \\/ <secret:anthropic-key:1> \\/ \\ud83d"}'
    )
    nested = json.dumps({"content": json.dumps({"key": PEM})})
    cleaned = redactor.body(nested.encode())[0]
    assert json.loads(json.loads(cleaned)["content"]) == {"key": "<secret:private-key:2>"}


def test_an_aws_secret_needs_its_name_beside_it(redactor: Redactor) -> None:
    secret = "wJalrXUtnFEMI/K7MDENG/bPxRfiCY" + "EXAMPLEKEY"
    body = json.dumps({"aws_secret_access_key": secret, "sha1": "a" * 40})
    assert redactor.body(body.encode())[0] == body.replace(secret, "<secret:aws-secret-key:1>").encode()
    slashed = body.replace("/", "\\/")
    assert redactor.body(slashed.encode())[0] == body.replace(secret, "<secret:aws-secret-key:1>").encode()


def test_a_credential_split_over_streamed_fragments_is_found(redactor: Redactor) -> None:
    secret = SECRETS["openai-key"]
    parts = ["the key is ", secret[:3], secret[3:9], secret[9:30], secret[30:] + " ok", "?"]
    body = "".join(f"data: {json.dumps({'delta': {'content': part}})}\n\n" for part in parts)
    cleaned, counts = redactor.body(body.encode())
    texts = [json.loads(line[6:])["delta"]["content"] for line in cleaned.decode().splitlines() if line]
    assert texts == ["the key is ", "<secret:openai-key:1>", "", "", " ok", "?"]
    assert counts == {("openai-key", "delta.content"): 1}


@pytest.mark.parametrize(
    "text",
    [
        "a bearer authentication scheme, sk-loading-indicator-with-bounce, basic understanding of it",
        "postgres://{user}:{password}@host/db and Authorization: Bearer ${TOKEN_FOR_EVERYTHING_1}",
        "task-1234567890abcdefghijklmnop commit 0123456789abcdef0123456789abcdef01234567 at 127.0.0.1",
        "api_key = os.environ['OPENAI_API_KEY'] <secret:api-key:3> call-8f14e45fceea167a5a36dedd4bea2543",
    ],
)
def test_ordinary_text_comes_out_as_the_same_bytes(redactor: Redactor, text: str) -> None:
    for body in (text.encode(), json.dumps({"content": text}).encode()):
        assert redactor.body(body) == (body, {})


@settings(max_examples=50, deadline=None)
@given(st.binary(max_size=400))
def test_bytes_without_secrets_come_out_as_they_were(content: bytes) -> None:
    redactor = Redactor(Vault(b"salt" * 4))
    for body in (content, b'{"x": "' + content + b'"}', b"data: " + content):
        assert redactor.body(body) == (body, {})


# One for all examples: each new one would spend its time in scrypt.
VAULT = Vault(b"salt" * 4)


@settings(max_examples=50, deadline=None)
@given(st.text(max_size=60), st.text(max_size=60), st.booleans())
def test_around_a_secret_nothing_changes(before: str, after: str, ascii_only: bool) -> None:
    redactor = Redactor(VAULT)
    body = json.dumps({"m": f"{before} {SECRETS['github-token']} {after}"}, ensure_ascii=ascii_only)
    expected = body.replace(SECRETS["github-token"], "<secret:github-token:1>")
    raw, wanted = (text.encode("utf-8", "surrogatepass") for text in (body, expected))
    assert redactor.body(raw)[0] == wanted


def test_headers_are_kept_by_an_allow_list(capture: Capture, ask: AskFor) -> None:
    headers: Headers = (
        ("Content-Type", "application/json"),
        ("Authorization", "Bearer token-abc123456"),
        ("X-Api-Key", "token-abc123456"),
        ("Cookie", "session=s3cr3tvalue; theme=dark"),
        ("X-Company-Thing", "whatever"),
        ("X-Request-Id", "r-1"),
    )
    exchange_id = capture.save_request(ask(b"s3cr3tvalue token-abc123456", headers=headers))
    read = capture.exchange(exchange_id)
    assert read.request_headers == (
        ("Content-Type", "application/json"),
        ("Authorization", "Bearer <secret:bearer:1>"),
        ("X-Api-Key", "<secret:bearer:1>"),
        ("Cookie", "<secret:cookie:2>"),
        ("X-Company-Thing", "<hidden>"),
        ("X-Request-Id", "r-1"),
    )
    assert read.request.content == b"<secret:known:3> <secret:bearer:1>"
    assert read.request.secrets == {"known": 1, "bearer": 1}


def test_a_query_keeps_only_what_is_no_credential(capture: Capture, ask: AskFor) -> None:
    query = f"beta=true&key=abcdefgh&api_key=ijklmnop%2F&page=2&x=plain&y={TAIL}&flag&z={SECRETS['jwt']}"
    read = capture.exchange(capture.save_request(ask(b'{"a": "see ijklmnop/ and abcdefgh"}', query=query)))
    assert read.query == (
        "beta=true&key=<secret:query-key:1>&api_key=<secret:query-key:2>&page=2&x=plain"
        "&y=<secret:query-value:3>&flag&z=<secret:jwt:4>"
    )
    assert read.request.content == b'{"a": "see <secret:query-key:2> and <secret:query-key:1>"}'


def test_a_value_learnt_late_is_found_in_text_seen_before() -> None:
    redactor = Redactor(Vault(b"salt" * 4))
    body = b'{"content": "remember plainpassword"}'
    assert redactor.body(body) == (body, {})
    redactor.learn("plainpassword")
    redactor.learn("short")
    assert redactor.body(body)[0] == b'{"content": "remember <secret:known:1>"}'


def test_the_password_inside_basic_credentials_is_searched_for() -> None:
    door = Door(Vault(b"salt" * 4))
    token = base64.b64encode(b"user:open sesame").decode()
    request = RequestSeen(
        key="1",
        started_at_ns=0,
        method="GET",
        path="/",
        query="",
        headers=(("authorization", f"Basic {token}"),),
        body=b'{"a": "open sesame"}',
    )
    message = door.request(request)[1]
    assert json.loads(message.headers) == [["authorization", "Basic <secret:basic-auth:1>"]]
    assert message.body.content == b'{"a": "<secret:known:2>"}'


def test_no_planted_secret_is_anywhere_in_the_files(path: Path, ask: AskFor, answer: Answer) -> None:
    header, query, cookie = "opaque-header-value-1", "opaque-query-value-2", "opaque-cookie-value-3"
    planted = [*SECRETS.values(), header, query, cookie]
    everything = " ".join(planted)
    capture = Capture.create_or_open(str(path), redaction="secrets")
    for encode in (bytes, gzip.compress):
        request = ask(
            encode(json.dumps({"content": everything}).encode()),
            headers=(
                ("authorization", header),
                ("cookie", f"a={cookie}"),
                ("x-other", everything),
                ("user-agent", JWT),
            ),
            query=f"token={query}",
            path=f"/v1/{SECRETS['google-key']}/x",
        )
        capture.save_request(request)
        response = answer(request, f"data: {everything}\n\n".encode(), headers=(("set-cookie", f"b={TAIL}"),))
        object.__setattr__(response, "error", f"refused {SECRETS['jwt']}")
        capture.save_response(response)
    capture.save_facts([ServerFact(at_ns=1, path="/info", status=200, body=everything.encode())])
    contents = [
        text for read in capture.exchanges() for text in (read.request.content, read.response.content)
    ]
    on_disk = b"".join(file.read_bytes() for file in path.parent.iterdir())
    capture.close()
    on_disk += path.read_bytes() + b"".join(contents)
    assert b"<secret:" in on_disk
    pieces = {
        piece for secret in (*planted, TAIL) for piece in secret.splitlines() if "PRIVATE KEY" not in piece
    }
    assert [piece for piece in pieces if piece.encode() in on_disk] == []


def test_equal_secrets_have_equal_placeholders_in_another_process(path: Path, ask: AskFor) -> None:
    code = """
import sys
import time
from store.db import Capture
from store.records import RequestSeen
with Capture.create_or_open(sys.argv[1], redaction="secrets") as capture:
    body = " ".join(sys.argv[2:]).encode()
    capture.save_request(RequestSeen(key="1", started_at_ns=0, method="POST", path="/", query="",
        headers=(), body=body))
"""
    first, second = SECRETS["anthropic-key"], SECRETS["google-key"]
    for arguments in ([first], [second, first]):
        subprocess.run([sys.executable, "-c", code, str(path), *arguments], cwd=ROOT, check=True)
    with Capture.open(str(path)) as capture:
        assert [read.request.content for read in capture.exchanges()] == [
            b"<secret:anthropic-key:1>",
            b"<secret:google-key:2> <secret:anthropic-key:1>",
        ]


def test_two_captures_do_not_share_fingerprints() -> None:
    one, two = (Vault(salt).identify("the same secret", "x") for salt in (b"1" * 16, b"2" * 16))
    assert one.digest != two.digest
    assert one.placeholder == two.placeholder == "<secret:x:1>"


def test_only_what_cannot_be_guessed_has_a_fast_fingerprint(monkeypatch: pytest.MonkeyPatch) -> None:
    slow: list[bytes] = []

    def scrypt(secret: bytes, **_: object) -> bytes:
        slow.append(secret)
        return secret

    monkeypatch.setattr("hashlib.scrypt", scrypt)
    vault = Vault(b"salt" * 4)
    words = "correct-horse-battery-staple-2024-and-more"
    for value in ("hunter2", words, "k" * 64, TAIL, "0123456789abcdef" * 4):
        vault.identify(value, "x")
    assert slow == [b"hunter2", words.encode(), b"k" * 64, b"0123456789abcdef" * 4]


def test_reading_does_not_import_detect_secrets(path: Path) -> None:
    Capture.create_or_open(str(path), redaction="secrets").close()
    code = (
        "import sys; from store.db import Capture; Capture.open(sys.argv[1]).close(); "
        "print('requests' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(path)], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout == "False\n"


def test_a_cookie_that_is_a_plain_word_is_not_searched_for(
    capture: Capture, ask: AskFor, answer: Answer
) -> None:
    request = ask(b'{"a": "javascript 31536000"}', headers=(("cookie", "lang=javascript"),))
    exchange_id = capture.save_request(request)
    headers = (("set-cookie", "id=a1b2c3d4e5; Max-Age=31536000"), ("www-authenticate", 'Bearer realm="x"'))
    capture.save_response(answer(request, b"31536000 a1b2c3d4e5", headers=headers))
    read = capture.exchange(exchange_id)
    assert read.request.content == request.body
    assert read.response.content.startswith(b"31536000 <secret:known:")
    assert read.response_headers[1] == ("www-authenticate", 'Bearer realm="x"')


@pytest.mark.parametrize("separator", ["\n", "\r\n"])
def test_a_private_key_cut_off_before_its_end_is_hidden_too(redactor: Redactor, separator: str) -> None:
    cut = PEM[:90].replace("\n", separator)
    for body in (cut, json.dumps({"content": cut}), json.dumps({"content": cut})[:-2]):
        assert TAIL[:20] not in redactor.body(body.encode())[0].decode()


@pytest.mark.parametrize(
    "text", ["eyJabcdefghi" * 8_000, "-----BEGIN PRIVATE KEY-----x\n" * 3000, "://a" * 50_000]
)
def test_text_made_to_be_slow_is_not(redactor: Redactor, text: str) -> None:
    redactor.body(b"")
    started = time.process_time()
    redactor.body(text.encode())
    assert time.process_time() - started < 3
