"""How the change of each operator is computed: one file per family, the law as docstring."""
