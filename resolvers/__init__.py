"""From a GraphQL question to calls of services."""
