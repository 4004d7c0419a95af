"""Release of the local variables to which an error refers through tracebacks."""

from __future__ import annotations

from traceback import clear_frames


def clear_locals(error: BaseException) -> None:
    """Clear the local variables of all finished frames in an error's tracebacks. Also clear the variables for the
    causes and the contexts of the error.

    The future of a thread pool and the frame that awaits this future refer to each other through an error. These
    references form a cycle, and the garbage collector can take hours to find the cycle. Until then, the local variables
    of the failed call are not freed. If one of these variables is a view, the engine continues to lease the view's
    snapshot. The stores must then retain this snapshot. A store that restarts cannot grant this lease again.
    """
    pending, seen = [error], set()
    while pending:
        each = pending.pop()
        if id(each) in seen:
            continue
        seen.add(id(each))
        clear_frames(each.__traceback__)
        pending += [cause for cause in (each.__cause__, each.__context__) if cause is not None]
