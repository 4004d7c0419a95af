"""The processes of a cluster: settings, metrics and wiring around the cores of `penstock.ingest`, `penstock.cluster`.

Each module is one service: `python -m penstock.services.dispatcher.service`, settings by PENSTOCK_* (docs/operations.md).
"""
