"""Reading, checking and writing corpora, topics and qrels."""
