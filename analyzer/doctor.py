"""Asks a server what it reveals, and looks where this shell sends an agent: what `doctor` does.

Asked are pages that cost nothing; a request that generates, of one token, only where the user wants it.
Nothing is concluded here: the checks are `analyzer.doctor_checks`'.
"""

from __future__ import annotations

import http.client
import json
import os
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import click

from analyzer.clients import CLIENTS
from analyzer.doctor_answers import CHAT, RENDER, STREAM, UPGRADE_REFUSED, Answers
from analyzer.doctor_checks import PROXY, Result, examined, lacking
from analyzer.doctor_env import detours, read_variables
from analyzer.doctor_others import CHECKS, UNNAMED
from analyzer.doctor_text import Diagnosis, as_object, diagnosis_text
from analyzer.find_tokenizer import find_tokenizer
from analyzer.ledger import VLLM, engine_of
from analyzer.reporting import CHECK_DID_NOT_HOLD, DONE, put
from analyzer.server_api import ServerApi
from analyzer.servers import ServerProfile, read_profile
from analyzer.tokens import Tokenizer, TokenizerError
from store.records import ServerFact

PAGES = ("/version", "/v1/models", "/metrics", "/props", "/tokenizer_info", "/server_info")
TIMEOUT_S = 5.0
PROBE_TIMEOUT_S = 60.0
MAX_ANSWER_BYTES = 32 << 20


def run_doctor(url: str | None, proxy: str | None, *, probe: bool, form: str) -> int:
    """Look, and tell; returns the exit status: 3 where the report lacks something.

    `url` is a server's address or a proxy's, `proxy` where an agent is to be sent; without both, only this
    shell is looked at. Raises click.UsageError for what is no address, click.ClickException where nothing
    answers there.
    """
    diagnosis = _diagnosis(url, proxy, probe=probe)
    if form == "json":
        put(lambda width, color: json.dumps(as_object(diagnosis), indent=1) + "\n", None)
    else:
        put(lambda width, color: diagnosis_text(diagnosis, width=width, color=color), None)
    return CHECK_DID_NOT_HOLD if lacking(diagnosis.results) else DONE


def _diagnosis(url: str | None, proxy: str | None, *, probe: bool) -> Diagnosis:
    if (asked := url or proxy) is None and probe:
        raise click.UsageError("--probe needs a URL to ask")
    results: list[Result] = []
    profile, kind = ServerProfile(), None
    if proxy is not None:
        results += examined(Answers(facts=_upgraded(_api(proxy)), profile=profile), (PROXY,))
    if asked is not None:
        api = _api(asked)
        passes_on = _upgraded(api)[PROXY.name].status == UPGRADE_REFUSED
        proxy = proxy or (asked if passes_on else None)
        if probe and passes_on:
            print(
                "locality: no --probe through a proxy: it would be recorded; name the server", file=sys.stderr
            )
        answers = _answers(api, probe=probe and not passes_on)
        profile, kind = answers.profile, _kind(answers)
        results += examined(answers, CHECKS.get(kind or "", UNNAMED))
    return Diagnosis(
        asked=None if asked is None else _api(asked).url,
        proxy=proxy,
        kind=kind,
        version=profile.version,
        results=tuple(results),
        variables=read_variables(os.environ, proxy=proxy, server=url if url != proxy else None),
        detours=detours(os.environ, proxy or asked),
        clients=CLIENTS,
    )


def _api(url: str, timeout_s: float = TIMEOUT_S) -> ServerApi:
    try:
        return ServerApi(url.rstrip("/").removesuffix("/v1"), timeout_s=timeout_s, max_bytes=MAX_ANSWER_BYTES)
    except ValueError as error:
        raise click.UsageError(f"{url}: give a base URL, such as http://127.0.0.1:8000") from error


def _upgraded(api: ServerApi) -> dict[str, ServerFact]:
    """The answer to a WebSocket's opening, which the proxy refuses by itself."""
    headers = {"Connection": "Upgrade", "Upgrade": "websocket"}
    fact = _ask(api, "GET", "/v1/responses", None, headers)
    if fact.status is None:
        why = fact.body.decode(errors="replace")
        raise click.ClickException(f"{api.url} does not answer ({why}). Is it up, and is this its address?")
    return {PROXY.name: fact}


def _kind(answers: Answers) -> str | None:
    """Which kind of server it says it is; None: it does not."""
    engine = engine_of(answers.profile)
    told = engine.name != VLLM or engine.serves(answers.profile) or answers.profile.version is not None
    return engine.name if told else None


def _answers(api: ServerApi, *, probe: bool) -> Answers:
    with ThreadPoolExecutor(len(PAGES)) as pool:
        facts = {fact.path: fact for fact in pool.map(lambda path: _ask(api, "GET", path), PAGES)}
    profile = read_profile(facts.values())
    if profile.model is not None:
        facts |= {fact.path: fact for fact in _posted(api, profile.model)}
        if probe:
            facts |= dict(_probed(_api(api.url, PROBE_TIMEOUT_S), profile.model))
    folder, missing = _tokenizer(profile)
    templates = folder.chat_templates if folder else {}
    place = str(folder.directory) if folder else None
    return Answers(facts=facts, profile=profile, tokenizer=place, missing=missing, templates=templates)


def _tokenizer(profile: ServerProfile) -> tuple[Tokenizer | None, str | None]:
    try:
        return Tokenizer(find_tokenizer(None, profile)), None
    except TokenizerError as error:
        return None, str(error)


def _posted(api: ServerApi, model: str) -> Iterator[ServerFact]:
    """Pages that render or tokenize a word, and compute nothing."""
    yield _ask(api, "POST", "/tokenize", {"model": model, "prompt": "a"})
    yield _ask(api, "POST", RENDER, {"model": model, "messages": [{"role": "user", "content": "a"}]})


def _probed(api: ServerApi, model: str) -> Iterator[tuple[str, ServerFact]]:
    """Two requests that generate one token each."""
    body = {"model": model, "messages": [{"role": "user", "content": "a"}], "max_tokens": 1}
    yield CHAT, _ask(api, "POST", CHAT, body | {"return_token_ids": True})
    yield STREAM, _ask(api, "POST", CHAT, body | {"stream": True})


def _ask(
    api: ServerApi, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None
) -> ServerFact:
    sent = None if body is None else json.dumps(body).encode()
    status: int | None = None
    try:
        status, said = api.exchange(method, path, sent, headers or {})
    except (OSError, http.client.HTTPException) as error:
        said = str(getattr(error, "strerror", None) or error or type(error).__name__).encode()
    return ServerFact(at_ns=time.time_ns(), path=path, status=status, body=said)
