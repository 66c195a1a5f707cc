"""The subcommands of ``rag-reliability``, a module for each group; ``add`` declares them."""
