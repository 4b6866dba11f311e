"""The plan search: every legal change of a job, what each needs and how long its step takes, and the cheapest that fit."""
