"""Training beyond next-token prediction: which models are resident, what runs beside the policy, and how its loss is computed."""
