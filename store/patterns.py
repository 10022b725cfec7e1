"""What a credential looks like: detect-secrets' expressions and a table of newer prefixes.

It asks no server whether a credential works, and guesses nothing from entropy or names in code.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any


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
    """A secret at the half-open range of characters from `char_start` to `char_end`."""

    char_start: int
    char_end: int
    kind: str


_TAIL = r"[A-Za-z0-9_-]"
_HEAD = r"(?<![A-Za-z0-9_-])"

# kind, expression, needles
_OWN: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    (
        "private-key",
        r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
        r"(?:(?s:.){0,20000}?-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----|[A-Za-z0-9+/=\s\\:,-]*)",
        ("private key",),
    ),
    ("private-key", r"PuTTY-User-Key-File-\d(?s:.){0,20000}?(?:Private-MAC: *[0-9a-f]+|\Z)", ("putty-user",)),
    ("age-key", r"AGE-SECRET-KEY-1[A-Z0-9]{50,}", ("age-secret",)),
    ("anthropic-key", rf"{_HEAD}sk-ant-{_TAIL}{{16,}}", ("sk-ant-",)),
    ("openai-key", rf"{_HEAD}sk-(?:proj|svcacct|admin|None)-{_TAIL}{{16,}}", ("sk-",)),
    ("api-key", rf"{_HEAD}sk-(?:[a-z0-9]{{2,8}}-){{1,3}}(?={_TAIL}*\d){_TAIL}{{20,}}", ("sk-",)),
    ("api-key", rf"{_HEAD}sk-[A-Za-z0-9]{{20,}}", ("sk-",)),
    ("google-key", rf"AIza{_TAIL}{{35}}", ("aiza",)),
    ("google-token", rf"{_HEAD}ya29\.{_TAIL}{{20,}}", ("ya29.",)),
    ("huggingface-token", r"(?<![A-Za-z0-9])(?:hf|api_org)_[A-Za-z0-9]{30,}", ("hf_", "api_org_")),
    ("github-token", r"github_pat_[A-Za-z0-9_]{22,}", ("github_pat_",)),
    ("github-token", r"gh[pousr]_[A-Za-z0-9_]{36,}", ("ghp_", "gho_", "ghu_", "ghs_", "ghr_")),
    ("gitlab-token", rf"gl[a-z]{{2,6}}-{_TAIL}{{20,}}", ("glpat-", "gldt-", "glft-", "glsoat-", "glrt-")),
    ("groq-key", rf"{_HEAD}gsk_[A-Za-z0-9]{{40,}}", ("gsk_",)),
    ("xai-key", rf"{_HEAD}xai-[A-Za-z0-9]{{40,}}", ("xai-",)),
    ("nvidia-key", rf"{_HEAD}nvapi-{_TAIL}{{40,}}", ("nvapi-",)),
    ("replicate-token", rf"{_HEAD}r8_[A-Za-z0-9]{{36,}}", ("r8_",)),
    ("perplexity-key", rf"{_HEAD}pplx-[A-Za-z0-9]{{40,}}", ("pplx-",)),
    ("tavily-key", rf"{_HEAD}tvly-{_TAIL}{{20,}}", ("tvly-",)),
    ("langsmith-key", r"lsv2_(?:pt|sk)_[A-Za-z0-9_]{32,}", ("lsv2_",)),
    ("digitalocean-token", r"do[opr]_v1_[a-f0-9]{64}", ("_v1_",)),
    ("docker-token", rf"dckr_(?:pat|oat)_{_TAIL}{{20,}}", ("dckr_",)),
    ("vault-token", rf"{_HEAD}hv[sbr]\.{_TAIL}{{24,}}", ("hvs.", "hvb.", "hvr.")),
    ("shopify-token", r"shp(?:at|ca|pa|ss)_[a-fA-F0-9]{32}", ("shpat_", "shpca_", "shppa_", "shpss_")),
    ("slack-token", rf"xapp-\d-{_TAIL}{{20,}}|xox[abeoprs]-{_TAIL}{{20,}}", ("xapp-", "xox")),
    (
        "stripe-key",
        r"(?:sk|rk)_(?:live|test)_[A-Za-z0-9]{16,}|whsec_[A-Za-z0-9+/=]{24,}",
        ("k_live_", "k_test_", "whsec_"),
    ),
    ("npm-token", r"npm_[A-Za-z0-9]{36}", ("npm_",)),
    ("npm-token", r"_authToken\s*=\s*([A-Za-z0-9_=+/.-]{16,})", ("_authtoken",)),
    (
        "aws-secret-key",
        r"(?i:secret_?-?(?:access)?_?-?key|aws_?secret)[^A-Za-z0-9+/\n]{1,12}([A-Za-z0-9/+]{40})(?![A-Za-z0-9/+=])",
        ("secret",),
    ),
    ("aws-session-token", r"(?i:session_?token)[^A-Za-z0-9+/\n]{1,12}([A-Za-z0-9/+=]{100,})", ("session",)),
    ("jwt", r"eyJ[A-Za-z0-9_-]{8,2000}=*\.[A-Za-z0-9_-]{8,}=*(?:\.[A-Za-z0-9_=+/-]*){0,3}", ("eyj",)),
    ("bearer", r"(?i:bearer)\s{1,3}(?=[A-Za-z_.~+/=-]*\d)([A-Za-z0-9._~+/=-]{16,})", ("bearer",)),
    (
        "basic-auth",
        r"(?i:authorization)[\"'\\ ]{0,6}[:=,][\"'\\ ]{0,6}(?i:basic)\s+([A-Za-z0-9+/=]{8,})",
        ("basic",),
    ),
    ("basic-auth", r"(?i:(?<![a-z0-9])basic)\s+(?=[A-Za-z+/=]*\d)([A-Za-z0-9+/]{16,}={0,2})", ("basic",)),
)

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
_LEFT_OUT = frozenset({"IPPublicDetector", "JwtTokenDetector", "PrivateKeyDetector", "NpmDetector"})
_CLOUD = ("key", "pwd", "pw", "pass", "token")
_NEEDLES: dict[str, tuple[str, ...]] = {
    "AWSKeyDetector": ("a3t", "abia", "akia", "asia", "aws"),
    "ArtifactoryDetector": ("akc", "ap"),
    "AzureStorageKeyDetector": ("accountkey=",),
    "BasicAuthDetector": ("://",),
    "CloudantDetector": ("cloudant",),
    "GitHubTokenDetector": ("ghp_", "gho_", "ghu_", "ghs_", "ghr_"),
    "GitLabTokenDetector": ("gl", "gr1348941"),
    "IbmCloudIamDetector": ("ibm", "iam"),
    "IbmCosHmacDetector": ("secret",),
    "MailchimpDetector": ("-us",),
    "OpenAIDetector": ("t3blbkfj",),
    "PypiTokenDetector": ("pypi-",),
    "SendGridDetector": ("sg.",),
    "SlackDetector": ("xox", "hooks.slack.com"),
    "SoftlayerDetector": ("softlayer",),
    "SquareOAuthDetector": ("sq0csp-",),
    "StripeDetector": ("k_live_",),
    "TelegramBotTokenDetector": (":",),
    "TwilioKeyDetector": ("ac", "sk"),
}
# Where an expression also fits words or source code, the match must hold a digit.
_NEEDS_DIGIT = frozenset({"artifactory", "discordbottoken", "twiliokey", "telegrambottoken"})
_TEMPLATE = re.compile(r"[<{$%\[(*]|\.\.\.|x{4}|X{4}")


@cache
def patterns() -> tuple[Pattern, ...]:
    """Return every expression in use; the first call imports detect-secrets."""
    own = [Pattern(kind, re.compile(expression), needles) for kind, expression, needles in _OWN]
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


def find(text: str, known: Sequence[str] = ()) -> list[Finding]:
    """Return the secrets in `text` by position, without overlaps; `known` values wherever they stand."""
    lower = text.lower()
    found: list[Finding] = []
    for pattern in patterns():
        if pattern.needles and not any(needle in lower for needle in pattern.needles):
            continue
        found.extend(_matches(pattern, text))
    for value in known:
        found.extend(_occurrences(text, value))
    return _without_overlaps(found) if len(found) > 1 else found


def _matches(pattern: Pattern, text: str) -> Iterator[Finding]:
    for match in pattern.regex.finditer(text):
        # Some borrowed expressions capture only a prefix: the secret is then the whole match.
        group = 1 if pattern.regex.groups and len(match[1] or "") >= 8 else 0
        if pattern.kind in ("basicauth", "aws-secret-key"):
            group = 1
        secret = match[group]
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
            end = max(last.char_end, finding.char_end)
            kept[-1] = Finding(last.char_start, end, last.kind)
        else:
            kept.append(finding)
    return kept
