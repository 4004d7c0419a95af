"""The log in memory: topics, consumer groups and transactions of one process."""

from penstock.log.memory.memory_log import MemoryLog

__all__ = ["MemoryLog"]
