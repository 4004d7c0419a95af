"""Seeded mutation of texts: a number makes a text, so every finding can be made again."""

from __future__ import annotations

import random
import re

TOKEN = re.compile(r"<[^<>\s]*>|\"[^\"]*\"|[?$]\w+|\w+:\w*|\w+|\s+|.", re.DOTALL)
SPICE = [
    "{", "}", "(", ")", "[", "]", ".", ";", ",", "*", "+", "?", "!", "^", "/", "|", "&&", "||", "=", "<", ">", "-", "1",
    "-1", "0", "1e9", '"x"', "'''", '"@en', "^^", "_:b", "[]", "()", "?x", "?s", "<urn:x:p>", "SELECT", "ASK", "CONSTRUCT",
    "DESCRIBE", "WHERE", "FILTER", "OPTIONAL", "UNION", "MINUS", "BIND", "AS", "VALUES", "UNDEF", "EXISTS", "NOT", "GRAPH",
    "WINDOW", "FROM", "NAMED", "STREAM", "ON", "RANGE", "STEP", "10s", "PT1S", "TRIPLES", "GROUP", "BY", "HAVING", "ORDER",
    "DESC", "LIMIT", "OFFSET", "DISTINCT", "COUNT", "SUM", "AVG", "IF", "COALESCE", "IN", "REGEX", "REGISTER", "QUERY",
    "ISTREAM", "BASE", "PREFIX", ":", "a", "true", "\x00", "\ufeff", "\U0001f600", "\\u0041", "#", "\n", "SERVICE", "INSERT", "DATA",
]  # fmt: skip


def mutated(seed: int, texts: list[str]) -> str:
    """Return one of the texts after a few random edits of its tokens (or of its characters)."""
    rng = random.Random(seed)
    tokens = TOKEN.findall(rng.choice(texts))
    if rng.random() < 0.15:
        tokens = list("".join(tokens))
    for _ in range(rng.choice([1, 1, 2, 3, 6])):
        at = rng.randrange(len(tokens) + 1)
        kind = rng.random()
        if kind < 0.25:
            del tokens[at : at + rng.choice([1, 1, 3])]
        elif kind < 0.5:
            tokens.insert(at, rng.choice(SPICE))
        elif kind < 0.65 and tokens:
            tokens[at % len(tokens)] = rng.choice(SPICE)
        elif kind < 0.8 and tokens:
            end = min(len(tokens), at + rng.randint(1, 12))
            tokens[at:at] = tokens[max(0, at - (end - at)) : end] * rng.choice([1, 1, 4])
        else:
            other = TOKEN.findall(rng.choice(texts))
            start = rng.randrange(len(other) or 1)
            tokens[at:at] = other[start : start + rng.randint(1, 25)]
    return "".join(tokens)[:20_000]
