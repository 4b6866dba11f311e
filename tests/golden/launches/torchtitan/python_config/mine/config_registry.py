from torchtitan.config import ParallelismConfig, TrainingConfig
from torchtitan.models.llama3 import model_registry


def base():
    spec = model_registry("8B", attn_backend="flex")
    return Trainer.Config(
        model_spec=spec,
        loss=ChunkedLossWrapper.Config(loss_fn=CrossEntropyLoss.Config(global_vocab_size=128256)),
        training=TrainingConfig(num_tokens_per_microbatch_per_dp_rank=4 * 2048, max_context_length=2048, steps=10),
        parallelism=ParallelismConfig(tensor_parallel_degree=2),
        activation_checkpoint=SelectiveAC.Config(),
    )


def small_7b():
    config = base()
    config.training.max_context_length = 4096
    config.parallelism.data_parallel_replicate_degree = 2
    return config
