"""Past one process: many documents encoded, and their shards loaded, on Dask workers."""
