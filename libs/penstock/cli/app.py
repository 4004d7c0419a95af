"""The `penstock` command: its commands in the order of `--help`, exit codes, errors."""

from __future__ import annotations

import sys
from typing import Any

import typer

from penstock.cli import cluster, demo, explain, load, query, run, serve
from penstock.cli.exit_codes import FAILED, FINE, USAGE
from penstock.cli.services import add_services
from penstock.errors import PenstockError, QueryError

_UsageError: Any = typer.BadParameter.__mro__[1]  # click's, or typer's own copy of it in later versions

app = typer.Typer(
    help="Continuous SPARQL over RDF streams and the stored graph that they keep changing.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


def main(arguments: list[str] | None = None) -> int:
    """Run the command; the exit code is 0 fine, 1 the work failed, 2 wrong usage or a query error."""
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
app.command("explain")(explain.explain)
app.command("serve")(serve.serve)
cluster.add_commands(app)
add_services(app)
