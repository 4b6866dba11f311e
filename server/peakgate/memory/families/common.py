"""Operations that several families share: norms, activations, rotary positions, adapters, attention cores, heads, the loss.

Sources: transformers models/llama/modeling_llama.py, activations.py, modeling_rope_utils.py,
integrations/sdpa_attention.py, loss/loss_utils.py; peft tuners/lora/layer.py.
"""

from __future__ import annotations

from peakgate.memory.blocks import parse

BLOCKS = parse("""
rms_norm x                                   # llama: LlamaRMSNorm
  x = to_float32 x
  _p = power x
  v = mean _p -> groups
  _e = add_small v
  _r = rsqrt _e
  x = multiply_rows x _r
  _n = to_compute x
  return weight _n -> groups
gelu_new x                                   # tanh approximation in Python operations
  _h = scale x
  _p = power x
  _c = scale _p
  _a = add x _c
  _s = scale _a
  _t = tanh _s
  _o = add_small _t
  return multiply _h _o
rope x
  _a = multiply_by x cos
  _r = rotate_half x
  _s = multiply_by _r cos
  return add _a _s
power_fp32 x                                 # autocast runs pow in fp32
  _f = to_float32 x
  return power_itself _f
half_for_matmul x                            # autocast casts the factors of a product, then the layout is made
  _h = to_half x
  return contiguous_if_transposed _h
lora x                                       # peft Linear.forward; the adapter may be fp32
  y = linear_base x -> out
  x = to_adapter x
  _d = lora_dropout x
  _a = linear_adapter _d -> rank
  _b = linear_adapter _a -> out
  _s = scale _b
  y = add y _s
  return to_compute y
lora_dora x                                  # peft tuners/lora/layer.py with DoraLinearVariant: dropout in front of both products
  y = linear_base x -> out
  x = to_adapter x
  _d = lora_dropout x
  y = dora _d y
  return to_compute y
core_eager q k v
  k = repeat_heads k -> q
  v = repeat_heads v -> q
  _q = for_matmul q
  _k = for_matmul k
  _w = matmul _q _k -> scores
  w = scale _w
  w = soft_cap w
  w = mask_scores w
  w = softmax_up w
  w = dropout_attention w
  _v = for_matmul v
  _p = product_cast w
  o = matmul _p _v -> q
  return merge_heads o
softmax_fp32 w
  _f = to_float32 w
  _p = softmax _f
  return to_compute _p
tanh_cap w
  w = scale w
  w = tanh w
  return scale w
core_flash q k v
  return flash q k v
core_flash_repeated q k v                    # libraries before enable_gqa copy keys and values to every head
  k = repeat_heads k -> q
  v = repeat_heads v -> q
  return flash q k v
core_flash_copy q k v                        # q from a concatenation: the kernel's output has its layout and is copied
  _o = flash q k v
  return contiguous _o
core_flash_half q k v
  _q = to_half q
  _k = to_half k
  _v = to_half v
  return flash _q _k _v
core_flash_half_copy q k v
  _o = core_flash_half q k v
  return contiguous _o
core_efficient_plain q k v                   # fp32: flash refuses it; repeat_interleave always copies
  k = repeat_interleave k -> q
  v = repeat_interleave v -> q
  return efficient_plain q k v
core_efficient q k v                         # with a mask: keys and values repeated, an additive bias made for each layer
  k = repeat_heads k -> q
  v = repeat_heads v -> q
  _m = bias_of_mask mask
  return efficient q k v _m
core_efficient_half q k v                    # autocast casts inside the call: keys and values are repeated before it
  k = repeat_heads k -> q
  v = repeat_heads v -> q
  _q = to_half q
  _k = to_half k
  _v = to_half v
  _m = bias_of_mask_half mask
  return efficient _q _k _v _m
mlp_gated x
  _g = linear.gate x -> f
  _s = act _g
  _u = linear.up x -> f
  _m = multiply _s _u
  return linear.down _m -> h
mlp_gated_fused x                            # one kernel keeps gate and up and rebuilds the rest (as Liger's SwiGLU; not measured)
  _g = linear.gate x -> f
  _u = linear.up x -> f
  _m = gated _g _u
  return linear.down _m -> h
mlp_plain x
  x = linear.up x -> f
  x = act x
  x = linear.down x -> h
  return dropout_mlp x
layer_pre_norm x                             # llama, mistral, qwen2, qwen3
  n = norm x
  n = attention n
  x = add x n
  n = norm x
  n = mlp n
  return add x n
embed_plain x
  _e = embedding.V x -> h
  e = require_grad _e
  return dropout_embedding e
embed_positions x                            # gpt2, opt: a learned table of positions, one row a sequence position
  _e = embedding.V x -> h
  e = require_grad _e
  p = embedding.positions positions -> h
  _x = add_broadcast e p
  return dropout_embedding _x
head_linear x
  return linear.head x -> V
head_score x                                 # one number a token (modeling_layers.py: GenericForSequenceClassification, `score`)
  return linear.score x -> one
plain_loss x labels                          # torch.nn.CrossEntropyLoss of the logits as they are; autocast runs it in fp32
  _f = loss_cast x
  _p = log_softmax _f
  return nll _p labels
causal_loss x labels                         # loss_utils.ForCausalLMLoss, of the fp32 logits
  _p = log_softmax x
  return nll _p labels
""")
