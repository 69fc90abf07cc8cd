"""GraphQL over the wire: transports, errors, execution; knows no noun of the product."""
