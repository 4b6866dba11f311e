"""Trainings that report through the helper: small models on the CPU, beside an allocator of arithmetic in the place of torch.cuda.

Each is run as a process of its own: `python -m tests.integration.helper_programs NAME SOCKET`. At its end it prints one line of JSON.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from typing import Any

from tests.unit.client.torch.fakes import GIB, FakeCuda

from peakgate.client.torch.reporter import Reporter

SIZES = {"hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4, "vocab_size": 512}
LENGTH, MICRO_BATCH = 32, 2


def a_reporter(socket_path: str, cuda: FakeCuda) -> Reporter:
    """On the allocator of arithmetic, without a pause between datagrams."""
    return Reporter(cuda=cuda, socket_path=socket_path, interval_seconds=0.0)


def a_model(cuda: FakeCuda) -> Any:
    """A Llama of two layers."""
    from transformers import LlamaConfig, LlamaForCausalLM

    model = LlamaForCausalLM(LlamaConfig(**SIZES))
    use_memory(model.model.layers[0], cuda)
    return model


def use_memory(layer: Any, cuda: FakeCuda) -> None:
    """The model holds memory on the fake; a forward pass takes more and its backward pass gives that back."""
    import torch

    cuda.allocate(2 * GIB)
    layer.register_forward_pre_hook(lambda *_: cuda.allocate(GIB) if torch.is_grad_enabled() else cuda.use(GIB))
    layer.register_full_backward_pre_hook(lambda *_: cuda.use(GIB // 2))
    layer.register_full_backward_hook(lambda *_: cuda.free(GIB))


def rows() -> list[dict[str, Any]]:
    """Sixteen sequences."""
    import torch

    return [{"input_ids": torch.randint(0, 512, (LENGTH,)), "labels": torch.randint(0, 512, (LENGTH,))} for _ in range(16)]


def trainer(socket_path: str) -> dict[str, object]:
    """transformers' Trainer: three steps of two micro-batches, evaluation and saving in between."""
    from transformers import Trainer, TrainingArguments

    from peakgate.client.torch.huggingface import PeakgateCallback

    cuda = FakeCuda()
    reporter = a_reporter(socket_path, cuda)
    with tempfile.TemporaryDirectory() as folder:
        arguments = TrainingArguments(
            output_dir=folder,
            per_device_train_batch_size=MICRO_BATCH,
            gradient_accumulation_steps=2,
            max_steps=3,
            eval_strategy="steps",
            eval_steps=2,
            save_strategy="no",
            report_to=[],
            use_cpu=True,
            disable_tqdm=True,
        )
        trained = Trainer(model=a_model(cuda), args=arguments, train_dataset=rows(), eval_dataset=rows()[:4])
        callback = PeakgateCallback(trained, gpu="h100-80gb", reporter=reporter)
        trained.add_callback(callback)
        trained.train()
    assert callback.training
    hooks = len(trained.model._forward_pre_hooks) + len(trained.model._forward_hooks)
    return {"answer": callback.training.answer and callback.training.answer.verdict, "hooks_left": hooks, "failures": reporter.failures}


def accelerate(socket_path: str) -> dict[str, object]:
    """A loop with Accelerate: two micro-batches a step."""
    import torch
    from accelerate import Accelerator

    from peakgate.client.torch.accelerate import watch

    cuda = FakeCuda()
    reporter = a_reporter(socket_path, cuda)
    accelerator = Accelerator(cpu=True, gradient_accumulation_steps=2)
    model = torch.nn.Sequential(torch.nn.Embedding(512, 8), torch.nn.Linear(8, 512))
    use_memory(model[1], cuda)
    optimizer = torch.optim.AdamW(model.parameters())
    loader = torch.utils.data.DataLoader(rows(), batch_size=MICRO_BATCH)
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    training = watch(accelerator, model, optimizer=optimizer, gpu="h100-80gb", reporter=reporter)
    for batch in training.batches(loader):
        with accelerator.accumulate(model):
            accelerator.backward(model(batch["input_ids"]).sum())
            optimizer.step()
            optimizer.zero_grad()
    reporter.close()
    return {"answer": training.answer and training.answer.verdict, "failures": reporter.failures}


def two_ranks(socket_path: str) -> dict[str, object]:
    """Two ranks of one training with one prediction, which only rank 0 asks for."""
    import torch

    from peakgate.client.torch import ask, training
    from peakgate.client.torch.loop import watch

    torch.distributed.init_process_group("gloo", init_method=f"file://{socket_path}.store", rank=int(os.environ["RANK"]), world_size=2)
    if torch.distributed.get_rank():
        vars(training)["ask"] = None  # it must not be asked a second time
    ask.PROGRAM = """print('{"verdict": "ADMIT", "reason": "fits", "prediction": "predictions/shared"}')"""
    reporter = a_reporter(socket_path, FakeCuda())
    loop = watch(torch.nn.Linear(2, 2), reporter=reporter)
    list(loop.batches([torch.zeros(2, 8, dtype=torch.long)]))
    torch.distributed.destroy_process_group()
    return {"prediction": reporter.prediction, "failures": reporter.failures}


def plain(socket_path: str) -> dict[str, object]:
    """A loop without torch, for an agent to watch: it waits for a line on standard input, trains, waits for another and does as it says."""
    sys.stdin.readline()
    cuda = FakeCuda()
    reporter = a_reporter(socket_path, cuda)
    cuda.allocate(16 * GIB)
    for number in range(4):
        reporter.saw(4096 + number, 2)
        with reporter.phase("forward"):
            cuda.allocate(40 * GIB)
        with reporter.phase("backward"):
            cuda.use(4 * GIB)
            cuda.free(40 * GIB)
        reporter.step()
    print("trained", flush=True)
    if sys.stdin.readline().strip() == "fail":
        with reporter.phase("forward"):
            cuda.allocate(100 * GIB)
    return {"dropped": reporter.dropped, "failures": reporter.failures}


if __name__ == "__main__":
    result = globals()[sys.argv[1]](sys.argv[2])
    print(json.dumps(result | {"loaded": sorted({"grpc", "google.protobuf"} & sys.modules.keys())}))
