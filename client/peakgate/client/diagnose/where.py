"""From the frames of a traceback to the stage, and how many steps a log shows before."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from peakgate.client.diagnose.traceback import Frame


@dataclass(frozen=True, slots=True)
class Sign:
    """A call that only happens in one stage: by function and file, or by the words of the line. `around`: what it calls belongs to it."""

    stage: str
    function: str = ""
    file: str = ""
    code: str = ""
    around: bool = False

    def matches(self, frame: Frame) -> bool:
        """Whether a frame is that call."""
        if self.code:
            return bool(re.search(self.code, frame.code))
        return bool(re.fullmatch(self.function or ".*", frame.function) and re.search(self.file, frame.file))


SIGNS = (
    Sign(
        "save",
        r"_?save_(checkpoint|model|pretrained|state|zero_checkpoint|full_model)|(full_)?(optim_)?state_dict|_save|get_model_state_dict|clean_state_dict_for_save|safe_save_model_for_hf_trainer",
        around=True,
    ),
    Sign("save", code=r"(?<!load_)(?<!strict_)\bstate_dict\(\)|torch\.save\(|\.save_pretrained\(", around=True),
    Sign(
        "evaluation",
        r"evaluat(e|ion_loop|ion_step)|prediction_(loop|step)|validat(e|ion)(_step|_loop|_epoch)?|estimate_loss|run_evaluation|eval_step",
        around=True,
    ),
    Sign(
        "generation",
        r"generate(_completions|_sequences)?|_?generate_(and_score_completions|single_turn|rollouts)|_(sample|beam_search|greedy_search)",
        file=r"(generation|trl|openrlhf|verl|vllm|trainer)",
        around=True,
    ),
    Sign("generation", code=r"\.generate\(", around=True),
    Sign(
        "setup",
        r"__init__|initialize_optimizer_states|_configure_(zero|bf16|fp16|basic)_optimizer|_configure_optimizer",
        file=r"deepspeed[/\\]runtime[/\\](zero[/\\]stage|engine|bf16_optimizer|fp16)",
        around=True,
    ),
    Sign("setup", r"__init__|build_.*optimizer|get_megatron_optimizer\w*", file=r"megatron[/\\](core[/\\])?optimizer", around=True),
    Sign(
        "load",
        r"from_pretrained|_load_pretrained_model|load_state_dict|_load_state_dict_into_\w+|load_checkpoint(_and_dispatch)?|dispatch_model|get_peft_model|prepare_model_for_\w+|materialize_\w+|init_empty_weights|from_config",
        around=True,
    ),
    Sign(
        "load",
        r"__init__|_init_param_handle_from_\w+|_materialize_\w+|_init_\w+",
        file=r"(fully_sharded_data_parallel|torch[/\\]distributed[/\\]fsdp|nn[/\\]parallel[/\\]distributed|_fully_shard)",
        around=True,
    ),
    Sign("load", r"prepare_model|_prepare_fsdp2?|fully_shard|_move_model_to_device|place_model_on_device", around=True),
    Sign("load", r"_apply|cuda|to|half|bfloat16|float", file=r"torch[/\\]nn[/\\]modules[/\\]module\.py"),
    Sign("load", code=r"\b(model|net|network|module)(_engine)?\b\S*\.(to|cuda|half|bfloat16)\("),
    Sign(
        "first-step",
        r"step|_init_group|_(single|multi)_tensor_\w+|_fused_\w+|adamw?|sgd|adafactor|update_step|_?optimizer_step|step_with_ready_grads|_foreach_\w+",
        file=r"(torch[/\\]optim|bitsandbytes[/\\]optim|[/\\]optimizers?[/\\]|adafactor|optimization\.py|stage_1_and_2|stage3|bf16_optimizer|optimizer\.py|apex)",
    ),
    Sign("first-step", code=r"\bexp_avg(_sq)?\b|\b(optim|optimizer|opt)\w*\.step\("),
    Sign(
        "backward",
        r"_?(run_|engine_run_)?backward(_step|_pass)?|backward_helper|reduce_(gradients|independent_p_g_buckets_and_remove_grads|ipg_grads)|_post_backward_hook|_pre_backward_hook|allreduce_(params|gradients|bucket)|sync_gradients",
    ),
    Sign("backward", code=r"\.backward\("),
    Sign(
        "loss",
        r"cross_entropy|nll_loss|log_softmax|ForCausalLMLoss|fixed_cross_entropy|ForMaskedLMLoss|loss_function|logits_to_log_probs|get_batch_log_?ps|selective_log_softmax|vocab_parallel_cross_entropy|loss_fct|per_token_logps",
    ),
    Sign("loss", code=r"lm_head\(|logits\s*=\s*logits\.float\(|\.float\(\)\s*#\s*upcast|cross_entropy\(|loss_fct\("),
    Sign("forward", r"forward(_step|_pass)?|_?(wrapped_)?call_impl|compute_loss|training_step|__call__|checkpoint|run_function"),
    Sign("forward", code=r"\bmodel\(|\.forward\("),
)
"""In the order in which they are asked of one frame. Names of functions: PyTorch, transformers' Trainer, TRL, Accelerate, DeepSpeed,
Megatron-LM, fairscale, nanoGPT."""

MANY_STEPS = 10
"""A step that was done so often has been done with every state there: what fails now is not its size."""

_BAR = re.compile(
    r"^(?:.{0,40}?\]:?)?[ \t]*(?:(?:epoch|steps?|train|iter)[^%|\n]{0,40}:)?[ \t]*\d+%\|[^|\n]*\| *(\d+)/\d+ \[[\d:?]+<",
    re.IGNORECASE | re.MULTILINE,
)
"""tqdm's bar of the training loop, which has no name or one of these; loading and tokenizing have others."""


_STATED_STEP = re.compile(r"\b(?:global[_ ])?(?:step|iter(?:ation)?)[ :=]+(\d+)\b", re.IGNORECASE)
_LOGGED = re.compile(r"\{'loss': ")


def stage_of(frames: Sequence[Frame]) -> str:
    """The stage's name; empty when no frame tells. What is around wins; else the innermost, but a layer that is rebuilt in the backward
    pass belongs to that."""
    signs = [sign for frame in frames if (sign := _sign(frame)) is not None]
    around = next((sign.stage for sign in signs if sign.around), "")
    if around:
        return around
    inner = next((sign.stage for sign in reversed(signs)), "")
    if inner in ("forward", "loss") and any(sign.stage == "backward" for sign in signs):
        return "backward"
    return inner


def _sign(frame: Frame) -> Sign | None:
    return next((sign for sign in SIGNS if sign.matches(frame)), None)


def telling_frame(frames: Sequence[Frame], stage: str) -> Frame | None:
    """The innermost frame that is a sign of the stage."""
    return next((frame for frame in reversed(frames) if (sign := _sign(frame)) is not None and sign.stage == stage), None)


def steps_before(text: str) -> int | None:
    """Optimizer steps that a log shows to be done at its end; None when it shows no step."""
    last = None
    for match in _BAR.finditer(text):
        last = int(match[1])
    stated = [int(match[1]) for match in _STATED_STEP.finditer(text)]
    logged = len(_LOGGED.findall(text))
    found = [each for each in (last, stated[-1] if stated else None, logged or None) if each is not None]
    return max(found) if found else None
