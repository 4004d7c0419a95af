"""Reads a region one-sidedly with pyverbs: a second implementation of the client's side of RDMA."""

from __future__ import annotations

import ctypes
import mmap
import time
from typing import TYPE_CHECKING

import pyverbs.enums as verbs
from pyverbs.addr import GID, AHAttr, GlobalRoute
from pyverbs.cq import CQ
from pyverbs.device import Context
from pyverbs.mr import MR
from pyverbs.pd import PD
from pyverbs.pyverbs_error import PyverbsRDMAError
from pyverbs.qp import QP, QPAttr, QPCap, QPInitAttr
from pyverbs.wr import SGE, SendWR

from support.plane_client import Endpoint

if TYPE_CHECKING:
    from support.plane_client import PlaneClient, Segment

PORT, TIMEOUT_S = 1, 60.0
MAPPED = "0000:0000:0000:0000:0000:ffff"  # an IPv4 address in a GID
BUFFER_BYTES = 1 << 20


class VerbsReader:
    """A queue pair that is connected to a server's. `device`: the name of the device of this side."""

    def __init__(self, client: PlaneClient, device: str) -> None:
        self._client = client
        self._parts: dict[int, list[Segment]] = {}
        self._context = Context(name=device)
        self._index, text = self._gid()
        attributes = self._context.query_device()
        reads = max(1, min(16, attributes.max_qp_rd_atom))
        mtu = self._context.query_port(PORT).active_mtu
        self._domain = PD(self._context)
        self._completions = CQ(self._context, 16)
        capacity = QPCap(max_send_wr=16, max_recv_wr=1, max_send_sge=1, max_recv_sge=1)
        start = QPInitAttr(
            qp_type=verbs.IBV_QPT_RC, scq=self._completions, rcq=self._completions, cap=capacity, sq_sig_all=0
        )
        self._pair = QP(self._domain, start)
        other = client.join(Endpoint(_bytes(text), self._pair.qp_num, 0, mtu, reads))
        self._connect(other, mtu, reads)
        self._buffer = mmap.mmap(-1, BUFFER_BYTES)
        self._address = ctypes.addressof(ctypes.c_char.from_buffer(self._buffer))
        self._memory = MR(self._domain, BUFFER_BYTES, verbs.IBV_ACCESS_LOCAL_WRITE, address=self._address)

    def read(self, region: int, offset: int, length: int) -> bytes:
        """Read a range of a region by RDMA READs."""
        parts = self._parts.get(region, [])
        if not parts or parts[-1].end < offset + length:
            parts = self._parts[region] = self._client.keys(region)
        found = b""
        for part in parts:
            begin, end = max(offset, part.begin), min(offset + length, part.end)
            while begin < end:
                count = min(BUFFER_BYTES, end - begin)
                found += self._read(part.address + begin - part.begin, part.key, count)
                begin += count
        if len(found) != length:
            raise IndexError(f"bytes {offset} to {offset + length} are not in the registered parts of the region")
        return found

    def _read(self, address: int, key: int, count: int) -> bytes:
        element = SGE(self._address, count, self._memory.lkey)
        work = SendWR(opcode=verbs.IBV_WR_RDMA_READ, num_sge=1, sg=[element], send_flags=verbs.IBV_SEND_SIGNALED)
        work.set_wr_rdma(key, address)
        self._pair.post_send(work)
        deadline = time.monotonic() + TIMEOUT_S
        while True:
            number, completions = self._completions.poll(1)
            if number:
                if completions[0].status != verbs.IBV_WC_SUCCESS:
                    raise PermissionError(f"status {completions[0].status}")
                return self._buffer[:count]
            if time.monotonic() > deadline:
                raise TimeoutError("no completion")

    def _connect(self, other: Endpoint, mtu: int, reads: int) -> None:
        attributes = QPAttr(port_num=PORT)
        attributes.qp_access_flags = verbs.IBV_ACCESS_REMOTE_READ | verbs.IBV_ACCESS_LOCAL_WRITE
        attributes.path_mtu = min(mtu, other.mtu)
        attributes.dest_qp_num, attributes.rq_psn, attributes.sq_psn = other.queue_pair, other.first_packet, 0
        attributes.max_dest_rd_atomic = attributes.max_rd_atomic = max(1, min(reads, other.reads))
        attributes.min_rnr_timer, attributes.timeout = 12, 18
        attributes.retry_cnt = attributes.rnr_retry = 7
        route = GlobalRoute(dgid=GID(_text(other.gid)), sgid_index=self._index, hop_limit=64)
        attributes.ah_attr = AHAttr(gr=route, is_global=1, port_num=PORT)
        self._pair.to_rts(attributes)

    def _gid(self) -> tuple[int, str]:
        for index in range(self._context.query_port(PORT).gid_tbl_len):
            try:
                text = str(self._context.query_gid(PORT, index))
            except PyverbsRDMAError:
                continue
            if text.startswith(MAPPED):
                return index, text
        raise LookupError("the device has no IPv4 address")


def _bytes(gid: str) -> bytes:
    return bytes.fromhex(gid.replace(":", ""))


def _text(gid: bytes) -> str:
    digits = gid.hex()
    return ":".join(digits[i : i + 4] for i in range(0, len(digits), 4))
