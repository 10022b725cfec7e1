"""Finds credentials in a text: detect-secrets' expressions, the table of `shapes`, and names (`assignments`).

It asks no server whether a credential works, and takes no value for one because of its entropy alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from store import embedded
from store.assignments import find_assigned
from store.shapes import SHAPES


@dataclass(frozen=True, slots=True)
class Pattern:
    """One expression; group 1, where it has one, is the secret.

    `needles` are lower-case strings of which a text must hold one to be worth the expression.
    """

    kind: str
    regex: re.Pattern[str]
    needles: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Finding:
    """A secret at the half-open range of characters from `char_start` to `char_end`.

    `secret` is what it reads once decoded; None: as it is written there.
    """

    char_start: int
    char_end: int
    kind: str
    secret: str | None = None

    def read(self, text: str) -> str:
        """Return the secret, of the text it was found in."""
        return text[self.char_start : self.char_end] if self.secret is None else self.secret


# A JSON field by its name, at any level of escapes. Values with a space are prose, with a brace templates.
# Of a bare `token` only what holds a digit, since log probabilities name each token so.
_FIELD = Pattern(
    "json-field",
    re.compile(
        r"""(?x:"(?:[\w-]{0,40}?(?i:api[_-]?key|passw(?:or)?d|passphrase|secret(?:[_-]?key)?|authorization
        |(?:access|auth|refresh|bearer|session)[_-]?token)|(?i:token)(?="\s*:\s*"[^"\s:]*\d))
        "\s*:\s*"([^"\s{}\\]{8,})")"""
    ),
    tuple(
        f'{name}"'
        for name in (
            *("api_key", "api-key", "apikey", "password", "passwd", "passphrase", "authorization"),
            *("secret", "secret_key", "secret-key", "secretkey", "token"),
        )
    ),
)

# Own expressions above replace these: JwtToken and PrivateKey match only a part, Npm runs to the line's end.
# IPPublic, Keyword and the entropy plugins mark what every prompt about code is full of.
_LEFT_OUT = frozenset(
    {"IPPublicDetector", "JwtTokenDetector", "PrivateKeyDetector", "NpmDetector", "ArtifactoryDetector"}
)
_CLOUD = ("key", "pwd", "pw", "pass", "token")
_NEEDLES: dict[str, tuple[str, ...]] = {
    "AWSKeyDetector": ("a3t", "abia", "akia", "asia", "aws"),
    "AzureStorageKeyDetector": ("accountkey=",),
    "BasicAuthDetector": ("://",),
    "CloudantDetector": ("cloudant",),
    "GitHubTokenDetector": ("ghp_", "gho_", "ghu_", "ghs_", "ghr_"),
    "GitLabTokenDetector": ("gl", "gr1348941"),
    "IbmCloudIamDetector": ("ibm", "iam_", "iam-", "iamapi"),
    "IbmCosHmacDetector": ("secret",),
    "MailchimpDetector": ("-us",),
    "OpenAIDetector": ("t3blbkfj",),
    "PypiTokenDetector": ("pypi-",),
    "SendGridDetector": ("sg.",),
    "SlackDetector": ("xox", "hooks.slack.com"),
    "SoftlayerDetector": ("softlayer",),
    "SquareOAuthDetector": ("sq0csp-",),
    "StripeDetector": ("k_live_",),
    "TelegramBotTokenDetector": (":aa",),
    "TwilioKeyDetector": ("ac", "sk"),
}
# Where an expression also fits words or source code, the match must hold a digit.
_NEEDS_DIGIT = frozenset({"discordbottoken", "twiliokey", "telegrambottoken"})
_OF_URLS = frozenset({"basicauth", "url-userinfo"})
_ALWAYS_GROUP = _OF_URLS | {"aws-secret-key", "netrc", "curl-user"}
# What documentation writes for a password: hiding these would hide nothing, and change the prompt.
_EXAMPLES = frozenset({"password", "passwd", "pass", "pwd", "pw", "p", "secret", "user", "username", "token"})
_TEMPLATE = re.compile(r"[<{$%\[(*]|\.\.\.|x{4}|X{4}")


@cache
def patterns() -> tuple[Pattern, ...]:
    """Return every expression in use; the first call imports detect-secrets."""
    own = [Pattern(kind, re.compile(expression), needles) for kind, expression, needles in SHAPES]
    # The field last: a secret that is known by its shape keeps the name of that.
    return (*own, *_borrowed(), _FIELD)


def _borrowed() -> Iterator[Pattern]:
    # Imported here because it brings `requests` along, and reading a capture needs neither.
    from detect_secrets.core.plugins.util import get_mapping_from_secret_type_to_class
    from detect_secrets.plugins.base import RegexBasedDetector

    plugins: dict[str, Any] = get_mapping_from_secret_type_to_class()
    for plugin in plugins.values():
        name = plugin.__name__
        if not issubclass(plugin, RegexBasedDetector) or name in _LEFT_OUT:
            continue
        kind = name.removesuffix("Detector").lower()
        for regex in vars(plugin)["denylist"]:
            yield Pattern(kind, regex, _NEEDLES.get(name, ()))


def find(text: str, known: Sequence[str] = (), depth: int = 0) -> list[Finding]:
    """Return the secrets in `text` by position, without overlaps; `known` values wherever they stand.

    What is written in percent escapes or base64 is searched too, `depth` counts how often it was undone.
    """
    lower = text.lower()
    found: list[Finding] = []
    for pattern in patterns():
        if pattern.needles and not any(needle in lower for needle in pattern.needles):
            continue
        found.extend(_matches(pattern, text))
    found.extend(Finding(*span) for span in find_assigned(text, lower))
    for value in known:
        found.extend(_occurrences(text, value))
    if depth < embedded.MAX_DEPTH:
        found.extend(_within(text, known, depth))
    return _without_overlaps(found) if len(found) > 1 else found


def _within(text: str, known: Sequence[str], depth: int) -> Iterator[Finding]:
    for part in embedded.parts(text):
        for inner in find(part.text, known, depth + 1):
            start, end = part.written(inner.char_start, inner.char_end)
            yield Finding(start, min(end, len(text)), inner.kind, inner.read(part.text))


def _matches(pattern: Pattern, text: str) -> Iterator[Finding]:
    for match in pattern.regex.finditer(text):
        # Some borrowed expressions capture only a prefix: the secret is then the whole match.
        group = 1 if pattern.regex.groups and len(match[1] or "") >= 8 else 0
        if pattern.kind in _ALWAYS_GROUP:
            group = 1
        secret = match[group]
        if pattern.kind in _OF_URLS and secret.lower() in _EXAMPLES:
            continue
        if _TEMPLATE.match(secret) or (pattern.kind in _NEEDS_DIGIT and not any(map(str.isdigit, secret))):
            continue
        yield Finding(match.start(group), match.end(group), pattern.kind)


def _occurrences(text: str, value: str) -> Iterator[Finding]:
    start = text.find(value)
    while start >= 0:
        yield Finding(start, start + len(value), "known")
        start = text.find(value, start + len(value))


def _without_overlaps(found: list[Finding]) -> list[Finding]:
    found.sort(key=lambda finding: (finding.char_start, -finding.char_end))
    kept: list[Finding] = []
    for finding in found:
        if kept and finding.char_start < kept[-1].char_end:
            last = kept[-1]
            if finding.char_end > last.char_end:
                kept[-1] = Finding(last.char_start, finding.char_end, last.kind)
        else:
            kept.append(finding)
    return kept
