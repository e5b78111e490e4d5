"""Where work is done: here, or on Spark. No other package gives work to Spark."""
