"""Where Spark looks for data sources that are installed: in modules of such a name, by this one."""

from desilt.tables.source import TablesSource as DefaultSource

__all__ = ["DefaultSource"]
