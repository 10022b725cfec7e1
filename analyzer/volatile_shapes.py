"""What a differing place of a text looks like: an id made anew, or a line that describes the surroundings.

Both are shapes, read off the characters: nothing here knows where the text stands, and clocks are
`analyzer.moments`'.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

# A UUID, and what Python's tempfile makes.
_MADE = re.compile(r"[0-9a-f]{8}-?(?:[0-9a-f]{4}-?){3}[0-9a-f]{12}|\btmp[a-z0-9_]{8}\b", re.IGNORECASE)
_HEX = re.compile(r"(?:0x)?(?:[0-9a-f]+|[0-9A-F]+)")
_ID_CHARS = re.compile(r"[0-9A-Za-z_+/.~-]")
_ID_WORDS = re.compile(
    r"(?:\bids?|id|nonce|hash|token|cch|key|seed|salt|digest|etag|trace|span|session|request|uuid|guid"
    r"|checksum|fingerprint|build|rev)\W{0,4}$",
    re.IGNORECASE,
)
_PARTS = re.compile(r"[_./+-]+")
_SWITCHES = re.compile(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Za-z])(?=\d)|(?<=\d)(?=[A-Za-z])")
_DIGIT_RUNS = re.compile(r"(?<=\D)(?=\d)|(?<=\d)(?=\D)")
_CONSONANTS = re.compile(r"[^aeiouy\d]{5}", re.IGNORECASE)
_DIGITS = re.compile(r"\d+(?:[.,]\d+)*")

_GIT = re.compile(
    r"^\s*(?:[MADRCUT?!][MADRCUT?!]?|modified:|new file:|deleted:|renamed:|copied:|untracked)\s+\S"
    r"|\bbranch\b|\bHEAD\b|\bcommits?\b|working tree|nothing to commit"
    r"|^\s*\(?(?:clean|dirty|none|empty)\)?\s*$"
    r"|^\s*\*?\s*[0-9a-f]{7,40}\s|\b(?:un)?staged\b|\buntracked\b|\bstash",
    re.IGNORECASE,
)
_PATH = re.compile(
    r"(?:^|[\s\"'`(=:<>\[*])(?:~|\.{1,2}|[A-Za-z]:)?[/\\]?[\w.@+-]+(?:[/\\][\w.@+ -]+)+[/\\]?"
    r"|(?:^|[\s\"'`(=:,<>\[*])[/\\~][\w.@+-]+"
    r"|(?:^|[\s\"'`(=:,<>\[*/])[\w-]+\.(?:[a-z]{1,4}|[a-z]\w{1,4}|lock|toml|yaml|json)(?=$|[\s\"'`):;,\]<])"
    r"|[├└│]|^\s*[\w.-]+/\s*$"
)
_SURROUNDINGS = re.compile(
    r"\b(?:cwd|pwd|working dir\w*|directory|workspace|worktree|folder|platform|os version|shell"
    r"|hostname|host|user|uptime|battery|memory|memories|disk|cpu|load|pid|port|tokens?|context|usage|used|remaining|left|budget|cost"
    r"|quota|open (?:files?|tabs?)|active (?:file|editor|tab)|cursor|selection|visible files|recent\w*|git\w*"
    r"|status|files?|listing|tree|environment|env|facts?|retrieved|available tools"
    r"|mcp servers?|todos?|diagnostics|processes|terminals?)\b",
    re.IGNORECASE,
)
_LISTED = re.compile(
    r"^\s*(?:[-*•]|\d+[.)])\s+(?:\*\*)?[`'\"]?(?:\w*[_./:@-]\w+|\w+(?=[`'\"]?(?:\*\*)?\s*[:(–-]))"
)
_HEADING = re.compile(r"^\s*(?:#+\s|<[\w-]+>\s*$|\*\*.+\*\*:?\s*$|[^\n]{1,60}:\s*$)")


def nonces(before: str, after: str, start_before: int, start_after: int) -> tuple[int, int, int, int] | None:
    """The ranges of two ids made anew that hold these places of two texts, or None where they are none."""
    first, end_before = _word(before, start_before)
    other, end_after = _word(after, start_after)
    if start_before - first != start_after - other:
        return None
    one, two = before[first:end_before], after[other:end_after]
    context = before[max(0, first - 16) : first]
    if _GIT.search(before[before.rfind("\n", 0, first) + 1 : first]) or not _alike(one, two, context):
        return None
    return first, end_before, other, end_after


def _word(text: str, at: int) -> tuple[int, int]:
    """The run of characters, such as ids are made of, around a place; a closing `==` belongs to it."""
    start = end = at
    while start and _ID_CHARS.match(text[start - 1]):
        start -= 1
    while end < len(text) and _ID_CHARS.match(text[end]):
        end += 1
    while end > start and text[end - 1] == ".":
        end -= 1
    padded = end
    while padded < len(text) and padded < end + 2 and text[padded] == "=":
        padded += 1
    return start, padded if not text[padded : padded + 1].isalnum() else end


def _alike(one: str, two: str, context: str) -> bool:
    if _MADE.search(one) and _MADE.search(two):
        return True
    parts = _PARTS.split(one.rstrip("=")), _PARTS.split(two.rstrip("="))
    shared = _shared(*parts)
    ended = _shared(*(row[shared:][::-1] for row in parts))
    rows = [row[shared : len(row) - ended] for row in parts]
    named = any(_ID_WORDS.search(text) for text in (context, *parts[0][:shared]))
    if len(rows[0]) == len(rows[1]) and all(_is_pair(a, b, named) for a, b in zip(*rows, strict=True)):
        return bool(rows[0])
    joined = ["".join(row) for row in rows]  # base64 holds separators by chance
    cased = all(any(map(str.islower, text)) and any(map(str.isupper, text)) for text in joined)
    return cased and min(map(len, joined)) >= 10 and any(_is_random(text, "") for text in joined)


def _shared(one: Sequence[str], other: Sequence[str]) -> int:
    return next(
        (at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other))
    )


def _is_mixed(text: str) -> bool:
    """Whether upper and lower case, or letters and digits, stand together."""
    cases = any(map(str.islower, text)), any(map(str.isupper, text)), any(map(str.isdigit, text))
    return sum(cases) >= 2


def _is_pair(one: str, two: str, named: bool) -> bool:
    longest, shortest = max(len(one), len(two)), min(len(one), len(two))
    if longest - shortest > 2 and shortest < 12:
        return False
    if one.isdigit() and two.isdigit():
        return shortest >= 8 or (named and shortest >= 3)
    if _HEX.fullmatch(one) and _HEX.fullmatch(two):
        digits = any(map(str.isdigit, one)) or any(map(str.isdigit, two))
        return shortest >= 16 or (shortest >= 4 and digits) or (named and digits and shortest >= 2)
    context = "id:" if named else ""
    random = [_is_random(text, context) for text in (one, two)]
    return all(random) or (any(random) and longest == shortest >= 8 and _is_mixed(one) and _is_mixed(two))


def _is_random(text: str, context: str) -> bool:
    """Whether letters and digits change too often for a word, a name or a version."""
    if len(text) < (5 if context else 6):
        return False
    parts = [len(part) for part in _SWITCHES.split(text)]
    if any(map(str.isdigit, text)):
        turns = len(_DIGIT_RUNS.split(text)) - 1
        return turns >= 2 or (bool(context) and turns >= 1) or len(text) >= 16
    if len(parts) > 1 and len(text) / len(parts) <= 2.7:
        return True
    return bool(_CONSONANTS.search(text)) and len(text) >= 8


def is_reordered(before: str, after: str) -> bool:
    """Whether both texts hold the same lines, or the same items of their lists, in another order."""
    lines = [Counter(filter(None, map(str.strip, text.splitlines()))) for text in (before, after)]
    if lines[0] == lines[1]:
        return before.split() != after.split()
    gone, come = list((lines[0] - lines[1]).elements()), list((lines[1] - lines[0]).elements())
    return len(gone) == len(come) and Counter(map(_items, gone)) == Counter(map(_items, come))


def _items(line: str) -> tuple[str, ...]:
    return tuple(
        sorted(item.strip(" .[]()\"'") for item in re.split(r"[,;|]|\.\s", line.partition(":")[2] or line))
    )


def is_snapshot(before: str, after: str, heading: str) -> bool:
    """Whether differing lines describe the surroundings: paths, status codes, counts, or a live list.

    `heading` is what stands above them, as `heading_above` finds it.
    """
    rows = [line for text in (before, after) for line in text.splitlines() if line.strip()]
    if not rows:
        return False
    if before and _DIGITS.sub("0", before) == _DIGITS.sub("0", after):
        return not _is_version(before, after)
    surrounding = bool(_SURROUNDINGS.search(heading) or _GIT.search(heading))
    return all(surrounding or _describes(line) for line in rows)


def _is_version(before: str, after: str) -> bool:
    """Whether the numbers are those of a version or a model's name, which belong to the text."""
    return any(
        re.search(r"\d\.\d+\.\d|\bv\d|version|[a-z][.-]?\d", text, re.IGNORECASE) is not None
        and not re.search(r"%|\b\d+ (?:of \d|files?|tokens?|lines?|items?)\b|[/\\]", text)
        for text in (before, after)
    )


def _describes(line: str) -> bool:
    if _GIT.search(line) or _PATH.search(line) or _LISTED.match(line):
        return True
    key, colon, value = line.partition(":")
    return bool(colon and value.strip() and _SURROUNDINGS.search(key)) and len(key.split()) <= 6


def heading_above(text: str, at: int) -> str:
    """The nearest line above a place that looks like a heading; empty where there is none."""
    for line in reversed(text[:at].splitlines()[-40:]):
        if _HEADING.match(line):
            return line
    return ""
