"""`python -m penstock.node`: a store node as a process."""

from __future__ import annotations

import argparse
import json
import logging
import signal
import sys
from pathlib import Path

from penstock.errors import PenstockError
from penstock.remote.control_server import start_node


def main() -> int:
    """Run a node until SIGTERM or Ctrl-C; prints its ports as a line of JSON once it can be reached."""
    arguments = _arguments()
    logging.basicConfig(level=logging.INFO, stream=sys.stderr)
    try:
        secret = Path(arguments.secret_file).read_bytes().strip()
        own = [int(shard) for shard in arguments.own.split(",")]
        control = start_node(
            Path(arguments.directory),
            arguments.shards,
            own,
            secret,
            host=arguments.host,
            port=arguments.port,
            data_port=arguments.data_port,
            slice_mb=arguments.slice_mb,
            rdma_device=arguments.rdma_device,
            checkpoints=Path(arguments.checkpoints) if arguments.checkpoints else None,
        )
    except (OSError, ValueError, PenstockError) as error:
        sys.stderr.write(f"penstock.node: {error}\n")
        return 1
    signal.signal(signal.SIGTERM, lambda *_: control.close())
    sys.stdout.write(json.dumps({"port": control.address.port, "data_port": control.data_port}) + "\n")
    sys.stdout.flush()
    try:
        control.run()
    except KeyboardInterrupt:
        control.close()
    return 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m penstock.node", description=__doc__)
    parser.add_argument("--directory", required=True, help="where the regions lie: memory, /dev/shm for instance")
    parser.add_argument("--shards", type=int, required=True, help="shards of the whole store")
    parser.add_argument("--own", required=True, help="numbers of this node's shards, with commas")
    parser.add_argument("--secret-file", required=True, help="what engines and nodes share: 16 bytes or more")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=0, help="of control connections; 0 takes a free one")
    parser.add_argument("--data-port", type=int, default=0, help="of the data plane; 0 takes a free one")
    parser.add_argument("--slice-mb", type=int, default=0, help="budget of a stream's slices; 0: none")
    parser.add_argument("--checkpoints", help="a folder on a disk for checkpoints; none are kept without")
    parser.add_argument("--rdma-device", default="", help="that reads may go by; default: the first that can be used")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
