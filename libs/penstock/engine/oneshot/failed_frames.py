"""Release of the local variables to which an error refers through its tracebacks."""

from __future__ import annotations

from traceback import clear_frames


def clear_locals(error: BaseException) -> None:
    """Clear the local variables of all finished frames in the tracebacks of an error, of its causes and of its
    contexts.

    The future of a thread pool and the frame that awaits this future refer to each other through an error. This is a
    cycle, and the garbage collector can take hours to find it. Until then, the local variables of the failed call are
    not freed. If one of these variables is a view, the engine continues to lease the view's snapshot. The stores must
    then retain the snapshot, and a store that restarts cannot grant the lease again.
    """
    pending, seen = [error], set()
    while pending:
        each = pending.pop()
        if id(each) in seen:
            continue
        seen.add(id(each))
        clear_frames(each.__traceback__)
        pending += [cause for cause in (each.__cause__, each.__context__) if cause is not None]
