"""A repository as tables for everybody who knows Spark: ``spark.read.format("desilt")``."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def register(spark: "SparkSession") -> None:
    """Make the format ``desilt`` known to a session, classic or of Spark Connect; twice is once.

    Where desilt is installed beside the driver, or beside a Connect server, Spark finds it by itself.
    """
    from desilt.tables.source import register as registered

    registered(spark)
