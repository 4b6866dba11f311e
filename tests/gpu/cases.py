"""Small real jobs for a real GPU: what to train, and the job document that says the same."""

from __future__ import annotations

from dataclasses import dataclass, field

HIDDEN_SIZE, LAYERS, VOCAB_SIZE = 1024, 8, 32000

LLAMA: dict[str, object] = {
    "model_type": "llama",
    "hidden_size": HIDDEN_SIZE,
    "intermediate_size": 2816,
    "num_hidden_layers": LAYERS,
    "num_attention_heads": 16,
    "num_key_value_heads": 16,
    "vocab_size": VOCAB_SIZE,
    "tie_word_embeddings": False,
}
GROUPED = LLAMA | {"num_key_value_heads": 4}
QWEN2 = GROUPED | {"model_type": "qwen2"}
GPT2: dict[str, object] = {
    "model_type": "gpt2",
    "n_embd": HIDDEN_SIZE,
    "n_layer": LAYERS,
    "n_head": 16,
    "n_positions": 4096,
    "vocab_size": VOCAB_SIZE,
}
RECIPES = {"bf16": "bfloat16", "fp32": "float32", "amp-bf16": "float32"}  # recipe to the dtype of the parameters


@dataclass(frozen=True, kw_only=True)
class Case:
    """One job: a config.json and how it is trained on one GPU."""

    name: str
    config: dict[str, object] = field(default_factory=lambda: LLAMA)
    micro_batch_size: int = 2
    sequence_length: int = 1024
    gradient_accumulation_steps: int = 1
    recipe: str = "bf16"
    attention: str = "sdpa"
    optimizer: str = "adamw"
    implementation: str = "foreach"
    checkpointing: bool = False

    def document(self, *, transformers: str, torch: str, gpu_total_bytes: int) -> dict[str, object]:
        """The job document."""
        return {
            "name": self.name,
            "model": {"hf_config": self.config},
            "batch": {
                "micro_batch_size": self.micro_batch_size,
                "sequence_length": self.sequence_length,
                "gradient_accumulation_steps": self.gradient_accumulation_steps,
                "packed": True,
            },
            "precision": {"recipe": self.recipe},
            "optimizer": {"name": self.optimizer, "implementation": self.implementation, "set_to_none": True},
            "attention": {"implementation": self.attention, "mask": "none"},
            "checkpointing": {"mode": "full", "reentrant": False} if self.checkpointing else {"mode": "none"},
            "loss": {"implementation": "full", "keep_logits": True},
            "parallelism": {"world_size": 1, "sharding": "none"},
            "framework": {"name": "huggingface", "version": transformers, "torch": torch},
            "gpu": {"memory_bytes": gpu_total_bytes},
        }


CASES = (
    Case(name="llama"),
    Case(name="llama-eager", attention="eager"),
    Case(name="llama-autocast", recipe="amp-bf16"),
    Case(name="llama-fp32", recipe="fp32"),
    Case(name="llama-checkpointing", checkpointing=True, micro_batch_size=8),
    Case(name="llama-accumulation", gradient_accumulation_steps=4),
    Case(name="llama-fused", implementation="fused"),
    Case(name="llama-sgd", optimizer="sgd"),
    Case(name="llama-long", micro_batch_size=1, sequence_length=8192),
    Case(name="llama-wide-batch", micro_batch_size=16, sequence_length=512),
    Case(name="llama-grouped-heads", config=GROUPED),
    Case(name="qwen2", config=QWEN2),
    Case(name="gpt2", config=GPT2),
)
