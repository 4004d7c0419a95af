"""Parsing of untrusted JSON. Invalid or too deeply nested text raises DataError."""

from __future__ import annotations

import json
from typing import Any

from penstock.errors import DataError


def parse_json(text: str | bytes, what: str) -> Any:
    """Return the value of a JSON text. `what`: a name of the text for error messages. DataError if the text is invalid
    or nested too deeply.

    Python's parser is recursive, and raises RecursionError for a text with a few thousand nested brackets. This
    function raises DataError in place of the RecursionError.
    """
    try:
        return json.loads(text)
    except RecursionError as error:
        raise DataError(f"{what}: the JSON text is nested too deeply") from error
    except ValueError as error:  # also UnicodeDecodeError, and integers with more digits than Python converts
        raise DataError(f"{what}: not JSON: {error}") from error
