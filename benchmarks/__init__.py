"""Benchmarks: `make bench` runs all and writes docs/measurements. micro/ are kernels (C++), macro/ whole workloads.

Figures are ratios where they can be: against pyoxigraph in the same run, or beside the machine's calibration. Rows are
checked against brute force in the same run; a fast wrong answer is a failure.
"""
