"""Benchmarks. `make bench` runs all, and writes docs/measurements. micro/ has kernels (C++), macro/ whole workloads.

Figures are compared with pyoxigraph in the same run where possible, else given with the machine's calibration. Answers
are checked against brute force in the same run; a wrong answer is a failure.
"""
