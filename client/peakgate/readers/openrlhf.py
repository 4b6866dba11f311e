"""OpenRLHF: `deepspeed --module openrlhf.cli.train_sft …` and its sisters, and `openrlhf.cli.train_ppo_ray`.

Sources: OpenRLHF at 3c3be623 (August 2026), openrlhf/cli/train_*.py (flags with a section in front, `--ds.zero_stage`) and before version
0.9 the same flags without one; utils/deepspeed/{deepspeed,deepspeed_utils}.py (the DeepSpeed config, and accumulation = batch × ring ×
tensor / micro-batch / GPUs); models/actor.py.
"""

from __future__ import annotations

from peakgate.readers.finetuners.launched import flags_of
from peakgate.readers.launch import Launch
from peakgate.readers.openrlhf_parts import PARTS, RAY
from peakgate.readers.own_defaults import state_own
from peakgate.readers.reading import Reading
from peakgate.readers.settings import Settings

METHODS = {
    "train_sft": "sft",
    "train_dpo": "dpo",
    "train_rm": "reward",
    "train_kto": "kto",
    "train_ppo_ray": "",
    "train_ppo": "",
    "train_kd": "distill",
}
"""Program -> method.name; empty where the advantage's estimator decides."""

RENAMED = {
    "pretrain": ("model.model_name_or_path", "actor.model_name_or_path"),
    "reward_pretrain": ("reward.model_name_or_path",),
    "critic_pretrain": ("critic.model_name_or_path",),
    "teacher_model": ("teacher.model_name_or_path",),
    "micro_train_batch_size": ("train.micro_batch_size",),
    "train_batch_size": ("train.batch_size",),
    "max_len": ("data.max_len",),
    "prompt_max_len": ("data.prompt_max_len",),
    "generate_max_len": ("rollout.max_new_tokens", "generate.max_len"),
    "n_samples_per_prompt": ("rollout.n_samples_per_prompt",),
    "zero_stage": ("ds.zero_stage",),
    "zpg": ("ds.zpg",),
    "param_dtype": ("ds.param_dtype",),
    "bf16": (),
    "adam_offload": ("ds.adam_offload",),
    "overlap_comm": ("ds.overlap_comm",),
    "grad_accum_dtype": ("ds.grad_accum_dtype",),
    "deepcompile": ("ds.deepcompile",),
    "ds_tensor_parallel_size": ("ds.tensor_parallel_size",),
    "ring_attn_size": ("ds.ring_attn_size",),
    "attn_implementation": ("ds.attn_implementation",),
    "flash_attn": (),
    "use_liger_kernel": ("ds.use_liger_kernel",),
    "packing_samples": ("ds.packing_samples",),
    "load_in_4bit": ("ds.load_in_4bit",),
    "lora_rank": ("ds.lora.rank",),
    "lora_dropout": ("ds.lora.dropout",),
    "target_modules": ("ds.lora.target_modules",),
    "gradient_checkpointing": ("model.gradient_checkpointing_enable", "actor.gradient_checkpointing_enable"),
    "gradient_checkpointing_use_reentrant": ("model.gradient_checkpointing_reentrant", "actor.gradient_checkpointing_reentrant"),
    "eval_dataset": ("eval.dataset",),
    "pretrain_mode": ("model.pretrain_mode_enable",),
    "actor_num_nodes": ("actor.num_nodes",),
    "actor_num_gpus_per_node": ("actor.num_gpus_per_node",),
    "colocate_all_models": ("train.colocate_all",),
    "colocate_actor_ref": ("train.colocate_actor_ref",),
    "vllm_num_engines": ("vllm.num_engines",),
    "vllm_gpu_memory_utilization": ("vllm.gpu_memory_utilization",),
    "vllm_enable_sleep": ("vllm.enable_sleep",),
    "advantage_estimator": ("algo.advantage.estimator",),
    "init_kl_coef": ("algo.kl.init_coef",),
    "use_dynamic_batch": ("train.dynamic_batch_enable",),
    "train_max_tokens_per_gpu": ("train.max_tokens_per_gpu",),
    "enable_ema": ("train.enable_ema",),
    "ref_pretrain": ("ref.model_name_or_path",),
    "ref_offload": ("ref.offload",),
    "remote_rm_url": ("reward.remote_url",),
    "freezing_actor_steps": ("critic.freezing_steps",),
}
"""The short name of a flag -> its names with a section."""


class OpenRlhf:
    """OpenRLHF's programs."""

    name = "openrlhf"

    def recognises(self, launch: Launch) -> bool:
        """By the module, or by the script inside of its package."""
        path = launch.path.replace("/", ".").removesuffix(".py")
        return "openrlhf.cli." in f".{path}" and path.rpartition(".")[2] in METHODS

    def read(self, launch: Launch) -> Reading:
        """The flags, whatever their generation."""
        reading = Reading()
        program = launch.path.replace("/", ".").removesuffix(".py").rpartition(".")[2]
        settings, place = _short(flags_of(launch)), launch.words[0].place
        reading.state("framework.name", "deepspeed", place)
        if METHODS[program]:
            pretrains = program == "train_sft" and settings("pretrain_mode") is not None
            reading.state("method.name", "pretrain" if pretrains else METHODS[program], place)
        for part in RAY if program in ("train_ppo_ray", "train_ppo") else PARTS:
            part(settings, launch, reading)
        state_own(self.name, settings, launch, reading)
        return reading


def _short(flags: Settings) -> Settings:
    out = Settings(dict(flags.leaves))
    for short, names in RENAMED.items():
        if out(short) is None and (stated := out.first(*names)) is not None:
            out.override(short, stated)
    return out
