"""Makes an error release the local variables of the execution that raised it."""

from __future__ import annotations

from traceback import clear_frames


def clear_locals(error: BaseException) -> None:
    """Clear the local variables of all finished frames in the tracebacks of an error, its causes and its contexts.

    The future of a thread pool and the frame that awaits it refer to each other through an error. The garbage collector
    may find this cycle only after hours. Until then, the local variables of the failed call are not freed. If one of
    them is a view, the engine continues to lease the view's snapshot: the stores must retain the snapshot, and a store
    that restarts cannot grant the lease again.
    """
    pending, seen = [error], set()
    while pending:
        each = pending.pop()
        if id(each) in seen:
            continue
        seen.add(id(each))
        clear_frames(each.__traceback__)
        pending += [cause for cause in (each.__cause__, each.__context__) if cause is not None]
