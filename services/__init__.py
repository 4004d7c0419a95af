"""The processes of a cluster, one package per process. A package has settings, metrics, and the modules that no other
service needs.

`python -m penstock.services.dispatcher` runs the dispatcher, with the settings in PENSTOCK_* (docs/operations.md).
"""
