"""The service: predictions, telemetry and the margin over gRPC and HTTP, kept in a database."""
