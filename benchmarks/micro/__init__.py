"""Kernels: C++ programs (*_bench.cpp) and what runs them."""
