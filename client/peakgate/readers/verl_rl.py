"""verl's reinforcement learning trainer: actor, reference, critic and rollout as they stand in one job.

Sources: verl trainer/config/ppo_trainer.yaml with its groups; workers/fsdp_workers.py: sizes are divided by the data degree, the
mini-batch is first multiplied with rollout.n; with adapters the actor without them is the reference; the rollout's tensor parallelism is
vLLM's own.
"""

from __future__ import annotations

from peakgate.readers.convert import number, positive
from peakgate.readers.finetuners.launched import world_of
from peakgate.readers.finetuners.models import state_model
from peakgate.readers.finetuners.values import amount, count, numbers_only, off, on, say, say_or_default
from peakgate.readers.launch import Launch
from peakgate.readers.place import DEFAULT, LAUNCHER, Place, Stated
from peakgate.readers.reading import Reading, Row, apply
from peakgate.readers.settings import Settings
from peakgate.readers.verl_fsdp import OWN, state_engine, state_module, state_optimizer
from peakgate.readers.verl_megatron import state_megatron
from peakgate.readers.verl_megatron import state_optimizer as state_megatron_optimizer

ACTOR, ROLLOUT, MODEL, REF = "actor_rollout_ref.actor", "actor_rollout_ref.rollout", "actor_rollout_ref.model", "actor_rollout_ref.ref"
HOST = "verl keeps the reference's weights on the host but for its own pass; they are counted on the card"
"""workers/fsdp_workers.py, _build_model_optimizer: CPUOffload for whatever is not the actor."""

ESTIMATORS = {"gae": "ppo", "grpo": "grpo"}
"""algorithm.adv_estimator -> method.name (trainer/ppo/core_algos.py: AdvantageEstimator has others, none of which is counted)."""

SIZES = (
    *("trainer.n_gpus_per_node", "trainer.nnodes", f"{ROLLOUT}.n", f"{ACTOR}.ppo_mini_batch_size", f"{ACTOR}.ppo_micro_batch_size_per_gpu"),
    *("data.max_prompt_length", f"{ACTOR}.ppo_max_token_len_per_gpu", f"{ACTOR}.ulysses_sequence_parallel_size", f"{MODEL}.lora_rank"),
)
"""Settings that others follow from."""


def read_rl(settings: Settings, launch: Launch, reading: Reading, *, megatron: bool) -> None:
    """States a run; `megatron`: the config that it begins from is Megatron's."""
    name = settings(f"{MODEL}.path")
    actor = settings.under(ACTOR)
    kind = actor("strategy")
    megatron = megatron or (kind is not None and kind.text == "megatron")
    place = name.place if name is not None else Place(kind=DEFAULT, key=OWN)
    reading.state("framework.name", "megatron" if megatron else "huggingface", kind.place if kind is not None and megatron else place)
    state_model(name, launch, reading)
    _world(settings, reading)
    world = world_of(launch, reading)
    if megatron:
        ranks = state_megatron(actor.under("megatron"), reading, world)
        state_megatron_optimizer(actor.under("optim").under("override_optimizer_config"), reading)
    else:
        state_engine(actor.under("fsdp_config"), reading, strategy=kind.text if kind is not None else "", world=world, version=1)
        state_module(settings.under(MODEL), reading, loss=False)
        state_optimizer(actor.under("optim"), reading)
        _attention(settings, reading)
        ranks = world // _context(actor, reading)
    _batch(settings, actor, reading, ranks)
    _method(settings, launch, reading)
    _generation(settings, reading)
    numbers_only(SIZES, settings, reading)


def _attention(settings: Settings, reading: Reading) -> None:
    stated = settings(f"{MODEL}.override_config.attn_implementation")
    if stated is None or "flash" in stated.text:
        say_or_default(reading, "attention.implementation", "flash", stated, "verl (workers/fsdp_workers.py: flash_attention_2)")
    elif stated.text in ("sdpa", "eager"):
        say(reading, "attention.implementation", stated.text, stated)


def _world(settings: Settings, reading: Reading) -> None:
    """ppo_trainer.yaml: eight GPUs in one node when nothing is said."""
    each, nodes = settings("trainer.n_gpus_per_node"), settings("trainer.nnodes")
    if any(stated is not None and not count(stated) for stated in (each, nodes)):
        return
    size = (count(each) or 8) * (count(nodes) or 1)
    source = each or nodes
    if source is not None:
        reading.state("parallelism.world_size", size, source.place if source.place.kind else Place(kind=LAUNCHER))
    else:
        reading.default("parallelism.world_size", size, f"{OWN}/ppo_trainer.yaml")
    if each is not None and count(each):
        say(reading, "node.gpus", count(each), each)


def _context(actor: Settings, reading: Reading) -> int:
    stated = actor("ulysses_sequence_parallel_size")
    if stated is None or count(stated) < 2:
        return 1
    say(reading, "parallelism.context", count(stated), stated)
    say(reading, "parallelism.context_type", "ulysses", stated)
    return count(stated)


def _batch(settings: Settings, actor: Settings, reading: Reading, ranks: int) -> None:
    """A micro-batch of so many sequences of prompt and response, or of so many tokens in one row."""
    prompt, response = settings("data.max_prompt_length"), settings("data.max_response_length")
    length = (count(prompt) or 512) + (count(response) or 512)
    apply((Row("data.max_response_length", "batch.target_length", positive),), settings, reading)
    reading.default("batch.target_length", 512, f"{OWN}/data/legacy_data.yaml")
    dynamic = actor("use_dynamic_bsz")
    reading.default("batch.sequence_length_is", "cap", f"{OWN}/data/legacy_data.yaml")
    if dynamic is not None and on(dynamic):
        _tokens(actor, dynamic, reading)
        return
    if all(stated is None or count(stated) for stated in (prompt, response)):
        say_or_default(reading, "batch.sequence_length", length, response or prompt, f"{OWN}/data/legacy_data.yaml")
    padding = settings(f"{MODEL}.use_remove_padding")
    say_or_default(reading, "batch.packed", not off(padding), padding, f"{OWN}/model/hf_model.yaml: use_remove_padding")
    _sequences(settings, actor, reading, ranks)


def _tokens(actor: Settings, dynamic: Stated, reading: Reading) -> None:
    """One row of at most so many tokens; each sequence parallel rank brings as many."""
    tokens = actor("ppo_max_token_len_per_gpu")
    size = (count(tokens) or 16384) * max(count(actor("ulysses_sequence_parallel_size")), 1)
    say_or_default(reading, "batch.sequence_length", size, tokens, f"{OWN}/actor/actor.yaml")
    say(reading, "batch.micro_batch_size", 1, dynamic)
    say(reading, "batch.packed", True, dynamic)


def _sequences(settings: Settings, actor: Settings, reading: Reading, ranks: int) -> None:
    """Sequences of a micro-batch, and how many of them fill the mini-batch of a rank."""
    micro, shared = actor("ppo_micro_batch_size_per_gpu"), actor("ppo_micro_batch_size")
    size = count(micro) or (count(shared) // ranks if ranks else 0)
    source = micro or shared
    if source is None or not size:
        return
    say(reading, "batch.micro_batch_size", size, source)
    mini = actor("ppo_mini_batch_size")
    if ranks:
        sequences = (count(mini) or 256) * max(count(settings(f"{ROLLOUT}.n")), 1) // ranks
        say_or_default(reading, "batch.gradient_accumulation_steps", max(sequences // size, 1), mini, f"{OWN}/actor/actor.yaml")


def _method(settings: Settings, launch: Launch, reading: Reading) -> None:
    stated = settings("algorithm.adv_estimator")
    word = stated.text.strip().lower().rpartition(".")[2] if stated is not None else "gae"
    if word not in ESTIMATORS and stated is not None:
        reading.cannot_say(f"adv_estimator {stated.text[:40]}", stated.place)
    else:
        say_or_default(reading, "method.name", ESTIMATORS[word], stated, f"{OWN}/ppo_trainer.yaml: adv_estimator")
    penalty = next(
        (each for key in (f"{ACTOR}.use_kl_loss", "algorithm.use_kl_in_reward") if (each := settings(key)) is not None and on(each)), None
    )
    if penalty is not None:
        say(reading, "method.reference", "adapter" if count(settings(f"{MODEL}.lora_rank")) else "full", penalty)
        if not count(settings(f"{MODEL}.lora_rank")) and reading.get("framework.name") != "megatron":
            reading.warnings.append(f"method.reference: {HOST} ({penalty.place})")
    else:
        reading.default("method.reference", "none", f"{OWN}: use_kl_loss and use_kl_in_reward are off")
    if word == "gae":
        state_model(settings("critic.model.path"), launch, reading, "method.critic")
    if (used := settings("reward_model.enable")) is not None and on(used):
        state_model(settings("reward_model.model.path"), launch, reading, "method.reward")


def _generation(settings: Settings, reading: Reading) -> None:
    """A colocated engine gives its part back between rollouts unless free_cache_engine is off (rollout/rollout.yaml)."""
    name, hybrid = settings(f"{ROLLOUT}.name"), settings("actor_rollout_ref.hybrid_engine")
    if name is not None and name.text == "hf":
        say(reading, "method.generation.mode", "none", name)
        return
    say_or_default(reading, "method.generation.mode", "separate" if off(hybrid) else "colocated", hybrid or name, f"{OWN}/ppo_trainer.yaml")
    if off(hybrid):
        return
    share, freed = settings(f"{ROLLOUT}.gpu_memory_utilization"), settings(f"{ROLLOUT}.free_cache_engine")
    if share is not None and amount(share):
        apply((Row(f"{ROLLOUT}.gpu_memory_utilization", "method.generation.memory_fraction", number),), settings, reading)
    reading.default("method.generation.memory_fraction", 0.5, f"{OWN}/rollout/rollout.yaml")
    say_or_default(reading, "method.generation.sleep", not off(freed), freed, f"{OWN}/rollout/rollout.yaml: free_cache_engine")
