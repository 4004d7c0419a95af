"""Files that mappings convert to triples.

- `source_files`: the files that an RML mapping names
- `data_files`: a file in JSON, NDJSON, CSV or Parquet, read in chunks
- `file_mapping`: the mapping of the records of a chunk
- `row_texts`: rows in Arrow as texts that mappings read
"""
