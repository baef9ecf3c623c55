"""Makes the next minibatches ready while the learner is at work on this one."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator
from typing import TypeVar

Raw = TypeVar("Raw")
Ready = TypeVar("Ready")

_END = object()


def ready_ahead(
    items: Iterator[Raw], make_ready: Callable[[Raw], Ready], count: int = 2
) -> Iterator[Ready]:
    """Yields `make_ready` of each item, up to `count` of them ahead of need.

    A thread does the work. What goes wrong there is raised here, in its turn.
    """
    waiting: queue.Queue = queue.Queue(maxsize=count)
    stopped = threading.Event()

    def put(entry: tuple[object, BaseException | None]) -> bool:
        while not stopped.is_set():
            try:
                waiting.put(entry, timeout=0.1)
                return True
            except queue.Full:
                continue
        return False

    def work() -> None:
        try:
            for item in items:
                if not put((make_ready(item), None)):
                    return
            put((_END, None))
        except BaseException as error:
            put((_END, error))

    threading.Thread(target=work, daemon=True, name="ready_ahead").start()
    try:
        while True:
            item, error = waiting.get()
            if error is not None:
                raise error
            if item is _END:
                return
            yield item
    finally:
        stopped.set()
