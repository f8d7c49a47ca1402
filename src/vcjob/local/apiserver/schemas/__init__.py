"""Fields of the kinds that are served: for OpenAPI, merge keys and unknown fields."""
