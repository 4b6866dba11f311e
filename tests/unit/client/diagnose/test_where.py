"""From frames to the stage."""

from __future__ import annotations

import pytest

from peakgate.client.diagnose.find import find_failure
from peakgate.client.diagnose.where import stage_of, steps_before

SITE = "/opt/venv/lib/python3.11/site-packages/"
OOM = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB."
TRAIN = ("train.py", "main", "trainer.train()")
LOOP = (f"{SITE}transformers/trainer.py", "_inner_training_loop", "tr_loss_step = self.training_step(model, inputs)")
STEP = (f"{SITE}transformers/trainer.py", "training_step", "loss = self.compute_loss(model, inputs)")
CALL = (f"{SITE}torch/nn/modules/module.py", "_call_impl", "return forward_call(*args, **kwargs)")
ATTENTION = (f"{SITE}transformers/models/llama/modeling_llama.py", "forward", "attn_weights = torch.matmul(query, key)")
BACKWARD = (f"{SITE}torch/autograd/graph.py", "_engine_run_backward", "return Variable._execution_engine.run_backward(")


def log(*frames: tuple[str, str, str], label: str = "") -> str:
    """A traceback of these calls."""
    lines = ["Traceback (most recent call last):"]
    for number, (file, function, code) in enumerate(frames, start=1):
        lines += [f'  File "{file}", line {number}, in {function}', f"    {code}"]
    return "".join(f"{label}{line}\n" for line in [*lines, OOM])


def stage(text: str) -> str:
    """The stage of the failure in a log."""
    failure = find_failure([text])
    assert failure is not None
    return stage_of(failure.frames)


@pytest.mark.parametrize(
    ("frames", "want"),
    [
        ([("train.py", "main", 'model.to("cuda")'), (f"{SITE}torch/nn/modules/module.py", "_apply", "param_applied = fn(param)")], "load"),
        (
            [
                ("train.py", "<module>", "model = AutoModel.from_pretrained(name)"),
                (f"{SITE}transformers/modeling_utils.py", "from_pretrained", "x"),
            ],
            "load",
        ),
        ([TRAIN, (f"{SITE}torch/distributed/fsdp/fully_sharded_data_parallel.py", "__init__", "_init_param_handle_from_module(")], "load"),
        ([TRAIN, LOOP, STEP, CALL, ATTENTION], "forward"),
        ([("train.py", "<module>", "output = model(x)")], "forward"),
        ([TRAIN, LOOP, STEP, CALL, (f"{SITE}torch/nn/functional.py", "cross_entropy", "return torch._C._nn.cross_entropy_loss(")], "loss"),
        ([TRAIN, LOOP, (f"{SITE}accelerate/accelerator.py", "backward", "loss.backward(**kwargs)"), BACKWARD], "backward"),
        (
            [TRAIN, BACKWARD, (f"{SITE}torch/utils/checkpoint.py", "backward", "outputs = ctx.run_function(*args)"), CALL, ATTENTION],
            "backward",
        ),
        (
            [
                TRAIN,
                (f"{SITE}torch/optim/adamw.py", "step", "_init_group"),
                (f"{SITE}torch/optim/adamw.py", "_init_group", "torch.zeros_like(p)"),
            ],
            "first-step",
        ),
        ([("train.py", "<module>", "optimizer.step()")], "first-step"),
        ([TRAIN, (f"{SITE}transformers/trainer.py", "evaluation_loop", "x"), CALL, ATTENTION], "evaluation"),
        (
            [TRAIN, (f"{SITE}trl/trainer/grpo_trainer.py", "_generate_and_score_completions", "model.generate("), CALL, ATTENTION],
            "generation",
        ),
        ([TRAIN, (f"{SITE}transformers/trainer.py", "save_model", "state_dict = self.accelerator.get_state_dict(self.model)")], "save"),
        ([("train.py", "main", "cpu_state = trainer.model.state_dict()")], "save"),
        ([TRAIN, (f"{SITE}deepspeed/runtime/zero/stage_1_and_2.py", "__init__", "self.single_partition_of_fp32_groups.append(")], "setup"),
        (
            [
                (f"{SITE}torch/optim/optimizer.py", "step", "closure()"),
                ("lit.py", "training_step", "loss = self.model(x)"),
                CALL,
                ATTENTION,
            ],
            "forward",
        ),
        ([("train.py", "<module>", "main()")], ""),
    ],
)
def test_a_traceback_tells_the_stage(frames: list[tuple[str, str, str]], want: str) -> None:
    """What the calls are, not only the innermost: a layer that is rebuilt in the backward pass is that pass."""
    assert stage(log(*frames)) == want


@pytest.mark.parametrize("label", ["[rank1]: ", "[default1]:", "1: "])
def test_ranks_are_told_apart(label: str) -> None:
    """Lines of other ranks between those of one are left away, whatever launcher put its label before them."""
    mine = log(TRAIN, BACKWARD, label=label).splitlines()
    other = [f"{label.replace('1', '7')}{line}" for line in log(TRAIN, LOOP, STEP, CALL, ATTENTION).splitlines()[:-1]]
    mixed = [line for pair in zip(mine, [*other, *[""] * len(mine)], strict=False) for line in pair]
    assert stage("\n".join(mixed)) == "backward"


def test_a_boxed_traceback_is_read() -> None:
    """Rich draws frames as `│ file.py:12 in name`."""
    head = "╭──── Traceback (most recent call last) ────╮\n"
    calls = "│ /src/train.py:3 in main          │\n│ /site/transformers/trainer.py:9 in evaluation_loop  │\n╰───╯\n"
    assert stage(head + calls + OOM) == "evaluation"


@pytest.mark.parametrize(
    ("text", "want"),
    [
        (" 22%|██▏       | 8402/39003 [10:12:57<36:10:57,  4.26s/it]", 8402),
        ("Epoch 0:  12%|█▏  | 120/1000 [00:10<01:00, 12.0it/s]", 120),
        ("Loading checkpoint shards: 100%|██████████| 33/33 [00:10<00:00,  1.0it/s]", None),
        ("Map: 100%|██████████| 52002/52002 [00:10<00:00, 5200 examples/s]", None),
        ("{'loss': 1.2, 'epoch': 0.1}\n{'loss': 1.1, 'epoch': 0.2}", 2),
        (" iteration 31/ 500 | elapsed", 31),
        ("step: 7 loss: 3.2", 7),
        ("no step", None),
    ],
)
def test_steps_are_counted(text: str, want: int | None) -> None:
    """By the bar of the loop, by logged losses, by stated steps; bars of other work do not count."""
    assert steps_before(text) == want
