"""The API: messages and services generated from the .proto files beside them, and the job document written by hand."""
