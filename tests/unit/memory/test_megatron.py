"""Megatron-LM with Transformer Engine: published ledgers of single ranks, and the rules behind them.

SimuMax: MooreThreads/SimuMax docs/b200/b200_release_v1.2_summary.json; its runs pad 128,257 and 102,401 words, because a NullTokenizer adds
one (Megatron-LM training/tokenizer/tokenizer.py). GPT: golden files of NVIDIA/Megatron-LM tests/functional_tests/test_cases/gpt, whose
model_config.yaml say --no-gradient-accumulation-fusion.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest
from tests.bench.accuracy import Json, number, rows
from tests.unit.memory.builders import MIB, a_transformer, item_bytes, job_of
from tests.unit.memory.builders import of_stage as of_one_stage

from peakgate.memory.capacity import capability_of
from peakgate.memory.change import Value, with_changes
from peakgate.memory.check import world_of
from peakgate.memory.flat_buffers import schedule
from peakgate.memory.job import Batch, Checkpointing, Framework, Job, Megatron, Model, MultiHeadLatentAttention, Transformer
from peakgate.memory.model import describe
from peakgate.memory.pipeline import stages
from peakgate.memory.plan import Degrees
from peakgate.memory.predict import predict
from peakgate.memory.prediction import Prediction
from peakgate.memory.profiles.megatron_resident import engine_workspace
from peakgate.memory.resolve import resolve
from peakgate.memory.routed import expert_shard, expert_tensor
from peakgate.memory.runtime import workspace_bytes

PUBLISHED = {str(row["id"]): row for row in rows("published_jobs")}

LATENT = MultiHeadLatentAttention(q_lora_rank=24, kv_lora_rank=16, qk_rope_head_dim=4, qk_nope_head_dim=8, v_head_dim=8)
DEEPSEEK = replace(
    a_transformer("deepseek_v3", experts=4, experts_per_token=2, expert_ffn_hidden_size=48, shared_experts=1, dense_layers=1), mla=LATENT
)


def a_megatron_job(changes: Mapping[str, Value] | None = None, model: Transformer | None = None) -> Job:
    """Two sequences of 256 tokens of a small model."""
    model = model or a_transformer(layers=4, vocab_size=256)
    job = Job(
        model=Model(transformer=model),
        batch=Batch(micro_batch_size=2, sequence_length=256, gradient_accumulation_steps=8),
        framework=Framework(name="megatron", megatron=Megatron(cross_entropy_fusion=True)),
    )
    return with_changes(job, (changes or {}).items())


def of_stage(job: Job, stage: int, *, exact: bool = False) -> Prediction:
    """The prediction for one stage of a pipeline."""
    described = describe(job.model)
    assert described.architecture is not None
    resolved = resolve(job, described.architecture, world_of(job))
    capability = capability_of(job)
    plan = replace(resolved.plan, workspace_bytes=workspace_bytes(capability), capability=capability)
    wanted = stages(plan.degrees, plan.architecture.dims["L"], plan.accumulation)[stage]
    return of_one_stage(plan, wanted, resolved, described, exact=exact)


def published(name: str, changes: Mapping[str, Value] | None = None) -> Job:
    """A published job, with what its source says and the document does not."""
    return with_changes(job_of(PUBLISHED[name]["job"]), (changes or {}).items())


LLAMA_WORDS: dict[str, Value] = {"model.transformer.vocab_size": 128_257}
DEEPSEEK_WORDS: dict[str, Value] = {"model.transformer.vocab_size": 102_401}


@pytest.mark.parametrize(
    ("name", "stage", "want_mib", "want_reserved_mib"),
    [
        ("simumax-llama3_70b_l12_tp1_pp2_dp4_mbc4_cef", 0, 68146.29, 72586),
        ("simumax-llama3_70b_l12_tp1_pp2_dp4_mbc4_cef", 1, 64478.55, 65762),
        ("simumax-llama3_70b_tp2_pp1_dp4_l12_mbc4_cef", 0, 62136.25, 64026),
        ("simumax-llama3_70b_l12_tp4_pp1_dp2_mbc4_cef", 0, 40009.77, 41140),
        ("simumax-llama3_70b_l12_tp8_pp1_dp1_mbc4_cef", 0, 28965.36, 29816),
    ],
)
def test_every_term_of_a_dense_ledger_is_an_operation(name: str, stage: int, want_mib: float, want_reserved_mib: float) -> None:
    """Five kinds of rank, five mixes of the same terms: allocated to 4e-6, reserved of the worst rank to 1 %."""
    answer = of_stage(published(name, LLAMA_WORDS), stage, exact=True)
    assert answer.undecided == ()
    assert answer.allocated_bytes / MIB == pytest.approx(want_mib, rel=4e-6)
    assert answer.reserved_bytes / MIB == pytest.approx(want_reserved_mib, rel=1e-2)


@pytest.mark.parametrize(
    ("name", "stage", "want_mib", "want_reserved_mib"),
    [
        ("simumax-deepseekv2_tp1_ep8_pp1_dp8_l4_mbc4_cef", 0, 46726.22, 49962),
        ("simumax-deepseekv2_tp1_ep4_pp2_dp4_l4_mbc4_cef", 0, 32342.68, 34762),
        ("simumax-deepseekv2_tp1_ep4_pp2_dp4_l4_mbc4_cef", 1, 45774.57, 48176),
    ],
)
def test_every_term_of_a_routed_ledger_is_an_operation(name: str, stage: int, want_mib: float, want_reserved_mib: float) -> None:
    """The peak is in a forward pass, where MoELayer.forward names four copies of the routed tokens; rests of small blocks are left."""
    answer = of_stage(published(name, DEEPSEEK_WORDS), stage, exact=True)
    assert answer.undecided == ()
    assert answer.peak_phase == "forward"
    assert answer.allocated_bytes / MIB == pytest.approx(want_mib, rel=3e-4)
    assert answer.reserved_bytes / MIB == pytest.approx(want_reserved_mib, rel=2e-2)


SIMUMAX = [pytest.param(row, id=name) for name, row in PUBLISHED.items() if name.startswith("simumax-")]


@pytest.mark.parametrize("row", SIMUMAX)
def test_a_published_document_is_enough(row: Json) -> None:
    """The highest of eight ranks to 0.1 % allocated and 2 % reserved, with nothing but what the document states."""
    answer = predict(job_of(row["job"]), exact=True)
    assert answer.undecided == ()
    assert answer.allocated_bytes == pytest.approx(number(row, "outcome.peak_bytes"), rel=1e-3)
    assert answer.reserved_bytes == pytest.approx(number(row, "outcome.also.reserved"), rel=2e-2)


@pytest.mark.parametrize(
    "name",
    [
        "mcore-te_tp1_pp1_dist_optimizer_no_mmap_bin_files-dev_dgx_h100",
        "mcore-te_tp4_pp1_dist_optimizer_overlap_grad_reduce_param_gather-dev_dgx_h100",
        "mcore-te_tp1_pp4_vp1-dev_dgx_h100",
    ],
)
def test_unfused_attention_and_loss(name: str) -> None:
    """GPT of Megatron-LM's own tests, the last of them interleaved: to 0.5 %; 1 % where tensor parallelism leaves rests of small blocks."""
    tolerance = 1e-2 if "_tp4_" in name else 5e-3
    job = published(name, {"framework.megatron.gradient_accumulation_fusion": False})
    assert predict(job).allocated_bytes == pytest.approx(number(PUBLISHED[name], "outcome.peak_bytes"), rel=tolerance)


@pytest.mark.parametrize(("tensor", "sequence_parallel"), [(1, False), (2, True), (4, True), (4, False)])
def test_what_a_dense_layer_keeps(tensor: int, sequence_parallel: bool) -> None:
    """Two inputs and outputs of norms and their reciprocal deviations, q, k, v, the attention's output and statistics, 6f inside."""
    h, f, a, kv, tokens = 64, 96, 8, max(16 // tensor, 8), 512  # a key-value head is not split
    outside = tensor if sequence_parallel else 1
    want = tokens * ((8 * h + 8) // outside + (2 * h + 2 * h + 6 * f + 4 * a) // tensor + 4 * kv)
    degrees = {"tensor": tensor, "sequence_parallel": sequence_parallel, "world_size": tensor}
    job = a_megatron_job({f"parallelism.{name}": value for name, value in degrees.items()})
    assert predict(job).saved_activation_bytes_per_layer == want


def test_a_stand_in_is_kept_for_each_shape() -> None:
    """Matrices of one shape share one tensor (Transformer Engine base.py: get_dummy_wgrad); none without fused accumulation."""

    def stand_ins(job: Job) -> int:
        return item_bytes(predict(job), "stand-ins of fused weight gradients")

    shapes = {(96, 64), (64, 64), (192, 64), (64, 96), (256, 64)}  # q k v; o; gate and up; down; head
    want = sum(-(-2 * rows * columns // 512) * 512 for rows, columns in shapes)
    assert stand_ins(a_megatron_job()) == want
    assert stand_ins(a_megatron_job(model=a_transformer(layers=9, vocab_size=256))) == want
    assert stand_ins(a_megatron_job({"framework.megatron.gradient_accumulation_fusion": False})) == 0


def test_the_vocabulary_is_padded_on_the_ranks_and_not_in_the_model() -> None:
    """Megatron-LM tokenizer.py: a multiple of 128 and the tensor degree."""
    small, padded = (predict(a_megatron_job(model=a_transformer(vocab_size=words))) for words in (250, 256))
    assert small.states_bytes == padded.states_bytes
    assert padded.parameters - small.parameters == 2 * 6 * 64


def test_experts_have_data_parallel_ranks_of_their_own() -> None:
    """Experts stay whole where tensor, expert and pipeline degrees do not fit into the world (parallel_state.py)."""
    plan = resolved_degrees({"parallelism.world_size": 8, "parallelism.tensor": 2, "parallelism.expert": 8, "model.transformer.experts": 8})
    assert (expert_tensor(plan), expert_shard(plan)) == (1, 1)
    plan = resolved_degrees({"parallelism.world_size": 8, "parallelism.tensor": 2, "parallelism.expert": 2})
    assert (expert_tensor(plan), expert_shard(plan)) == (2, 2)


def resolved_degrees(changes: Mapping[str, Value]) -> Degrees:
    """Degrees of a routed job."""
    job = a_megatron_job({**changes, "parallelism.sharding": "zero1"}, model=DEEPSEEK)
    described = describe(job.model)
    assert described.architecture is not None
    return resolve(job, described.architecture, world_of(job)).plan.degrees


@pytest.mark.parametrize("module", ["core_attn", "mla_up_proj", "moe_act", "layernorm", "mlp"])
def test_a_recomputed_module_keeps_less(module: str) -> None:
    """No module adds weights, and each lowers what a step holds; full recomputation holds least."""
    none, some = predict(a_megatron_job(model=DEEPSEEK)), predict(recomputing(module, a_megatron_job(model=DEEPSEEK)))
    full = predict(a_megatron_job({"checkpointing.mode": "full"}, model=DEEPSEEK))
    assert some.undecided == ()
    assert some.states_bytes == none.states_bytes
    assert full.allocated_bytes < some.allocated_bytes < none.allocated_bytes


def test_the_attention_core_gives_up_its_statistics_alone() -> None:
    """Its inputs and output are kept by their neighbours: 4 bytes a head and token."""
    none, core = (_forward(job) for job in (a_megatron_job(), recomputing("core_attn", a_megatron_job())))
    assert none - core == 4 * 8 * 512 * 4


def recomputing(module: str, job: Job) -> Job:
    """The job with one module of selective checkpointing."""
    return replace(job, checkpointing=Checkpointing(mode="selective", modules=(module,)))


def _forward(job: Job) -> int:
    """Activations at the peak."""
    return item_bytes(predict(job), "saved for the backward pass")


def test_a_pipeline_holds_the_gradients_that_its_loop_names() -> None:
    """A stage between holds one received and one computed gradient of the hidden state more than its walk (schedules.py)."""
    pipeline: dict[str, Value] = {"parallelism.pipeline": 4, "parallelism.world_size": 4}
    hidden = 2 * 512 * 64
    once = of_stage(a_megatron_job({**pipeline, "batch.gradient_accumulation_steps": 1}), 3)
    steady = of_stage(a_megatron_job(pipeline), 3)
    assert steady.allocated_bytes - once.allocated_bytes == pytest.approx(hidden, abs=16 * 512)  # the loss's own 12 bytes a token


def test_one_forward_one_backward() -> None:
    """After its warm-up a stage holds as many micro-batches as are in flight, and in the end nothing."""
    events = list(schedule([(1, 10), (2, 1)], [(2, -1), (3, 5), (1, -10)], in_flight=3, micro_batches=5))
    held, peak = 0, 0
    for _, nbytes in events:
        held += nbytes
        peak = max(peak, held)
    assert peak == 3 * 11 + 4 + 5  # one gradient still named while the next is computed
    assert held == 0
    assert len({number for number, nbytes in events if nbytes > 0}) == 15


def test_a_workspace_follows_the_card() -> None:
    """Transformer Engine gemm.py: 32 MiB and a little from compute capability 9, 4 MiB before."""
    assert engine_workspace((9, 0)) == 32 * MIB + 1024
    assert engine_workspace((8, 0)) == engine_workspace(None) == 4 * MIB


@pytest.mark.parametrize(
    ("changes", "block", "want"),
    [
        ({}, "gemma2", "Megatron-LM's own modules of the block 'gemma2'"),
        ({"parallelism.sharding": "fsdp", "parallelism.world_size": 2}, "llama", "Megatron-LM's fsdp"),
        ({"parallelism.context": 2, "parallelism.world_size": 2, "attention.implementation": "eager"}, "llama", "context"),
        ({"offload.optimizer": "cpu"}, "llama", "hybrid optimizer"),
        ({"model.transformer.mtp_layers": 1, "checkpointing.mode": "full"}, "llama", "mtp_layers"),
        (
            {"parallelism.pipeline": 2, "parallelism.world_size": 2, "parallelism.pipeline_schedule": "zero-bubble"},
            "llama",
            "zero-bubble",
        ),
    ],
)
def test_what_is_not_counted_is_named(changes: dict[str, Value], block: str, want: str) -> None:
    """The answer is then undecided."""
    assert want in " ".join(predict(a_megatron_job(changes, model=a_transformer(block, layers=4))).undecided)


@pytest.mark.parametrize("block", ["llama", "mistral", "qwen2", "qwen3", "gpt2", "nemotron", "mixtral", "qwen3_moe"])
def test_every_own_block_is_decided(block: str) -> None:
    """Megatron-LM builds these of its own modules, eager or fused, and the ledger sums to the device."""
    for attention in ("eager", "flash"):
        answer = predict(a_megatron_job({"attention.implementation": attention, "batch.sequence_length": 128}, model=a_transformer(block)))
        assert answer.undecided == ()
        assert sum(line.bytes for line in answer.ledger) == answer.device_bytes


T5 = [pytest.param(row, id=name) for name, row in PUBLISHED.items() if name.startswith("mcore-t5")]


@pytest.mark.parametrize("row", T5)
def test_an_encoder_and_a_decoder_of_its_own_modules(row: Json) -> None:
    """Megatron-LM's own tests of T5, with and without tensor parallelism, fused and unfused attention: to 1.6 %."""
    answer = predict(job_of(row["job"]))
    assert answer.undecided == ()
    assert answer.allocated_bytes == pytest.approx(number(row, "outcome.peak_bytes"), rel=1.6e-2)


def a_t5_job(changes: Mapping[str, Value] | None = None) -> Job:
    """One encoder and one decoder layer, unfused attention, two lengths."""
    model = replace(a_transformer("t5", layers=1, vocab_size=256), encoder_layers=1, max_positions=64)
    job = replace(a_megatron_job(model=model), batch=Batch(micro_batch_size=2, sequence_length=64, target_length=32))
    return with_changes(job, {"attention.implementation": "eager", "dropout.attention": 0.1, **(changes or {})}.items())


def test_both_stacks_share_one_table_of_positions() -> None:
    """Four matrices of attention and two of the feed-forward part a stack, four more of the second attention, with biases; one table."""
    h, f, words, places = 64, 96, 256, 64
    attention, second, feed = 4 * (h * h + h), 4 * (h * h + h), 2 * h * f + h + f
    norms = 2 * h * (2 + 3 + 2)
    assert predict(a_t5_job()).parameters == words * (h + 1) + places * h + 2 * attention + second + 2 * feed + norms


def test_rows_of_padding_are_masked_again_in_each_layer() -> None:
    """Transformer Engine builds a mask of all pairs in the encoder's attention and in the second one; the local modules do not."""
    engine, local = (
        predict(a_t5_job({"framework.megatron.transformer_impl": name})).saved_activation_bytes_per_layer
        for name in ("transformer_engine", "local")
    )
    assert engine - local == 2 * 64 * (64 + 32)


def test_a_decoder_gathers_the_encoders_output() -> None:
    """Sequence parallelism splits tokens outside the products; their outputs, keys and values of the encoder among them, stay whole."""
    degrees: dict[str, Value] = {"parallelism.tensor": 2, "parallelism.world_size": 2}
    whole, split = (
        predict(a_t5_job({**degrees, "parallelism.sequence_parallel": value})).saved_activation_bytes_per_layer for value in (False, True)
    )
    encoder, decoder, norm = 2 * 64, 2 * 32, 2 * 64 * 2 + 2 * 4  # tokens; a norm's input, output and two statistics
    assert whole - split == (2 * encoder + 3 * decoder) * norm // 2


@pytest.mark.parametrize(
    ("name", "stage", "within"),
    [
        ("mcore-bert_tp1_pp2-dev_dgx_h100", 1, 2e-3),
        ("mcore-bert_tp1_pp2-dev_dgx_a100", 1, 2e-3),
        ("mcore-bert_tp1_pp4_vp2-dev_dgx_h100", 3, 2e-3),
        ("mcore-bert_tp4_pp1-dev_dgx_h100", 0, 4e-2),
    ],
)
def test_an_encoder_of_its_own_modules(name: str, stage: int, within: float) -> None:
    """Megatron-LM's own tests of BERT on the rank that wrote them, with the words of BERT's uncased vocabulary and the unfused gradients of
    their model_config.yaml; under tensor parallelism rests of blocks are left."""
    job = published(name, {"model.transformer.vocab_size": 30_522, "framework.megatron.gradient_accumulation_fusion": False})
    answer = of_stage(job, stage)
    assert answer.undecided == ()
    assert answer.allocated_bytes == pytest.approx(number(PUBLISHED[name], "outcome.peak_bytes"), rel=within)


def test_a_bert_has_its_transform_and_its_binary_head() -> None:
    """Tables of words, positions and two types; four matrices of attention and two of the feed-forward part; two dense layers behind."""
    h, f, words, places, layers = 64, 96, 256, 256, 2
    model = replace(a_transformer("bert", layers=layers, vocab_size=words), max_positions=places)
    layer = 4 * (h * h + h) + 2 * h * f + f + h + 4 * h
    ends = words * (h + 1) + places * h + 2 * h + 2 * h + 2 * (h * h + h) + 2 * h + 2 * (h + 1)
    assert predict(a_megatron_job(model=model)).parameters == layers * layer + ends


def further(depths: int, changes: Mapping[str, Value] | None = None) -> Prediction:
    """A small Llama that predicts further tokens."""
    return predict(a_megatron_job(changes, model=a_transformer(layers=4, vocab_size=256, mtp_layers=depths)))


def test_a_further_token_is_a_layer_with_a_projection_and_norms() -> None:
    """Two norms in front, the joined width projected, a layer, a last norm (multi_token_prediction.py); the head is shared."""
    h, f, kv = 64, 96, 16
    layer = 2 * h * h + 2 * h * kv + 3 * h * f + 2 * h
    assert further(2).parameters - further(1).parameters == layer + 2 * h * h + 3 * h
    assert further(1).undecided == ()


def test_every_depth_keeps_logits_of_its_own() -> None:
    """Transformer Engine's loss keeps them in 16 bits until its backward pass."""
    plain, one, two = (logits_of(depths) for depths in (0, 1, 2))
    assert one - plain >= 2 * 512 * 256
    assert two - one == one - plain


def logits_of(depths: int) -> int:
    """Bytes of logits and losses at the highest moment of the backward pass."""
    model = a_transformer(layers=2, vocab_size=65_536, mtp_layers=depths)
    ledger = predict(a_megatron_job(model=model)).ledger
    return sum(line.bytes for line in ledger if line.category in ("logits", "activations"))


def test_a_last_stage_embeds_the_further_tokens_itself() -> None:
    """With a pipeline it has a copy of the table."""
    pipeline: dict[str, Value] = {"parallelism.pipeline": 2, "parallelism.world_size": 2}
    stages_with = [
        of_stage(a_megatron_job(pipeline, model=a_transformer(layers=4, vocab_size=256, mtp_layers=n)), 1).states_bytes for n in (0, 1)
    ]
    h, f, kv = 64, 96, 16
    added = 2 * h * h + 2 * h * kv + 3 * h * f + 2 * h + 2 * h * h + 3 * h + 256 * h
    assert stages_with[1] - stages_with[0] == pytest.approx(18 * added, rel=0.01)


@pytest.mark.parametrize(
    "changes", [{"parallelism.tensor": 2, "parallelism.world_size": 2}, {"checkpointing.mode": "full"}, {"framework.name": "torchtitan"}]
)
def test_further_tokens_elsewhere_are_left_open(changes: dict[str, Value]) -> None:
    """Split projections, rebuilt ones, and other frameworks' modules."""
    assert any("mtp_layers" in note for note in further(1, changes).undecided)


@pytest.mark.parametrize(
    ("stated", "want"), [(None, "in-place"), ("vocab-parallel", "in-place"), ("fused", "in-place"), ("full", "vocab-parallel")]
)
def test_the_fused_kernel_is_one_of_the_split_vocabulary(stated: str | None, want: str) -> None:
    """A launch that fuses it states both; whole logits alone contradict it (core/fusions/fused_cross_entropy.py)."""
    job = a_megatron_job({"loss.implementation": stated} if stated else {})
    described = describe(job.model)
    assert described.architecture is not None
    assert resolve(job, described.architecture, world_of(job)).plan.loss == want
