"""Writing the rows of a query as a pack."""
