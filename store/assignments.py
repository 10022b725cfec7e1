"""Credentials that have no shape of their own, found by the name they are given: `DB_PASSWORD=…`, `token: …`.

It looks at no text without such a name: hashes, ids and long identifiers are what prompts about code are made
of. Under a name, a value must also look made up or random (detect-secrets' keyword and entropy plugins take
every quoted value, and every long one).
"""

from __future__ import annotations

import base64
import binascii
import re
from collections import Counter
from collections.abc import Iterator
from math import log2

type Span = tuple[int, int, str]
"""Where a value starts and ends, and its kind."""

_WORDS = ("passw", "passphrase", "pwd", "secret", "token", "key", "credential", "auth")
_ASSIGNED = re.compile(
    r"""(?x)
    (?P<name>(?i:passw(?:or)?d|passphrase|pwd|secret|token|key|credentials?|auth))
    (?i:_?\d{1,2}|_(?:base|prod|live|test|dev|staging|value))?
    (?P<close>\\{0,7}["'`\]]{0,2})
    (?P<sep>[ \t]{0,8}(?:=>|:=|={1,2}|:)\s{0,4}|>|,[ ]?|[ ])
    (?:[bruf]{0,2}(?P<quote>\\{0,7}["'`])(?P<quoted>(?:(?!(?P=quote))[^\s]){8,500})(?P=quote)
      |(?P<bare>[^\s"'`,;&<>(){}\[\]|\\]{8,500}+)(?![(\[{]))
    """
)
# `cache_key`, `primary_key` and a bare `key` name no credential.
_KEY_OF = re.compile(
    r"(?i:api|access|secret|private|auth|account|client|app|application|license|signing|encryption|storage"
    r"|master|admin|service|deploy|rest|ingest|shared|subscription|user)[_-]?\Z"
)
_NO_CREDENTIAL = re.compile(r"(?i:page|next|cursor|sync|continuation|cancellation|public)[_-]?\Z")
_OPTION = re.compile(r"(?:\A|\s)--[\w-]{0,30}\Z")
_REST_OF_WORD = re.compile(r"(?:(?!&[\w.-]+=)[^\s\"'`\\])*")
_UPPER_NAME = re.compile(r"[A-Z0-9_]*\Z")
# References, formats and what stands for a secret: `${TOKEN}`, `<your-key>`, `%s`, `os.environ`, `xxxx`.
_REFERENCE = re.compile(r"[<{$%\[(*@]|\.\.\.|.*(?:\$\{|\{\{|\}\}|://|\*{3}|[xX]{4}|…)|\.{0,2}/|~/", re.DOTALL)
_DOTTED = re.compile(r"[A-Za-z_]\w*(?:(?:\.|::|->)[A-Za-z_]\w*)+;?")
_EXAMPLE = re.compile(
    r"(?i)(?:my|your|the|test|new|old|some|a|user)?[_-]?(?:passw(?:or)?d|passphrase|secret|token|key|value|string"
    r"|example|changeme|sha|md|base|uuid|int|uint|float|char|oauth|utf|pbkdf|bcrypt|argon|aes|hs|rs|es)[\W\d_]*"
)
_HOST_AND_PORT = re.compile(r"[A-Za-z0-9.-]+:\d{1,5}")
_UUID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_TOKEN = re.compile(r"[A-Za-z0-9+/=_.~%:-]{16,500}")


def find_assigned(text: str, lower: str) -> Iterator[Span]:
    """Yield the credentials that are given to a name; `lower` is the text in lower case."""
    for word in _WORDS:
        at = lower.find(word)
        while at >= 0:
            match = _ASSIGNED.match(text, at)
            if match is not None and (span := _judged(text, match)):
                yield span
            at = lower.find(word, at + len(word))


def _judged(text: str, match: re.Match[str]) -> Span | None:
    before = text[max(0, match.start() - 40) : match.start()]
    if not _is_name(match, before):
        return None
    group = "quoted" if match["quoted"] else "bare"
    start, end = match.span(group)
    value, whole = match[group], end
    if group == "bare" and match["sep"] == "=" and _UPPER_NAME.fullmatch(match["name"]):
        # A line of a shell or an .env file: its value ends where the word does.
        rest = _REST_OF_WORD.match(text, end)
        whole = rest.end() if rest else end
    kind = _kind(match["name"].lower(), value, quoted=group == "quoted")
    return (start, whole, kind) if kind else None


def _is_name(match: re.Match[str], before: str) -> bool:
    """Say whether what was found is a credential's name, written as one that is given a value."""
    if match["sep"] == " " and (match["close"] or not _OPTION.search(before)):
        return False
    if match["sep"].startswith(",") and not (match["close"] and match["quoted"]):
        return False
    if match["name"].lower() == "key" and not _KEY_OF.search(before):
        return False
    return not _NO_CREDENTIAL.search(before)


def _kind(name: str, value: str, *, quoted: bool) -> str | None:
    """Return what kind of credential a value is under a name; None where it is not one."""
    if any(other.fullmatch(value) for other in (_DOTTED, _EXAMPLE, _HOST_AND_PORT)) or _REFERENCE.match(
        value
    ):
        return None
    if name == "auth":
        return "basic-auth" if is_user_and_password(value) else None
    if name.startswith(("passw", "passphrase", "pwd")):
        return "password" if is_made_up(value, quoted=quoted) else None
    return name.removesuffix("s") if is_random(value) else None


def is_made_up(value: str, *, quoted: bool) -> bool:
    """Say whether a value under the name of a password can be one: no name of a variable, no word."""
    has_digit = any(map(str.isdigit, value))
    has_letter = any(map(str.isalpha, value))
    if not quoted:
        return has_digit and has_letter
    return has_letter and (has_digit or any(char in "!@#^&*+=?~" for char in value))


def is_random(value: str) -> bool:
    """Say whether a value under the name of a key looks drawn by a machine."""
    if _UUID.fullmatch(value):
        return True
    if not _TOKEN.fullmatch(value):
        return False
    longest = max(re.split(r"[-_./:=~+%]", value), key=len)
    if len(longest) >= 12 and _is_mixed(longest):
        return entropy(longest) >= 3.0
    return len(value) >= 32 and _is_mixed(value) and entropy(value) >= 4.2


def _is_mixed(text: str) -> bool:
    return any(map(str.isdigit, text)) and any(map(str.isalpha, text))


def entropy(text: str) -> float:
    """Return Shannon's entropy of a text's characters, in bits a character."""
    counts = Counter(text).values()
    return -sum(count / len(text) * log2(count / len(text)) for count in counts)


def is_user_and_password(value: str) -> bool:
    """Say whether a value is base64 of `user:password`, as Docker and npm keep it."""
    try:
        pair = base64.b64decode(value + "=" * (-len(value) % 4), validate=True)
    except (binascii.Error, ValueError):
        return False
    return pair.isascii() and pair.decode("ascii").isprintable() and 0 < pair.find(b":") < len(pair) - 1
