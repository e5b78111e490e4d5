"""Tables of a repository as a data source of Spark's: the only module besides ``executors`` that knows Spark.

``desilt.tables.register(spark)`` makes it known to a session; where desilt is installed beside the driver, Spark
finds it by itself (``pyspark_desilt``). It reads and never writes. The driver learns where parts of a table begin,
executors read them. Whoever only looks for data sources imports this: the rest is imported when it is used.
"""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

    from desilt.repository.protocol import Repository
    from desilt.tables.piece import Piece
    from desilt.tables.request import Asked

BATCH_ROWS = 20_000


class TablesSource(DataSource):
    """``spark.read.format("desilt").option("repository", …).option("table", …)``."""

    @classmethod
    def name(cls) -> str:
        return "desilt"

    def __init__(self, options: Any) -> None:
        from desilt.tables.request import asked

        self._asked = asked(dict(options))

    def schema(self) -> str:
        from desilt.tables.schemas import types_of

        types = types_of(self._asked.table)
        return ", ".join(f"`{name}` {types[name]}" for name in self._asked.columns)

    def reader(self, schema: "StructType") -> "TablesReader":
        from desilt.tables.request import with_schema

        fields = [(field.name, field.dataType.simpleString()) for field in schema.fields]
        return TablesReader(with_schema(self._asked, fields))


class TablePartition(InputPartition):
    """A part of a table, for one task, which opens the repository for itself."""

    def __init__(self, piece: "Piece", handle: "Callable[[], Repository]") -> None:
        super().__init__(piece)
        self.handle = handle


class TablesReader(DataSourceReader):
    """Cuts a table into parts, and reads each.

    It takes no filters of Spark's: Spark (4.3) leaves unread in all queries of a frame what the filters of one of them
    left, so that the others miss rows. What is to be left unread is said by options.
    """

    def __init__(self, asked: "Asked") -> None:
        self.asked = asked

    def partitions(self) -> list[InputPartition]:
        from desilt.records.passwords import with_password
        from desilt.repository.opening import repository_at
        from desilt.tables.catalog import pieces

        with repository_at(self.asked.repository, db=self.asked.db and with_password(self.asked.db)) as repository:
            handle = repository.handle  # has no password
            return [TablePartition(piece, handle) for piece in pieces(repository, self.asked)]

    def read(self, partition: InputPartition) -> Iterator["pa.RecordBatch"]:
        if not isinstance(partition, TablePartition):
            return  # Spark's own, where there is none of ours
        for rows in partition.value.read(partition.handle()):
            chosen = rows.select(list(self.asked.columns)).combine_chunks()
            yield from chosen.to_batches(max_chunksize=BATCH_ROWS)


def register(spark: Any) -> None:
    """Make the source known to a session, unless Spark has found it by itself: that one cannot be replaced."""
    from pyspark.errors import AnalysisException

    from desilt.executors.on_spark import OnSpark

    OnSpark(spark)(int, [0])  # workers that lack this package are sent it, and another one is refused
    try:
        spark.dataSource.register(TablesSource)
    except AnalysisException as error:
        if "DATA_SOURCE_ALREADY_EXISTS" not in str(error):
            raise
