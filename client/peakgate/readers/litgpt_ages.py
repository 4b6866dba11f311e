"""What LitGPT does without a word, by the age of the launch and by what it runs.

Sources: litgpt finetune/*.py and pretrain.py, `setup`, at v0.5.13 and v0.3.1 (TrainArgs, devices); the constants of finetune/*.py and
pretrain/*.py of Lit-GPT in November 2023.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Age:
    """`batch` of an optimizer step, of all devices unless it is that of `each`; `devices` 0: those that are found at run time."""

    whose: str
    version: str = ""
    """Of the scripts, which had none, empty."""
    batch: int
    each: bool = False
    micro_batch: int
    devices: int = 1

    @property
    def script(self) -> bool:
        """Whether its settings are constants of a script."""
        return not self.version


TODAY = {
    "pretrain": Age(whose="litgpt pretrain", version="0.5.13", batch=512, micro_batch=4, devices=0),
    "": Age(whose="litgpt", version="0.5.13", batch=16, micro_batch=1),
}
"""By the verb; all that finetune have the same."""

SUBCOMMANDS = Age(whose="litgpt before 0.4: `litgpt finetune lora`", version="0.3", batch=16, micro_batch=1)
"""Also the same for all that finetune."""

SCRIPTS = {
    "lora": Age(whose="Lit-GPT's finetune/lora.py", batch=128, each=True, micro_batch=4),
    "full": Age(whose="Lit-GPT's finetune/full.py", batch=64, micro_batch=1),
    "adapter": Age(whose="Lit-GPT's finetune/adapter.py", batch=64, micro_batch=4),
    "adapter_v2": Age(whose="Lit-GPT's finetune/adapter_v2.py", batch=128, micro_batch=2),
    "tinyllama": Age(whose="Lit-GPT's pretrain/tinyllama.py", batch=512, micro_batch=8, devices=8),
    "redpajama": Age(whose="Lit-GPT's pretrain/redpajama.py", batch=125, each=True, micro_batch=6, devices=4),
    "openwebtext": Age(whose="Lit-GPT's pretrain/openwebtext.py", batch=125, each=True, micro_batch=5),
}
"""By the script's name."""
