"""What the trainers around Hugging Face's modules have in common: names of optimizers and kernels, ZeRO and FSDP settings, the model."""
