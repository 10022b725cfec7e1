"""Credentials that only the key before them gives away."""

from __future__ import annotations

import json

import pytest

from store.redact import Redactor
from store.vault import Vault

VALUE = "correct-horse"


@pytest.fixture
def redactor() -> Redactor:
    return Redactor(Vault(b"salt" * 4))


@pytest.mark.parametrize(
    "key",
    [
        *("api_key", "apikey", "apiKey", "X-Api-Key", "OPENAI_API_KEY", "password", "db_password"),
        *("secret", "client_secret", "access_token", "refreshToken", "Authorization", "passwd"),
    ],
)
@pytest.mark.parametrize("levels", [0, 1, 2])
def test_the_value_after_a_key_named_like_a_credential_is_replaced(
    redactor: Redactor, key: str, levels: int
) -> None:
    body = json.dumps({"a": [{key: VALUE, "b": 1}]})
    for _ in range(levels):
        body = json.dumps({"arguments": body})
    expected = body.replace(VALUE, "<secret:json-field:1>")
    assert redactor.body(body.encode()) == (
        expected.encode(),
        {("json-field", f"a[0].{key}" if levels == 0 else "arguments"): 1},
    )
    spaced = body.replace(": ", " :\t")
    assert VALUE.encode() not in redactor.body(spaced.encode())[0]
    assert VALUE.encode() not in redactor.body(f"data: {body}\n\n".encode())[0]


def test_a_bare_token_is_replaced_if_it_holds_a_digit(redactor: Redactor) -> None:
    assert redactor.body(b'{"token": "abcdefg1"}')[0] == b'{"token": "<secret:json-field:1>"}'


def test_a_value_known_by_its_shape_keeps_that_name(redactor: Redactor) -> None:
    body = json.dumps({"api_key": "AKIA" + "IOSFODNN7EXAMPLE"})
    assert redactor.body(body.encode())[1] == {("awskey", "api_key"): 1}


@pytest.mark.parametrize(
    "fields",
    [
        {"password": "The user's password."},
        {"password": {"type": "string", "description": "password"}, "required": ["password", "api_key"]},
        {"type": "password", "name": "authorization", "in": "secret"},
        {"password": "short"},
        {"api_key": "${OPENAI_API_KEY}", "secret": "<your-secret-here>", "apikey": "{{ api_key }}"},
        {"token": "international", "logprob": -1.5},
        {"token": "token_id:151643"},
        {"tokens": "abcdefgh1", "max_tokens": "100000000", "eos_token": "<|im_end|>1234"},
        {"secretary": "some-name-1", "keyboard": "abcdefgh1", "prompt_cache_key": "session-12345678"},
        {"authorization": None, "password": 1234567890},
    ],
)
def test_ordinary_fields_come_out_as_they_were(redactor: Redactor, fields: dict[str, object]) -> None:
    body = json.dumps({"tools": [fields], "content": json.dumps(fields)}).encode()
    assert redactor.body(body) == (body, {})
