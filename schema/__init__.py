"""GraphQL declarations, and the front door of the process."""
