"""Where work is done: here, or on Spark. No other package knows of Spark."""
