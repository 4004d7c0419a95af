"""Documents that exceed the limits of a parser, by name: format and text. `size` is the approximate size of each."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

RDF = 'xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:e="http://e/"'


def bomb() -> str:
    """Return a document of 820 bytes that expands to 24 GB ("billion laughs")."""
    entities = "".join(f'<!ENTITY a{i} "{f"&a{i - 1};" * 10}">' for i in range(1, 10))
    return (
        f'<!DOCTYPE r [<!ENTITY a0 "aaaaaaaaaaaaaaaaaaaaaaaa">{entities}]><rdf:RDF {RDF}>'
        '<rdf:Description rdf:about="http://e/s"><e:p>&a9;</e:p></rdf:Description></rdf:RDF>'
    )


def nested(head: str, opening: str, middle: str, closing: str, tail: str, size: int) -> str:
    depth = max(1, (size - len(head) - len(middle) - len(tail)) // (len(opening) + len(closing)))
    return head + opening * depth + middle + closing * depth + tail


def listed(head: str, item: Callable[[int], str], tail: str, size: int, between: str = ",") -> str:
    """Return `head`, as many items as fit into `size` characters, and `tail`."""
    items, left, i = [], size - len(head) - len(tail), 0
    while left > 0:
        items.append(item(i))
        left -= len(items[-1]) + len(between)
        i += 1
    return head + between.join(items) + tail


def half(size: int, letter: str = "x") -> str:
    return letter * (size // 2)


DOCUMENTS: dict[str, tuple[str, Callable[[int], str]]] = {
    "entities": ("xml", lambda _: bomb()),
    "elements in elements": (
        "xml",
        lambda n: nested(f"<rdf:RDF {RDF}>", "<e:C><e:p>", "", "</e:p></e:C>", "</rdf:RDF>", n),
    ),
    "namespaces in literals": (
        "xml",
        lambda n: (
            f"<rdf:RDF {RDF} "
            + " ".join(f'xmlns:a{i}="u:{i}"' for i in range(n // 40))
            + '><e:C><e:p rdf:parseType="Literal">'
            + "<a/>" * (n // 8)
            + "</e:p></e:C></rdf:RDF>"
        ),
    ),
    "a long namespace": ("xml", lambda n: f'<rdf:RDF {RDF} xmlns:a="u:{half(n)}">{"<a:b/>" * (n // 12)}</rdf:RDF>'),
    "a long base": (
        "xml",
        lambda n: f'<rdf:RDF {RDF} xml:base="http://e/{"a/" * (n // 4)}">{"<e:C/>" * (n // 12)}</rdf:RDF>',
    ),
    "a long prefix": (
        "turtle",
        lambda n: f"@prefix e: <u:{half(n)}> .\n" + "".join(f"e:{i} e:b e:c.\n" for i in range(n // 30)),
    ),
    "a long base of Turtle": (
        "turtle",
        lambda n: f"@base <http://e/{'x/' * (n // 4)}> .\n<> <> {','.join(['<>'] * (n // 6))}.\n",
    ),
    "bases on bases": (
        "turtle",
        lambda n: listed("@base <http://e/> .\n", lambda i: f"@base <a{i}/> .", "<a> <b> <c> .", n, "\n"),
    ),
    "prefixes": (
        "turtle",
        lambda n: listed("", lambda i: f"@prefix e{i}: <http://e/{i}/> .", "e1:a e2:b e3:c .", n, "\n"),
    ),
    "collections": ("turtle", lambda n: nested("<u:s> <u:p> ", "(", "", ")", " .", n)),
    "blank nodes": ("turtle", lambda n: nested("<u:s> <u:p> ", "[<u:p> ", "1", "]", " .", n)),
    "triple terms": ("turtle", lambda n: nested("<u:s> <u:p> ", "<<(<u:a><u:b>", "1", ")>>", " .", n)),
    "quoted triples": ("turtle", lambda n: nested("<u:s> <u:p> ", "<<<u:a><u:b>", "1", ">>", " .", n)),
    "graphs": ("trig", lambda n: listed("", lambda i: f"<u:g{i}> {{ <u:s> <u:p> {i} }}", "", n, "\n")),
    "objects in objects": ("json-ld", lambda n: nested("", '{"u:p":', "1", "}", "", n)),
    "lists in lists": ("json-ld", lambda n: nested('{"u:p":', '{"@list":[', "1", "]}", "}", n)),
    "arrays in arrays": ("json-ld", lambda n: nested('{"u:p":', "[", "1", "]", "}", n)),
    "graphs in graphs": ("json-ld", lambda n: nested("", '{"@graph":', '{"u:p":1}', "}", "", n)),
    "contexts in contexts": (
        "json-ld",
        lambda n: nested('{"@context":', '{"p":{"@id":"u:p","@context":', "{}", "}}", ',"p":1}', n),
    ),
    "terms by terms": (
        "json-ld",
        lambda n: listed('{"@context":{"t0":"http://e/",', lambda i: f'"t{i + 1}":"t{i}:x"', '},"t1":1}', n),
    ),
    "a long vocabulary": (
        "json-ld",
        lambda n: listed('{"@context":{"@vocab":"http://e/' + half(n) + '"},', lambda i: f'"a{i}":1', "}", n),
    ),
    "a context for each node": (
        "json-ld",
        lambda n: listed(
            '{"@context":{' + ",".join(f'"a{i}":"u:{i}"' for i in range(n // 32)) + '},"u:p":[',
            lambda _: '{"@context":{}}',
            "]}",
            n,
        ),
    ),
}

TOKENS: dict[str, tuple[str, Callable[[int], str]]] = {
    "literal": ("turtle", lambda n: f'<u:s> <u:p> "{"x" * n}" .'),
    "IRI": ("turtle", lambda n: f"<u:{'x' * n}> <u:p> 1 ."),
    "language tag": ("turtle", lambda n: f'<u:s> <u:p> "x"@en{"-abcdefgh" * (n // 9)} .'),
    "blank node label": ("turtle", lambda n: f"_:{'b' * n} <u:p> 1 ."),
    "prefix": ("turtle", lambda n: f"@prefix {'p' * n}: <u:> . {'p' * n}:s <u:p> 1 ."),
    "number": ("turtle", lambda n: f"<u:s> <u:p> {'1' * n} ."),
    "comment": ("turtle", lambda n: f"#{'c' * n}\n<u:s> <u:p> 1 ."),
    "white space": ("turtle", lambda n: f"<u:s>{' ' * n}<u:p> 1 ."),
    "XML text": ("xml", lambda n: f"<rdf:RDF {RDF}><e:C><e:p>{'x' * n}</e:p></e:C></rdf:RDF>"),
    "XML attribute": ("xml", lambda n: f'<rdf:RDF {RDF}><e:C e:p="{"x" * n}"/></rdf:RDF>'),
    "XML name": ("xml", lambda n: f"<rdf:RDF {RDF}><e:{'C' * n}/></rdf:RDF>"),
    "JSON string": ("json-ld", lambda n: f'{{"u:p":"{"x" * n}"}}'),
    "JSON key": ("json-ld", lambda n: f'{{"u:{"k" * n}":1}}'),
    "JSON number": ("json-ld", lambda n: f'{{"u:p":{"1" * n}}}'),
}
