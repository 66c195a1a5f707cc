"""Does a reliability prior on a document's source make retrieval-augmented generation safer?

Importing the package loads none of torch, faiss or numba: each is loaded by the one module that
needs it, on first use.
"""

__version__ = "0.1.0"
