"""Lakebed past one machine: a Spark cluster whose workers share nothing with the driver but the network."""
