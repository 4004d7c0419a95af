"""`penstock token`: makes a token for HTTP requests."""

from __future__ import annotations

import os
from enum import StrEnum
from pathlib import Path  # noqa: TC003 - typer reads it
from typing import Annotated

import typer

from penstock.http.security import Role, new_token


class RoleName(StrEnum):
    """The role of a token. It determines which requests the token allows."""

    read = "read"
    write = "write"
    admin = "admin"


def token(
    name: Annotated[str, typer.Argument(help="Name of the token's owner, for the audit log.")],
    role: Annotated[RoleName, typer.Argument(help="read: query; write: push and update; admin: declare and register.")],
    file: Annotated[Path | None, typer.Option(help="File of tokens (`--tokens`) to append the line to.")] = None,
) -> None:
    """Make a token. Prints it once; the line for the file of tokens contains only its digest."""
    made, line = new_token(name, Role[role.value.upper()])
    print(made)
    if file is None:
        typer.echo(f"line for the file of tokens: {line}", err=True)
        return
    with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), "a", encoding="utf-8") as lines:
        lines.write(line + "\n")
