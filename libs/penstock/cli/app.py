"""The `penstock` command: its subcommands in `--help` order, exit codes, and error output."""

from __future__ import annotations

import sys
from typing import Any

import typer

from penstock.cli.cluster import commands
from penstock.cli.cluster.service_commands import add_services
from penstock.cli.exit_codes import FAILED, FINE, USAGE
from penstock.cli.local import demo, explain, load, map_messages, members, query, run, serve, token, update
from penstock.errors import PenstockError, QueryError

_UsageError: Any = typer.BadParameter.__mro__[1]  # click's class, or typer's copy of it in later versions

app = typer.Typer(
    help="Continuous SPARQL over RDF streams and a stored graph.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


def main(arguments: list[str] | None = None) -> int:
    """Run the command. Returns the exit code: 0 success, 1 failure, 2 wrong usage or a query error."""
    try:
        code = app(args=arguments, standalone_mode=False)
    except typer.Abort:
        return FINE
    except _UsageError as error:
        error.show()
        return USAGE
    except QueryError as error:
        print(f"query error: {error}", file=sys.stderr)
        return USAGE
    except (PenstockError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return FAILED
    except ModuleNotFoundError as error:
        extra = "spark" if (error.name or "").startswith("pyspark") else "cluster"
        print(f"error: {error}: `pip install 'penstock[{extra}]'`", file=sys.stderr)
        return FAILED
    except KeyboardInterrupt:
        return FINE
    return code if isinstance(code, int) else FINE


app.command("demo")(demo.demo)
app.command("run")(run.run)
app.command("load")(load.load)
app.command("query")(query.query)
app.command("map")(map_messages.map_messages)
app.command("update")(update.update)
app.command("explain")(explain.explain)
app.command("serve")(serve.serve)
app.add_typer(members.app, name="members")
app.command("token")(token.token)
commands.add_commands(app)
add_services(app)
