"""JSON from outside: a text that is not JSON, or is nested too deeply, is a DataError."""

from __future__ import annotations

import json
from typing import Any

from penstock.errors import DataError


def parse_json(text: str | bytes, what: str) -> Any:
    """Return the value of a JSON text. `what` names the text in the error.

    Python's parser recurses: a text of a few thousand brackets raises RecursionError there.
    """
    try:
        return json.loads(text)
    except RecursionError as error:
        raise DataError(f"{what}: the JSON text is nested too deeply") from error
    except ValueError as error:  # UnicodeDecodeError too; and integers of more digits than Python converts
        raise DataError(f"{what}: not JSON: {error}") from error
