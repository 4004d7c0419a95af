"""Whole workloads: LSBench, LUBM, CityBench, bulk load."""
