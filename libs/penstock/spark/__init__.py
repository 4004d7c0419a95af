"""What runs on Spark: the bulk load. Sessions, files of any Hadoop file system, and the stages that tasks run.

Tasks call the native kernels on whole Arrow columns. The embedded engine needs nothing of this package; pyspark comes
with the extra `spark`. Not here: what an engine does with a prepared load (`penstock.engine.bulk`).
"""
