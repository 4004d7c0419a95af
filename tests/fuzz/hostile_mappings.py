"""Hostile declarations of mappings, schemas and messages: deep, large, cyclic, and such that take long to match.

Each function of `SHAPES` makes a declaration and its messages, and each function of `MESSAGES` a JSON message, of a
given size.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

PREFIXES = "@prefix rml: <http://w3id.org/rml/> . @prefix e: <urn:e:> ."
SOURCE = 'rml:logicalSource [ rml:iterator "$" ]'
ANY = {
    "rml": f"""{PREFIXES} <#r> {SOURCE} ; rml:subjectMap [ rml:constant e:s ] ; rml:predicateObjectMap
      [ rml:predicate e:p ; rml:objectMap [ rml:reference "$.f0" ] , [ rml:template "urn:t:{{$.f1}}" ] ] ."""
}
"""A mapping of the messages of random schemas."""
CONSTRUCTS = [
    "PREFIX e: <urn:e:> CONSTRUCT { ?s e:v ?v ; a e:C . ?s e:q [ e:r ?w ] } WHERE { BIND (IRI(CONCAT('urn:s:', ENCODE_FOR_URI($.a))) AS ?s) BIND ($.list[*] AS ?v) BIND (STRDT(STR($.b), e:d) AS ?w) }",
    "CONSTRUCT { ?s <urn:p> ?o } WHERE { BIND (BNODE($.a) AS ?s) BIND (STRLANG(CONCAT($.b, '-', $['long name'][-1]), 'en') AS ?o) }",
]  # fmt: skip
CONTEXTS = [
    '{"@vocab": "urn:v:", "id": "@id", "a": {"@id": "urn:a", "@type": "@id"}, "list": {"@id": "urn:l", "@container": "@list"}, "b": {"@reverse": "urn:b"}}',
    '[{"e": "urn:e:", "a": "e:a", "c": {"@id": "e:c", "@context": {"b": {"@id": "e:b", "@container": "@index"}}}}, {"@base": "http://h/", "@language": "en", "ü": {"@type": "@json", "@id": "e:j"}}]',
]  # fmt: skip
AVROS = [
    '{"type": "record", "name": "R", "fields": [{"name": "f0", "type": ["null", "R"]}, {"name": "f1", "type": {"type": "map", "values": "R"}}]}',
    '{"type": "array", "items": {"type": "fixed", "name": "n.F", "size": 16, "logicalType": "uuid"}}',
    '{"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 3}',
]  # fmt: skip
PROTOS = [
    'syntax = "proto3"; package p; import "google/protobuf/struct.proto"; message M { int64 f0 = 1; repeated M f1 = 2; map<string, google.protobuf.Value> m = 3; oneof o { string a = 4; E b = 5; } reserved 7 to 9; enum E { ZERO = 0; ONE = 1; } message N { optional bytes x = 1 [json_name = "y"]; } N n = 6; }',
    'syntax = "proto2"; message M { required string f0 = 1; optional group G = 2 { repeated sint32 v = 1 [packed = true]; } optional E f1 = 3 [default = B]; extensions 100 to max; } enum E { option allow_alias = true; A = 0; B = 5; C = 5; } extend M { optional double d = 100; }',
]  # fmt: skip
Case = tuple[dict[str, Any], list[bytes]]


# ---- messages
def deep_message(n: int) -> bytes:
    return b'{"a": ' * n + b"1" + b"}" * n


def deep_list(n: int) -> bytes:
    return b'{"a": ' + b"[" * n + b"]" * n + b"}"


def members(n: int) -> bytes:
    return json.dumps({f"k{i}": i for i in range(n)} | {"a": "x", "b": "y"}).encode()


def same_member(n: int) -> bytes:
    return b'{"b": 1, ' + b'"a": {"b": 1}, ' * n + b'"a": "x"}'


def elements(n: int) -> bytes:
    return json.dumps({"a": "x", "b": "y", "list": list(range(n))}).encode()


def long_text(n: int) -> bytes:
    return json.dumps({"a": "x" * n, "b": "%" * n, "list": ["\ud800" * (n // 8), "\x00" * n]}).encode()


def long_number(n: int) -> bytes:
    return b'{"a": ' + b"1" * n + b', "b": 1e' + b"9" * n + b"}"


MESSAGES: dict[str, Callable[[int], bytes]] = {
    made.__name__: made
    for made in (deep_message, deep_list, members, same_member, elements, long_text, long_number)
}  # fmt: skip


# ---- RML
def _rml(objects: str, subject: str = "rml:constant e:s", more: str = "") -> dict[str, Any]:
    statements = f"rml:predicateObjectMap [ rml:predicate e:p ; rml:objectMap {objects} ]"
    return {"rml": f"{PREFIXES} <#r> {SOURCE} ; rml:subjectMap [ {subject} ] ; {statements} . {more}"}


def rml_objects(n: int) -> Case:
    return _rml(", ".join(f'[ rml:reference "$.k{i}" ]' for i in range(n))), [members(min(n, 5_000))]


def rml_template(n: int) -> Case:
    return _rml('[ rml:template "urn:t:' + "{$.a}" * n + '" ]'), [elements(10)]


def rml_products(n: int) -> Case:
    return _rml('[ rml:template "urn:t:' + "{$.list[*]}" * min(n, 2_000) + '" ]'), [elements(40)]


def rml_path(n: int) -> Case:
    return _rml(f'[ rml:reference "${".a" * n}" ]'), [deep_message(100), deep_message(n)]


def rml_wildcards(n: int) -> Case:
    return _rml(f'[ rml:reference "${"[*]" * n}" ]'), [b"[" * 100 + b"]" * 100, deep_list(n)]


def rml_braces(n: int) -> Case:
    return _rml('[ rml:template "' + "\\\\\\\\{" * n + "{" * n + '" ]'), []


def rml_brackets(n: int) -> Case:
    return _rml("[ rml:reference \"$['" + "\\\\\\\\'" * n + '" ]'), []


def rml_functions(n: int) -> Case:
    return _rml("[ rml:objectMap " * n + '[ rml:reference "$.a" ]' + "]" * n), []


def rml_cycle(n: int) -> Case:
    maps = " ".join(
        f"<#m{i}> {SOURCE} ; rml:subjectMap [ rml:constant e:s{i} ] ; rml:predicateObjectMap [ rml:predicate e:p ;"
        f" rml:objectMap [ rml:parentTriplesMap <#m{(i + 1) % n}> ] ] ."
        for i in range(n)
    )
    return {"rml": f"{PREFIXES} {maps}"}, [b'{"a": 1}']


def rml_joins(n: int) -> Case:
    source = 'rml:logicalSource [ rml:iterator "$.list[*]" ]'
    join = 'rml:joinCondition [ rml:child "$" ; rml:parent "$" ]'
    maps = (
        f"<#a> {source} ; rml:subjectMap [ rml:template 'urn:a:{{$}}' ] ; rml:predicateObjectMap [ rml:predicate e:p ;"
        f" rml:objectMap [ rml:parentTriplesMap <#b> ; {join} ] ] ."
        f" <#b> {source} ; rml:subjectMap [ rml:template 'urn:b:{{$}}' ] ."
    )
    return {"rml": f"{PREFIXES} {maps}"}, [elements(n), json.dumps({"list": [1] * n}).encode()]


def rml_conditions(n: int) -> Case:
    """Each condition alone holds for very many pairs of records."""
    source = 'rml:logicalSource [ rml:iterator "$[*]" ]'
    joins = " , ".join(f'[ rml:child "$.{name}" ; rml:parent "$.{name}" ]' for name in ("a", "b", "c"))
    maps = (
        f"<#a> {source} ; rml:subjectMap [ rml:template 'urn:a:{{$.c}}' ] ; rml:predicateObjectMap [ rml:predicate e:p ;"
        f" rml:objectMap [ rml:parentTriplesMap <#b> ; rml:joinCondition {joins} ] ] ."
        f" <#b> {source} ; rml:subjectMap [ rml:template 'urn:b:{{$.c}}' ] ."
    )
    return {"rml": f"{PREFIXES} {maps}"}, [json.dumps([{"a": 1, "b": i % 2, "c": i} for i in range(n)]).encode()]


def rml_texts(n: int) -> Case:
    """Two conditions on many values of one record each."""
    source = 'rml:logicalSource [ rml:iterator "$" ]'
    join = '[ rml:child "$.list[*]" ; rml:parent "$.list[*]" ]'
    maps = (
        f"<#a> {source} ; rml:subjectMap [ rml:constant e:s ] ; rml:predicateObjectMap [ rml:predicate e:p ;"
        f" rml:objectMap [ rml:parentTriplesMap <#b> ; rml:joinCondition {join} , {join} ] ] ."
        f" <#b> {source} ; rml:subjectMap [ rml:constant e:t ] ."
    )
    return {"rml": f"{PREFIXES} {maps}"}, [elements(min(n, 900)), elements(n)]


def rml_own_map(_: int) -> Case:
    return {"rml": f"{PREFIXES} <#r> {SOURCE} ; rml:subjectMap <#r> ; rml:predicateObjectMap <#r> ."}, [b'{"a": 1}']


# ---- CONSTRUCT
def _construct(where: str, template: str = "<urn:s> <urn:p> ?o") -> dict[str, Any]:
    return {"construct": f"CONSTRUCT {{ {template} }} WHERE {{ {where} }}"}


def construct_nested(n: int) -> Case:
    return _construct("BIND (" + "CONCAT(" * n + "$.a" + ")" * n + " AS ?o)"), [elements(3)]


def construct_doubled(n: int) -> Case:
    binds = "BIND ($.a AS ?v0) " + " ".join(f"BIND (CONCAT(?v{i}, ?v{i}) AS ?v{i + 1})" for i in range(min(n, 4_000)))
    return _construct(f"{binds} BIND (STR(?v{min(n, 4_000)}) AS ?o)"), [elements(3)]


def construct_chain(n: int) -> Case:
    binds = " ".join(f"BIND (STR(?v{i}) AS ?v{i + 1})" for i in range(n))
    return _construct(f"BIND (STR($.a) AS ?v0) {binds} BIND (STR(?v{n}) AS ?o)"), [elements(3)]


def construct_references(n: int) -> Case:
    return _construct(f"BIND (CONCAT({', '.join(f'$.k{i}' for i in range(n))}) AS ?o)"), [members(min(n, 5_000))]


def construct_triples(n: int) -> Case:
    return _construct("BIND ($.a AS ?o)", " ".join("<urn:s> <urn:p> ?o ." for _ in range(n))), [elements(3)]


def construct_blank(n: int) -> Case:
    return _construct("BIND ($.a AS ?o)", "<urn:s> <urn:p> " + "[ <urn:p> " * n + "?o" + " ]" * n), [elements(3)]


def construct_quotes(n: int) -> Case:
    return _construct("BIND ('" + "\\'" * n + " AS ?o)"), []


def construct_open_quotes(n: int) -> Case:
    return _construct("BIND (" + '"""' + '"" ' * n + " AS ?o)"), []


def construct_brackets(n: int) -> Case:
    return _construct("BIND (" + "$['" * n + " AS ?o)"), []


def construct_dollars(n: int) -> Case:
    return _construct("BIND (" + "$." * n + "$" * n + " AS ?o)"), []


def construct_path(n: int) -> Case:
    return _construct("BIND ($" + "['a']" * n + " AS ?o)"), [deep_message(n)]


# ---- JSON-LD
def context_terms(n: int) -> Case:
    return {"context": {f"k{i}": f"urn:k:{i}" for i in range(n)} | {"a": "urn:a"}}, [members(min(n, 20_000))]


def context_nested(n: int) -> Case:
    made: Any = {"a": "urn:a"}
    for _ in range(min(n, 300)):
        made = {"a": {"@id": "urn:a", "@context": made}}
    return {"context": made}, [deep_message(50)]


def context_list(n: int) -> Case:
    return {"context": [{"a": "urn:a"}] * n}, [elements(3)]


def context_cycle(n: int) -> Case:
    return {"context": {f"t{i}": f"t{(i + 1) % n}:x" for i in range(n)}}, [b'{"t0": 1}']


def context_chain(n: int) -> Case:
    return {"context": {f"t{i}": f"t{i + 1}:x" for i in range(n)} | {f"t{n}": "urn:t:"}}, [b'{"t0": 1}']


def context_scopes(n: int) -> Case:
    scoped = {"@context": {f"k{i}": f"urn:k:{i}" for i in range(min(n, 4_000))}, "@id": "urn:a"}
    return {"context": {"a": scoped}}, [deep_message(60), json.dumps([{"a": {"k1": 1}}] * min(n, 4_000)).encode()]


def context_remote(_: int) -> Case:
    return {"context": [{"a": {"@id": "urn:a", "@context": "http://h/c"}}, {"@import": "http://h/c"}]}, []


# ---- schemas
def _avro(schema: Any, *messages: bytes) -> Case:
    return ANY | {"format": "avro", "schema": schema}, list(messages)


def avro_nested(n: int) -> Case:
    return _avro('{"type": "array", "items": ' * n + '"int"' + "}" * n, b"\x02" * 200)


def avro_types(n: int) -> Case:
    return _avro('{"type": ' * n + '"int"' + "}" * n, b"\x02")


def avro_fields(n: int) -> Case:
    fields = [{"name": f"f{i}", "type": "null"} for i in range(n)]
    return _avro({"type": "record", "name": "R", "fields": fields}, b"")


def avro_symbols(n: int) -> Case:
    return _avro({"type": "enum", "name": "E", "symbols": [f"S{i}" for i in range(n)]}, b"\x02")


def avro_endless(n: int) -> Case:
    record = {"type": "record", "name": "R", "fields": [{"name": f"f{i}", "type": "R"} for i in range(min(n, 9))]}
    return _avro(record, b"", b"\x00" * n)


def avro_chain(n: int) -> Case:
    fields: Any = [{"name": "f0", "type": "int"}]
    for i in range(min(n, 60)):
        fields = [{"name": "f0", "type": {"type": "record", "name": f"R{i}", "fields": fields}}]
    return _avro({"type": "record", "name": "R", "fields": fields}, b"\x02")


def avro_nulls(n: int) -> Case:
    return _avro({"type": "array", "items": "null"}, b"\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01", b"\x02" * n)


def avro_decimal(n: int) -> Case:
    return _avro({"type": "bytes", "logicalType": "decimal", "precision": 10**9, "scale": 1_000}, _sized(b"\x7f" * n))


def avro_names(n: int) -> Case:
    return _avro({"type": "fixed", "name": "n." * n + "F", "size": n}, b"x" * n)


def _zigzag(n: int) -> bytes:
    return _varint(n << 1)


def _varint(n: int) -> bytes:
    made = bytearray()
    while n > 127:
        made.append(n & 127 | 128)
        n >>= 7
    return bytes([*made, n])


def _sized(data: bytes) -> bytes:
    return _zigzag(len(data)) + data


def _protobuf(text: str, *messages: bytes) -> Case:
    return ANY | {"format": "protobuf", "schema": f'syntax = "proto3"; {text}'}, list(messages)


def protobuf_fields(n: int) -> Case:
    fields = " ".join(f"optional int32 f{i} = {i + 30_000};" for i in range(n))
    return _protobuf(f"message M {{ repeated M more = 1; {fields} }}", b"\x0a\x00" * n)


def protobuf_oneofs(n: int) -> Case:
    oneofs = " ".join(f"oneof o{i} {{ int32 f{i} = {i + 30_000}; }}" for i in range(min(n, 20_000)))
    return _protobuf(f"message M {{ repeated M more = 1; {oneofs} }}", b"\x0a\x00" * n)


def protobuf_types(n: int) -> Case:
    return _protobuf(
        " ".join(f"message M{i} {{ M{i + 1} a = 1; }}" for i in range(n)) + f"message M{n} {{}}", b"\x0a\x00"
    )


def protobuf_nested(n: int) -> Case:
    return _protobuf("message M {" * n + "}" * n, b"")


def protobuf_values(n: int) -> Case:
    values = " ".join(f"V{i} = {i};" for i in range(n))
    return _protobuf(f"enum E {{ {values} }} message M {{ repeated E e = 1; }}", b"\x0a" + _varint(n) + b"\x01" * n)


def protobuf_option(n: int) -> Case:
    return _protobuf("message M { option (x) = " + "{ a: " * n + "1" + " }" * n + "; }", b"")


def protobuf_groups(n: int) -> Case:
    message = "message M { M a = 1; map<string, M> b = 2; repeated fixed64 c = 3; }"
    return _protobuf(message, b"\x23" * n, b"\x23" * n + b"\x24" * n, b"\x12\x00" * n, b"\x1a\x00" * n, b"\x0a\x00" * n)


def protobuf_own_import(_: int) -> Case:
    return _protobuf('import "penstock-message.proto"; message M {}', b"")


SHAPES: dict[str, Callable[[int], Case]] = {
    name: made
    for name, made in list(globals().items())
    if name.startswith(("rml_", "construct_", "context_", "avro_", "protobuf_"))
}
