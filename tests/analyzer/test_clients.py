"""Where coding agents read their base URL, as a user copies it."""

from __future__ import annotations

import json

from analyzer.clients import CLIENTS

URL = "http://127.0.0.1:8900"


def test_every_example_holds_the_proxys_address_in_one_place() -> None:
    assert [client.name for client in CLIENTS if client.example.count("{url}") != 1] == []
    assert len({client.name for client in CLIENTS}) == len(CLIENTS)


def test_an_example_for_a_settings_file_is_json_once_the_address_is_in() -> None:
    written = [client.example.replace("{url}", URL) for client in CLIENTS if client.example.startswith("{")]
    providers = [next(iter(json.loads(text).values()))["local"] for text in written]
    found = [item.get("baseUrl") or item["options"]["baseURL"] for item in providers]
    assert found == [f"{URL}/v1"] * 2
