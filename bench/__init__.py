"""The benchmark corpora and what is measured on them."""
