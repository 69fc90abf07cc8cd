"""The domain: rules, queries and permissions; knows nothing of GraphQL."""
