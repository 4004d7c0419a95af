from __future__ import annotations

import threading
import time

from penstock.services.coordinator.fair_lock import FairLock


def test_a_thread_that_takes_the_lock_again_at_once_lets_others_in_between():
    lock, over, turns = FairLock(), threading.Event(), [0]

    def busy() -> None:
        while not over.is_set():
            with lock:
                turns[0] += 1
                time.sleep(0.02)

    thread = threading.Thread(target=busy)
    thread.start()
    try:
        for _ in range(20):
            before = turns[0]
            with lock:
                assert turns[0] - before <= 2
    finally:
        over.set()
        thread.join()


def test_one_thread_at_a_time_has_it():
    lock, inside, most, count = FairLock(), [0], [0], [0]

    def work() -> None:
        for _ in range(500):
            with lock:
                inside[0] += 1
                most[0] = max(most[0], inside[0])
                count[0] += 1
                inside[0] -= 1

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (most[0], count[0]) == (1, 4_000)
