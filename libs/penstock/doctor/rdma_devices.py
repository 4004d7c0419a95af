"""Checks of RDMA devices with pyverbs: ports, addresses, and a READ from the device to itself.

pyverbs is part of rdma-core (Debian: python3-pyverbs), and is not on PyPI. The check reports if pyverbs or a device is
missing. `machine.rdma` checks the other requirements of RDMA, and needs only the native module.
"""

from __future__ import annotations

import ctypes
import mmap
import statistics
import time
from typing import TYPE_CHECKING, Any, Final

from penstock.doctor.findings import failure, ok, skipped, warning

if TYPE_CHECKING:
    from collections.abc import Iterator

    from penstock.doctor.findings import Finding

_PORT: Final = 1
_MAPPED: Final = "0000:0000:0000:0000:0000:ffff:"  # an IPv4 address in a GID
_BYTES: Final = 64
_READS: Final = 100
_READ_S: Final = 10.0
_PATTERN: Final = b"penstock"


def devices(name: str) -> Iterator[Finding]:
    """Check a device. `name`: the name of the device, or "" for all devices."""
    try:
        import pyverbs.device as verbs  # type: ignore[import-not-found] # noqa: PLC0415 - a package of the system
        from pyverbs.pyverbs_error import PyverbsRDMAError  # type: ignore[import-not-found] # noqa: PLC0415
    except ImportError:
        yield skipped("rdma device", "pyverbs is not installed (Debian: python3-pyverbs)")
        return
    try:
        found = [device.name.decode() for device in verbs.get_device_list()]
    except PyverbsRDMAError:  # the kernel has no verbs
        found = []
    if not found:
        yield skipped("rdma device", "there is none")
    for each in found:
        if name in ("", each):
            yield from _device(each, verbs, PyverbsRDMAError)


def _device(name: str, verbs: Any, error: type[Exception]) -> Iterator[Finding]:
    from pyverbs import enums  # noqa: PLC0415

    try:
        context = verbs.Context(name=name)
        port = context.query_port(_PORT)
        addresses = _addresses(context, port.gid_tbl_len, error)
    except error as found:
        remedy = f"give the process access to /dev/infiniband and the device {name}"
        yield failure("rdma device", f"{name} cannot be opened: {found}", remedy)
        return
    layer = {enums.IBV_LINK_LAYER_ETHERNET: "Ethernet", enums.IBV_LINK_LAYER_INFINIBAND: "InfiniBand"}
    text = f"{name}, {layer.get(port.link_layer, 'unknown link layer')}"
    if port.state != enums.IBV_PORT_ACTIVE:
        remedy = f"connect the cable, or set the network interface up (rdma link show {name})"
        yield warning("rdma device", f"{text}: its port is not active", remedy)
    elif not addresses:
        remedy = "give its network interface an IPv4 address: stores use RoCE v2 over IPv4"
        yield warning("rdma device", f"{text}: no IPv4 address", remedy)
    else:
        yield from _read(text, context, next(iter(addresses.items())), error)


def _addresses(context: Any, entries: int, error: type[Exception]) -> dict[int, str]:
    """Return the GIDs of IPv4 addresses, by the index in the device's table."""
    found = {}
    for index in range(entries):
        try:
            gid = str(context.query_gid(_PORT, index))
        except error:  # an empty entry
            continue
        if gid.startswith(_MAPPED):
            found[index] = gid
    return found


def _read(text: str, context: Any, address: tuple[int, str], error: type[Exception]) -> Iterator[Finding]:
    """Check that the device can execute an RDMA READ of memory of this process."""
    try:
        times = _Loop(context, *address).times_s()
    except (error, TimeoutError) as found:
        remedy = "set `ulimit -l unlimited` or add IPC_LOCK; if this is done, look at the kernel's log"
        yield failure("rdma device", f"{text}: a READ to itself fails: {found}", remedy)
    else:
        micros = statistics.median(times) * 1e6
        yield ok("rdma device", f"{text}: GID {address[1]}, READ of {_BYTES} bytes to itself {micros:.0f} µs")


class _Loop:
    """Two connected queue pairs of one device."""

    def __init__(self, context: Any, index: int, gid: str) -> None:
        from pyverbs import enums  # noqa: PLC0415
        from pyverbs.cq import CQ  # type: ignore[import-not-found] # noqa: PLC0415
        from pyverbs.mr import MR  # type: ignore[import-not-found] # noqa: PLC0415
        from pyverbs.pd import PD  # type: ignore[import-not-found] # noqa: PLC0415
        from pyverbs.qp import QP, QPCap, QPInitAttr  # type: ignore[import-not-found] # noqa: PLC0415

        self._completions = CQ(context, 4)
        domain = PD(context)
        capacity = QPCap(max_send_wr=4, max_recv_wr=1, max_send_sge=1, max_recv_sge=1)
        kind = QPInitAttr(
            qp_type=enums.IBV_QPT_RC, scq=self._completions, rcq=self._completions, cap=capacity, sq_sig_all=1
        )
        self._pairs = [QP(domain, kind) for _ in range(2)]
        mtu = context.query_port(_PORT).active_mtu
        for own, other in (self._pairs, self._pairs[::-1]):
            _connect(own, other.qp_num, index, gid, mtu)
        self._bytes = mmap.mmap(-1, mmap.PAGESIZE)
        self._bytes[_BYTES : _BYTES + len(_PATTERN)] = _PATTERN
        self._begin = ctypes.addressof(ctypes.c_char.from_buffer(self._bytes))
        access = enums.IBV_ACCESS_LOCAL_WRITE | enums.IBV_ACCESS_REMOTE_READ
        self._memory = MR(domain, mmap.PAGESIZE, access, address=self._begin)

    def times_s(self) -> list[float]:
        """Execute READs and return the time of each READ in s. TimeoutError if a READ fails, does not end, or copies
        wrong bytes.
        """
        from pyverbs import enums  # noqa: PLC0415
        from pyverbs.wr import SGE, SendWR  # type: ignore[import-not-found] # noqa: PLC0415

        times = []
        for _ in range(_READS):
            element = SGE(self._begin, _BYTES, self._memory.lkey)
            work = SendWR(opcode=enums.IBV_WR_RDMA_READ, num_sge=1, sg=[element], send_flags=enums.IBV_SEND_SIGNALED)
            work.set_wr_rdma(self._memory.rkey, self._begin + _BYTES)
            began = time.monotonic()
            self._pairs[0].post_send(work)
            self._wait(began + _READ_S)
            times.append(time.monotonic() - began)
        if self._bytes[: len(_PATTERN)] != _PATTERN:
            raise TimeoutError("the READ brought other bytes")
        return times

    def _wait(self, deadline: float) -> None:
        while time.monotonic() < deadline:
            number, completions = self._completions.poll(1)
            if number and completions[0].status:
                raise TimeoutError(f"status {completions[0].status} of the completion")
            if number:
                return
        raise TimeoutError(f"no completion within {_READ_S:g} s")


def _connect(pair: Any, other: int, index: int, gid: str, mtu: int) -> None:
    from pyverbs import enums  # noqa: PLC0415
    from pyverbs.addr import GID, AHAttr, GlobalRoute  # type: ignore[import-not-found] # noqa: PLC0415
    from pyverbs.qp import QPAttr  # noqa: PLC0415

    attributes = QPAttr(port_num=_PORT)
    attributes.qp_access_flags = enums.IBV_ACCESS_REMOTE_READ | enums.IBV_ACCESS_LOCAL_WRITE
    attributes.path_mtu, attributes.dest_qp_num, attributes.rq_psn, attributes.sq_psn = mtu, other, 0, 0
    attributes.max_dest_rd_atomic = attributes.max_rd_atomic = 1
    attributes.min_rnr_timer, attributes.timeout, attributes.retry_cnt, attributes.rnr_retry = 12, 14, 7, 7
    route = GlobalRoute(dgid=GID(gid), sgid_index=index, hop_limit=64)
    attributes.ah_attr = AHAttr(gr=route, is_global=1, port_num=_PORT)
    pair.to_rts(attributes)
