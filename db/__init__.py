"""Tables and the connection to PostgreSQL; knows nothing of the rules of the domain."""
