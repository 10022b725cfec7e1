"""Made-up secrets of forty kinds, and the places and spellings in which they are planted.

Everything comes out of a seed; no secret here was ever one. The shapes are those of the vendors' documents.
"""

from __future__ import annotations

import base64
import json
import random
import string
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from urllib.parse import quote

LOWER, UPPER, DIGITS, HEX = string.ascii_lowercase, string.ascii_uppercase, string.digits, "0123456789abcdef"
ALNUM = LOWER + UPPER + DIGITS
URL_SAFE = ALNUM + "-_"


@dataclass(frozen=True, slots=True, kw_only=True)
class Planted:
    """A secret: `value` must be nowhere; `text` is how people write it down, with its name if it has one.

    `lines` are what to look for: a key of several lines is gone only if each of them is.
    """

    kind: str
    value: str
    text: str

    @property
    def lines(self) -> list[str]:
        """The parts to look for."""
        return [line for line in self.value.splitlines() if line and "PRIVATE KEY" not in line]

    @property
    def one_line(self) -> bool:
        """Whether it fits into a header or a URL."""
        return "\n" not in self.value


class Maker:
    """Draws secrets from a seed."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def chars(self, count: int, alphabet: str = ALNUM) -> str:
        """Random characters of which at least one is a digit, as nearly all keys have one."""
        drawn = [self.random.choice(alphabet) for _ in range(count)]
        digits = [char for char in alphabet if char.isdigit()]
        if digits:
            drawn[self.random.randrange(count)] = self.random.choice(digits)
        return "".join(drawn)

    def pem(self, label: str) -> str:
        """A private key of a few lines."""
        lines = [self.chars(64, ALNUM + "+/") for _ in range(6)]
        return "\n".join((f"-----BEGIN {label}-----", *lines, f"-----END {label}-----"))

    def jwt(self) -> str:
        """A signed token with a claim of its own."""
        parts = ({"alg": "HS256", "typ": "JWT"}, {"sub": self.chars(12), "iat": 1_700_000_000})
        encoded = [base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") for part in parts]
        return ".".join((*encoded, self.chars(43, URL_SAFE)))

    def password(self) -> str:
        """What a password manager makes, without what a shell or a URL would need escaped."""
        return self.chars(6, LOWER) + self.chars(3, DIGITS) + self.chars(5, UPPER) + self.chars(2, DIGITS)


def _shaped(make: Callable[[Maker], str]) -> Callable[[Maker], tuple[str, str]]:
    def made(maker: Maker) -> tuple[str, str]:
        value = make(maker)
        return value, value

    return made


def _named(make: Callable[[Maker], str], text: str) -> Callable[[Maker], tuple[str, str]]:
    def made(maker: Maker) -> tuple[str, str]:
        value = make(maker)
        return value, text.replace("VALUE", value)

    return made


def _service_account(maker: Maker) -> tuple[str, str]:
    key = maker.pem("PRIVATE KEY")
    return key, json.dumps({"type": "service_account", "private_key": key, "client_email": "a@b.iam"})


def _docker_auth(maker: Maker) -> tuple[str, str]:
    pair = base64.b64encode(f"deploy:{maker.password()}".encode()).decode()
    return pair, json.dumps({"auths": {"registry.example.com": {"auth": pair}}})


# Prefixes are put together here, so that no scanner takes this file for a leak.
KINDS: dict[str, Callable[[Maker], tuple[str, str]]] = {
    "aws id": _shaped(lambda m: "AK" + "IA" + m.chars(16, UPPER + "234567")),
    "aws secret": _named(lambda m: m.chars(40, ALNUM + "+/"), "aws_secret_access_key = VALUE"),
    "gcp account": _service_account,
    "azure storage": _named(
        lambda m: m.chars(86, ALNUM + "+/") + "==",
        "DefaultEndpointsProtocol=https;AccountName=a;AccountKey=VALUE",
    ),
    "azure client": _shaped(lambda m: m.chars(3) + "8" + "Q~" + m.chars(34, URL_SAFE)),
    "github classic": _shaped(lambda m: "gh" + "p_" + m.chars(36)),
    "github fine": _shaped(lambda m: "github" + "_pat_" + m.chars(22) + "_" + m.chars(59)),
    "gitlab": _shaped(lambda m: "gl" + "pat-" + m.chars(20, URL_SAFE)),
    "slack": _shaped(lambda m: "xo" + f"xb-{m.chars(12, DIGITS)}-{m.chars(12, DIGITS)}-{m.chars(24)}"),
    "stripe": _shaped(lambda m: "sk" + "_live_" + m.chars(24)),
    "openai": _shaped(lambda m: "sk-" + "proj-" + m.chars(48, URL_SAFE)),
    "anthropic": _shaped(lambda m: "sk-" + "ant-api03-" + m.chars(93, URL_SAFE)),
    "hugging face": _shaped(lambda m: "h" + "f_" + m.chars(34)),
    "npm": _shaped(lambda m: "np" + "m_" + m.chars(36)),
    "pypi": _shaped(lambda m: "py" + "pi-AgEIcHlwaS5vcmc" + m.chars(90, URL_SAFE)),
    "twilio": _named(lambda m: m.chars(32, HEX), "TWILIO_AUTH_TOKEN=VALUE"),
    "sendgrid": _shaped(lambda m: "S" + f"G.{m.chars(22, URL_SAFE)}.{m.chars(43, URL_SAFE)}"),
    "mailgun": _shaped(lambda m: "ke" + "y-" + m.chars(32, HEX)),
    "jwt": _shaped(lambda m: m.jwt()),
    "pem": _shaped(lambda m: m.pem("RSA " + "PRIVATE KEY")),
    "ssh": _shaped(lambda m: m.pem("OPENSSH " + "PRIVATE KEY")),
    "database": _named(lambda m: m.password(), "postgres://app:VALUE@db.internal:5432/app"),
    "basic": _named(
        lambda m: base64.b64encode(f"admin:{m.password()}".encode()).decode(), "Authorization: Basic VALUE"
    ),
    "bearer": _named(lambda m: m.chars(40, URL_SAFE), "Authorization: Bearer VALUE"),
    "session": _named(lambda m: m.chars(32), "Cookie: theme=dark; sessionid=VALUE"),
    "google": _shaped(lambda m: "AI" + "za" + m.chars(35, URL_SAFE)),
    "telegram": _shaped(lambda m: "7" + m.chars(9, DIGITS) + ":AA" + m.chars(33, URL_SAFE)),
    "discord": _shaped(
        lambda m: f"M{m.chars(23)}.{m.chars(6, URL_SAFE)}.{m.chars(27, URL_SAFE)}",
    ),
    "heroku": _named(
        lambda m: str(uuid.UUID(int=m.random.getrandbits(128), version=4)), "HEROKU_API_KEY=VALUE"
    ),
    "digitalocean": _shaped(lambda m: "do" + "p_v1_" + m.chars(64, HEX)),
    "datadog": _named(lambda m: m.chars(32, HEX), "DD-API-KEY: VALUE"),
    "cloudflare": _named(lambda m: m.chars(40, URL_SAFE), "CLOUDFLARE_API_TOKEN=VALUE"),
    "shopify": _shaped(lambda m: "shp" + "at_" + m.chars(32, HEX)),
    "square": _shaped(lambda m: "sq0" + "atp-" + m.chars(22, URL_SAFE)),
    "artifactory": _shaped(lambda m: "AK" + "Cp" + m.chars(69)),
    "docker": _docker_auth,
    "netrc": _named(lambda m: m.password(), "machine api.example.com login me password VALUE"),
    "vault": _shaped(lambda m: "hv" + "s." + m.chars(90, URL_SAFE)),
    "databricks": _shaped(lambda m: "da" + "pi" + m.chars(32, HEX)),
    "linear": _shaped(lambda m: "lin" + "_api_" + m.chars(40)),
    "notion": _shaped(lambda m: "nt" + "n_" + m.chars(46)),
    "figma": _shaped(lambda m: "fi" + "gd_" + m.chars(40, URL_SAFE)),
    "sentry": _named(lambda m: m.chars(32, HEX), "https://VALUE@o1.ingest.sentry.io/42"),
    "new relic": _shaped(lambda m: "NR" + "AK-" + m.chars(27, UPPER + DIGITS)),
    "password": _named(lambda m: m.password(), "DB_PASSWORD=VALUE"),
}


def planted(seed: int, count: int) -> Iterator[Planted]:
    """That many secrets, kind after kind."""
    maker = Maker(seed)
    kinds = list(KINDS)
    for number in range(count):
        kind = kinds[number % len(kinds)]
        value, text = KINDS[kind](maker)
        yield Planted(kind=kind, value=value, text=text)


def spellings(value: str) -> Iterator[bytes]:
    """Every way in which a secret might have survived: as it is, escaped, in base64 wherever it begins."""
    raw = value.encode()
    yield raw
    yield quote(value, safe="").encode()
    yield "".join(f"%{byte:02x}" for byte in raw).encode()
    yield "".join(f"\\u{byte:04x}" for byte in raw).encode()
    yield json.dumps(value)[1:-1].replace("/", "\\/").encode()
    for shift in range(3):
        encoded = base64.b64encode(b"\0" * shift + raw)
        # Without the characters that neighbours have a part in.
        inner = encoded[-(-shift * 8 // 6) : (shift + len(raw)) * 8 // 6]
        yield inner
        yield inner.replace(b"+", b"-").replace(b"/", b"_")


def _escaped(text: str) -> str:
    return "".join(
        f"\\u{ord(char):04x}" if at % 3 == 0 or char in '"\\\n' else char for at, char in enumerate(text)
    )


def _deep(text: str) -> str:
    for level in range(4):
        text = json.dumps({f"level{level}": text, "n": level})
    return text


PLACES: dict[str, Callable[[str], str]] = {
    "prose": lambda text: f"please use this one: {text} and tell nobody",
    "tool result": lambda text: f"$ cat notes\nfirst line\n{text}\nlast line\n",
    "code": lambda text: f"def main():\n    # {text}\n    return 1\n",
    "json": lambda text: json.dumps({"note": text, "list": [1, text]}, indent=1),
    "json four deep": _deep,
    "data url": lambda text: f"data:text/plain;base64,{base64.b64encode(text.encode()).decode()}",
    "data url in percent": lambda text: f"data:,{quote(text, safe='')}",
    "base64": lambda text: base64.b64encode(f"the file says\n{text}\n".encode()).decode(),
    "wrapped base64": lambda text: base64.encodebytes(f"{'x' * 41}\n{text}\n".encode()).decode(),
    "form": lambda text: f"a=1&text={quote(text, safe='')}&b=2",
    "percent twice": lambda text: f"?next={quote(quote(text, safe=''), safe='')}",
}
"""Into what a secret's text is put; each result stands in a JSON string of a body."""

VALUE_PLACES: dict[str, Callable[[str], str]] = {
    "shell": lambda value: f"export SERVICE_TOKEN={value}\n",
    "env file": lambda value: f"A=1\nADMIN_PASSWORD={value}\nB=2\n",
    "yaml": lambda value: f"db:\n  user: app\n  password: {value}\n",
    "quoted": lambda value: f"client = Client(api_key='{value}', retries=3)",
    "curl": lambda value: f"curl -s -H 'Authorization: Bearer {value}' https://api.example.com",
    "curl user": lambda value: f"curl -u admin:{value} https://api.example.com",
    "userinfo": lambda value: f"https://user:{quote(value, safe='')}@git.example.com/x.git",
    "json field": lambda value: json.dumps({"db_password": value}),
}
"""The same for values of one line, with a name that gives them away."""

escaped = _escaped
