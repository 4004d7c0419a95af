"""Kernels: C++ programs (*_bench.cpp), and the modules that run them."""
