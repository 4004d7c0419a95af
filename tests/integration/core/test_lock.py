"""Python's lock between threads that work in the core (docs/adr/0051)."""

from __future__ import annotations

import subprocess
import sys

FORKING = """
import os, sys, threading, time
import numpy as np
from penstock.core import _native as native

CALLS, PATIENCE_S = 100, 200e-6
over = False

def call():
    native.Stream.decide(np.zeros(5, np.int64), 0, 0, 0, 1 << 40)

def work():
    while not over:
        call()

thread = threading.Thread(target=work)
thread.start()
sys.setswitchinterval(60)  # who holds the lock keeps it
began = time.perf_counter()
while time.perf_counter() - began < 0.1:
    pass  # and now the thread waits for it
child = os.fork()
if child == 0:
    began = time.thread_time()
    for _ in range(CALLS):
        call()
    os._exit(0 if time.thread_time() - began < CALLS * PATIENCE_S / 2 else 1)
over = True
thread.join()
print(os.waitpid(child, 0)[1])
"""


def test_a_forked_process_does_not_wait_for_a_thread_that_it_has_not():
    ran = subprocess.run([sys.executable, "-c", FORKING], capture_output=True, text=True, timeout=300, check=True)
    assert ran.stdout.split() == ["0"]
