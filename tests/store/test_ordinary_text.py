"""What prompts about code are full of, and what must come out of redaction as the same bytes."""

from __future__ import annotations

import base64
import json
import random
import sysconfig
import uuid
from collections.abc import Iterator
from importlib.metadata import distributions
from pathlib import Path

import pytest

from store import heads
from store.redact import Redactor
from store.vault import Vault
from tests.store.planted import HEX, URL_SAFE, Maker

VAULT = Vault(b"salt" * 4)
# Files of the standard library that hold what is meant to be taken for a credential.
ABOUT_CREDENTIALS = {"urllib/request.py", "http/cookiejar.py"}


def in_json(text: str) -> bytes:
    return json.dumps({"messages": [{"role": "tool", "content": text}]}).encode()


def made_up() -> Iterator[str]:
    """Text that holds hashes, ids and data, as lock files, logs and answers do."""
    maker = Maker(4)
    for _ in range(20):
        sha1, sha256 = maker.chars(40, HEX), maker.chars(64, HEX)
        sha512 = base64.b64encode(maker.random.randbytes(64)).decode()
        image = base64.b64encode(b"\x89PNG\r\n\x1a\n" + maker.random.randbytes(3000)).decode()
        name = uuid.UUID(int=maker.random.getrandbits(128), version=4)
        yield f"commit {sha1}\nAuthor: a <a@b.example>\n\n    Fix it\n"
        yield json.dumps(
            {"resolved": f"https://registry.example/x-{sha1}.tgz", "integrity": f"sha512-{sha512}"}
        )
        yield f'{{ url = "https://files.example/{sha256}/x.whl", hash = "sha256:{sha256}", size = 12345 }}'
        yield f'checksum = "{sha256}"\nsha: {sha1}\ndigest=sha256:{sha256}\nkey: {sha1}\ncache_key={name}'
        yield f"![shot](data:image/png;base64,{image})"
        yield json.dumps({"source": {"type": "base64", "media_type": "image/png", "data": image}})
        yield json.dumps({"id": f"call_{maker.chars(24)}", "request_id": str(name), "etag": sha1})
        yield json.dumps(
            {"type": "thinking", "signature": base64.b64encode(maker.random.randbytes(400)).decode()}
        )
        yield json.dumps(
            {"session_id": str(name), "prompt_cache_key": maker.chars(32), "next_page_token": sha1}
        )
        yield f"GET /static/app.{maker.chars(20, URL_SAFE)}.js?v={sha1} 200 trace_id={sha1[:32]} {sha1[:16]}"
        yield f"Qm{maker.chars(44)} 0x{sha1} {name} arn:aws:iam::123456789012:role/x {maker.chars(12)}"


@pytest.mark.parametrize("number", range(11))
def test_hashes_ids_and_images_come_out_as_they_went_in(number: int) -> None:
    redactor = Redactor(VAULT)
    for text in list(made_up())[number::11]:
        for body in (text.encode(), in_json(text)):
            assert redactor.body(body) == (body, {})


def test_sources_come_out_as_they_went_in() -> None:
    library = Path(sysconfig.get_paths()["stdlib"])
    paths = [
        path
        for path in sorted([*library.glob("*.py"), *library.glob("[a-l]*/*.py")])
        if "test" not in path.parts[-2] and str(path.relative_to(library)) not in ABOUT_CREDENTIALS
    ]
    redactor = Redactor(VAULT)
    sample = random.Random(1).sample(paths, 200)
    changed = [path.name for path in sample if redactor.body(in_json(path.read_text("utf-8", "replace")))[1]]
    assert changed == []


def test_records_of_installed_packages_come_out_as_they_went_in() -> None:
    redactor = Redactor(VAULT)
    records = {found.name: found.read_text("RECORD") or "" for found in distributions()}
    changed = [name for name, text in records.items() if redactor.body(in_json(text))[1]]
    assert changed == []


@pytest.mark.parametrize(
    "text",
    [
        'password = getpass.getpass("Password: ")',
        "token: str | None = None, api_key: SecretStr = Field(default=None)",
        'parser.add_argument("--password", help="the user\'s password")',
        "const token = await auth.getAccessToken(user_id2);",
        "token = tokens[position1]; access_key = self.config.access_key2",
        'if (secret === process.env.CLIENT_SECRET_2) { key = "primary_key_1"; }',
        "password: ${{ secrets.DB_PASSWORD_1 }}\ntoken: $CI_JOB_TOKEN\napi_key=<YOUR_API_KEY_1>",
        "export API_KEY=your-api-key-here-1\nDB_PASSWORD=********\nTOKEN=xxxxxxxxxxxxxxxx1",
        "def refresh_token(client_secret, old_token): ...",
        'access_token: "string (required), see section 4.2"',
        "--token TOKEN  the access token\n--password PASSWORD  asked for if absent",
        "secret_name: my-application-secret-v2\nauth: required1\nclient_key: client-side-routing",
        'user["password"] = hash_password(form["password"])',
        "http://user:password@host/, http://127.0.0.1:8000/v1 and git@github.com:a/b.git",
        "import { tokenize2 } from './tokenizer2'; // key: value1234",
    ],
)
def test_code_about_credentials_comes_out_as_it_went_in(text: str) -> None:
    redactor = Redactor(VAULT)
    for body in (text.encode(), in_json(text)):
        assert redactor.body(body) == (body, {})


@pytest.mark.parametrize("name", ["x-session-id", "x-session-affinity", "session-id", "thread-id"])
def test_an_agents_name_for_its_session_is_no_credential_and_stays_in_bodies_too(name: str) -> None:
    redactor = Redactor(VAULT)
    pair = (name, "01a229ea-e796-7ca2-aceb-eea49b9616a7")
    assert heads.headers(redactor, (pair,)) == (pair,)
    body = in_json(f"session {pair[1]} goes on")
    assert redactor.body(body) == (body, {})
