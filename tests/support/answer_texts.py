"""The formats of answers, written term by term in Python: the reference for the native module's writers."""

from __future__ import annotations

import json
import re
from xml.sax.saxutils import escape, quoteattr

from penstock.errors import DataError
from penstock.rdf.terms import BLANK, IRI, XSD_STRING

_XSD = "http://www.w3.org/2001/XMLSchema#"
_BARE = {  # lexical forms that Turtle permits without quotes (Turtle §2.5.2)
    _XSD + "integer": re.compile(r"[+-]?[0-9]+"),
    _XSD + "decimal": re.compile(r"[+-]?[0-9]*\.[0-9]+"),
    _XSD + "double": re.compile(r"[+-]?(?:[0-9]+\.[0-9]*|\.?[0-9]+)[eE][+-]?[0-9]+"),
}
_NOT_IN_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_ESCAPES = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t"})
_CSV_SPECIAL = re.compile('[",\r\n]')
_LINE_ENDS = (("\u0085", r"\u0085"), ("\u2028", r"\u2028"), ("\u2029", r"\u2029"))


# ---- JSON (https://www.w3.org/TR/sparql11-results-json/)
def json_term(term):
    """Return a term as an object of SPARQL Results JSON."""
    kind, lexical, datatype, lang = term
    if kind == IRI:
        return {"type": "uri", "value": lexical}
    if kind == BLANK:
        return {"type": "bnode", "value": lexical}
    if lang:
        return {"type": "literal", "value": lexical, "xml:lang": lang}
    if datatype == XSD_STRING:
        return {"type": "literal", "value": lexical}
    return {"type": "literal", "value": lexical, "datatype": datatype}


def json_bindings(variables, rows):
    """Return the `bindings` array of SPARQL Results JSON: one object per row, without unbound variables."""
    return [
        {name: json_term(term) for name, term in zip(variables, row, strict=True) if term is not None} for row in rows
    ]


def to_json(variables, rows):
    """Return a SPARQL Results JSON document."""
    document = {"head": {"vars": list(variables)}, "results": {"bindings": json_bindings(variables, rows)}}
    return json.dumps(document, ensure_ascii=False)


# ---- XML (https://www.w3.org/TR/rdf-sparql-XMLres/)
def to_xml(variables, rows):
    """Return a SPARQL Results XML document. DataError if a term contains a character that XML 1.0 does not allow."""
    lines = ['<?xml version="1.0" encoding="UTF-8"?>', '<sparql xmlns="http://www.w3.org/2005/sparql-results#">']
    lines += ["<head>", *(f"<variable name={quoteattr(name)}/>" for name in variables), "</head>", "<results>"]
    for row in rows:
        bound = zip(variables, row, strict=True)
        cells = (f"<binding name={quoteattr(name)}>{_xml_term(t)}</binding>" for name, t in bound if t is not None)
        lines.append(f"<result>{''.join(cells)}</result>")
    return "\n".join([*lines, "</results>", "</sparql>", ""])


def _xml_term(term):
    kind, lexical, datatype, lang = term
    if found := _NOT_IN_XML.search(lexical):
        raise DataError(f"XML 1.0 cannot write the character U+{ord(found[0]):04X} of {lexical[:40]!r}")
    text = escape(lexical, {"\r": "&#13;"})
    if kind == IRI:
        return f"<uri>{text}</uri>"
    if kind == BLANK:
        return f"<bnode>{text}</bnode>"
    if lang:
        return f"<literal xml:lang={quoteattr(lang)}>{text}</literal>"
    if datatype == XSD_STRING:
        return f"<literal>{text}</literal>"
    return f"<literal datatype={quoteattr(datatype)}>{text}</literal>"


# ---- CSV and TSV (https://www.w3.org/TR/sparql11-results-csv-tsv/)
def to_csv(variables, rows):
    """Return SPARQL Results CSV: plain values without types, lines terminated by CR LF."""
    lines = [",".join(_csv_cell(name) for name in variables)]
    lines += [",".join("" if term is None else _csv_term(term) for term in row) for row in rows]
    return "\r\n".join([*lines, ""])


def _csv_term(term):
    return "_:" + term[1] if term[0] == BLANK else _csv_cell(term[1])


def _csv_cell(text):
    return '"' + text.replace('"', '""') + '"' if _CSV_SPECIAL.search(text) else text


def to_tsv(variables, rows):
    """Return SPARQL Results TSV: terms in Turtle syntax, with their types."""
    lines = ["\t".join("?" + name for name in variables)]
    lines += ["\t".join("" if term is None else turtle_term(term) for term in row) for row in rows]
    return "\n".join([*lines, ""])


def turtle_term(term):
    """Return a term in Turtle syntax, without quotes for numbers where Turtle permits this."""
    pattern = _BARE.get(term[2])
    return term[1] if pattern is not None and pattern.fullmatch(term[1]) else ntriples_term(term)


# ---- N-Triples
def ntriples_term(term):
    """Return a term in N-Triples syntax."""
    kind, lexical, datatype, lang = term
    if kind == IRI:
        return f"<{lexical}>"
    if kind == BLANK:
        return f"_:{lexical}"
    quoted = '"' + lexical.translate(_ESCAPES) + '"'
    if lang:
        return f"{quoted}@{lang}"
    return quoted if datatype == XSD_STRING else f"{quoted}^^<{datatype}>"


def to_ntriples(rows):
    """Return triples as an N-Triples document."""
    return "".join(" ".join(ntriples_term(term) for term in row if term is not None) + " .\n" for row in rows)


def solutions_line(head, variables, rows):
    """Return the line of an evaluation of a SELECT."""
    line = head | {"head": {"vars": list(variables)}, "results": {"bindings": json_bindings(variables, rows)}}
    return _one_line(line)


def triples_line(head, rows):
    """Return the line of an evaluation of a CONSTRUCT."""
    lines = sorted(line for line in to_ntriples(rows).split("\n") if line)
    return _one_line(head | {"graph": "".join(f"{line}\n" for line in lines)})


def _one_line(line):
    text = json.dumps(line, ensure_ascii=False)
    for character, escaped in _LINE_ENDS:
        text = text.replace(character, escaped)
    return text
