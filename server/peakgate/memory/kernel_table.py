"""Every kernel as one row (`kernels.py` explains how to read it)."""

from __future__ import annotations

from peakgate.memory import profiles
from peakgate.memory.kernels import parse

TABLE = """
# ---- element-wise and shape
add(x0,x1) | y=out             | x0: gx0~gy; x1: gx1~gy
add_in_place(x0,x1) | y~x0       | x0: gx0~gy; x1: gx1~gy
add_promoted(x0,x1) | y=out      | x0: gx0=x0; x1: gx1~gy                     # an fp32 term: the other input's gradient is cast back
add_broadcast(x0,x1) | y=x0      | x0: gx0~gy; x1: gx1=x1                     # x1 is shared by the batch: its gradient is summed
add_promoted_right(x0,x1) | y=out | x0: gx0~gy; x1: gx1=x1
multiply_promoted(x0,x1) | y=x1  | x0(x1): a=x1 gx0=x0 -a; x1(x0): gx1=x1
multiply_by_promoted(x,c) | y=x:4 | x(c): a=x:4 gx=x
add_small    | y=x               | x: gx~gy                                   # x + constant, x + mask
multiply(x0,x1) | y=x0              | x0(x1): gx0=x0; x1(x0): gx1=x1
multiply_rows(x0,x1) | y=x0              | x0(x1): gx0=x0; x1(x0): t=x0 gx1=x1 -t      # x1 is one number a row: its gradient is summed
multiply_by(x,c) | y=x               | x(c): gx=x                                 # c is a constant tensor (rope)
scale        | y=x               | x: gx=x                                    # times a number
power        | y=x               | x(x): a=x b=x gx=x                         # pow_backward: grad * (n * x.pow(n-1)), all of one expression
power_itself | y=x               | x(x): a=x b=x gx=x
mean         | y=out             | x: gx=x
rsqrt        | y=x               | x(y): a=x b=x gx=x
tanh         | y=x               | x(y): gx=x
silu         | y=x               | x(x): gx=x
gelu         | y=x               | x(x): gx=x
gated(x0,x1) | y=x0              | x0,x1(x0,x1): gx0=x0 gx1=x1
relu         | y=x               | x(y): gx=x
to_float32   | y=x:4             | x: gx=x
to_compute   | y=x:act           | x: gx=x
to_half      | y=x:2             | x: gx=x
half_copy(w) | y=w:2             | w: gw=w                                    # autocast's copy of a weight
product(x,c) | y=out             | c(x): gc=c; x(c): gx=x
product_bias(x,c,d) | y=out      | x(c): gx=x; c(x): gc=c; d: gd=d
magnitude(w) | n!=w y=w           | w(n): gw=w                                 # DoRA: over the norm of the adapted weight
multiply_row(x0,x1) | y=out      | x0(x1): gx0=x0; x1(x0): t=gy gx1=x1 -t      # x1 is one number a column: its gradient is summed
multiply_row_promoted(x0,x1) | y=out | x0(x1): a=gy > gx0=x0 -a; x1(x0): t=gy gx1=x1 -t
product_frozen(x,c) | y=out      | x(c): gx=x
to_adapter   | y=x:adapter       | x: gx=x
view         | y~x               | x: gx~gy
heads        | y~x               | x: gx=x                                    # split in heads: its gradient comes back transposed: a copy
heads_free   | y~x               | x: gx~gy                                    # the same where the gradient comes back in order
contiguous   | y=x               | x: gx~gy
merge_heads  | y=x               | x: gx=x
repeat       | y=out             | x: gx=x
repeat_view  | y~x               | x: gx=x                                    # one key-value head: expand is a view
bias_of_mask | t=x y=x:act -t    | x: gx~gy                                   # masked_fill of zeros, from a boolean mask
bias_of_mask_half | t=x y=x:2 -t | x: gx~gy
slice        | y~x               | x: gx=x                                    # slice_backward: zeros of the whole input
join(x0,x1) | y=out             | x0: gx0~gy; x1: gx1~gy                     # cat: the gradients are views of one tensor
halves       | a~x u~x           | x: gx=x
split3       | q~x k~x v~x       | x: gx=x
rotate_half  | n=x/2 y=x -n      | x: n=x/2 a=x -n b=x gx=x -a -b             # cat(-x2, x1); two slices, then a sum
dropout      | y=x m!=x:1        | x(m): gx=x                                 # native_dropout: a one-byte mask
# ---- weights
embedding    | y=out:act         | w(x): gw=w
linear       | y=out             | w(x): gw=w; x(w): gx=x
linear_bias  | y=out             | x(w): gx=x; w(x): gw=w; b: gb=b
weight       | y=x               | x(w): gx=x; w(x): t=x gw=w -t              # norm weight: the gradient is summed over rows
weight_plus_one | p!=w:4 y=x     | x(p): gx=x; w(x): t=x gw=w -t              # gemma: (1 + weight) in fp32
layer_norm   | y=x m!=rows:4 r!=rows:4 | x,w,b(x,m,r,w): gx=x gw=w gb=b
rms_norm_fused | y=x r!=rows:4   | x,w(x,r,w): gx=x gw=w
layer_norm_textbook | y=x        | x,w,b(x,w): gx=x gw=w gb=b                 # seed A: the statistics are not counted
rms_norm_textbook | y=x          | x,w(x): gx=x gw=w
rms_norm_textbook_final | y=x    | x,w: gx=x gw=w
layer_norm_textbook_final | y=x        | x,w,b: gx=x gw=w gb=b         # seed A counts nothing between the last layer and the logits
# ---- tensor and sequence parallel: the input is split along the sequence and gathered for the product, in forward and for both gradients
linear_gathered | g=x*tensor y=out -g | w(x): g=x*tensor gw=w -g; x(w): f=x*tensor gx=x -f
linear_bias_gathered | g=x*tensor y=out -g | x(w): f=x*tensor gx=x -f; w(x): g=x*tensor gw=w -g; b: gb=b
linear_scattered | f=out*tensor y=out -f | w(x): gw=w; x(w): g=gy*tensor gx=x -g
linear_bias_scattered | f=out*tensor y=out -f | x(w): g=gy*tensor gx=x -g; w(x): gw=w; b: gb=b
# ---- quantised frozen weights: made whole in the compute format for each product (bitsandbytes autograd/_functions.py, MatMul4Bit)
linear_quantised | t=w:product y=out -t | w: gw=w; x: t=w:product gx=x -t
linear_quantised_bias | t=w:product y=out -t | w: gw=w; x: t=w:product gx=x -t; b: gb=b
# 8-bit weights (bitsandbytes 0.45 autograd/_functions.py, MatMul8bitLt): the input in fp16, its 8-bit copy, a search for outliers, an int32
# product; the gradient of the input is made of a copy of the whole weight. What the few outlying columns take depends on the data.
linear_int8  | h=x:2 s=rows:4 c=x:1 a=x:2 n=x:1 -a -n -h i=out:4 f=out:2 y=out -f -i -c -s | w: gw=w; x: t=w:product gx=x -t
linear_int8_bias | h=x:2 s=rows:4 c=x:1 a=x:2 n=x:1 -a -n -h i=out:4 f=out:2 y=out -f -i -c -s | w: gw=w; x: t=w:product gx=x -t; b: gb=b
linear_int8_half | s=rows:4 c=x:1 a=x:2 n=x:1 -a -n i=out:4 y=out -i -c -s | w: gw=w; x: t=w:product gx=x -t
linear_int8_half_bias | s=rows:4 c=x:1 a=x:2 n=x:1 -a -n i=out:4 y=out -i -c -s | w: gw=w; x: t=w:product gx=x -t; b: gb=b
# nested: the scales, one fp32 number per 64 weights, are made whole first (bitsandbytes functional.py, dequantize_4bit)
linear_quantised_nested | a=w:4/64 t=w:product -a y=out -t | w: gw=w; x: a=w:4/64 t=w:product -a gx=x -t
linear_quantised_nested_bias | a=w:4/64 t=w:product -a y=out -t | w: gw=w; x: a=w:4/64 t=w:product -a gx=x -t; b: gb=b
# ---- attention
matmul(x0,x1) | y=out             | x0(x1): gx0=x0; x1(x0): gx1=x1
softmax      | y=x               | x(y): gx=x
softmax_of_input | y=x           | x(x,y): gx=x                               # torch before 1.11 (github.com/pytorch/pytorch/issues/64000)
flash(q,k,v) | y=q l!=lse:4 r!=rng | q,k,v(q,k,v,y,l,r): gq=q gk=k gv=v
flash_textbook(q,k,v) | y=q             | q,k,v(q,k,v,y): gq=q gk=k gv=v
efficient_plain(q,k,v) | y=q l!=lse32:4 r!=rng | q,k,v(q,k,v,y,l,r): gq=q gk=k gv=v
efficient(q,k,v,c) | y=q l!=lse32:4 r!=rng | q,k,v(q,k,v,y,l,r,c): gq=q gk=k gv=v
# ---- loss
log_softmax  | y=x               | x(y): gx=x
log_softmax_of_input | y=x       | x(x,y): gx=x
nll(x,t) | y=four w!=four     | x(x,t,w): gx=x
logits_textbook | y=out:4 | w: gw=w; x: gx=x                            # Korthikanti et al. 4.3: fp32 logits, nothing else
loss_textbook(x,t) | y=four | x: gx=x
pick_label(x,t) | y=out          | x(x,t): gx=x                               # gather: scattered into zeros, in place
log_sum_exp  | t=x y=out -t      | x(x,y): a=x c=x gx=x -a -c                 # FunctionsManual.cpp: grad * (self - result).exp()
pick_masked  | y=x               | x: gx=x                                    # x[mask]: put into zeros, in place
exponential  | y=x               | x(y): gx=x
scale_in_place | y~x             | x: gx=x c=x d=x -d -c                      # of a view: CopySlices copies, clones and divides
# TRL kernels/chunked_logprob.py: a tile of logits at a time, in forward and again for both gradients, which are summed in fp32 and cast
fused_loss_tiled | m=tile:act y=rows:4 z!=rows:4 e!=rows:4 -m | x(x,z,e): m=tile:act gx=x; w(x,z,e): gw=w
fused_loss_tiled_half | m=tile:act y=rows:4 z!=rows:4 e!=rows:4 -m | x(x,z,e): a=x:4 m=tile:act > gx=x; w(x,z,e): c=w:4 > gw=w
# ---- encoders: patches and frames, tables added as they are, a bias on the scores
convolve     | y=out             | x(w): gx=x; w(x): gw=w; b: gb=b            # convolution_backward: all of it at once
convolve_unbiased | y=out        | x(w): gx=x; w(x): gw=w
pick_rows    | y=out             | x: gx=x                                    # x[arange, index]: put into zeros, in place
logit_scale  | y=x               | x(w): gx=x; w(x): t=x gw=w -t
prepend      | y=out             | x: gx~gy; w: gw=w                          # cat with a learned token: the gradient is a view and a sum
add_table    | y=x               | x: gx~gy; w: gw=w                          # a learned table, shared by the batch
first_token  | y~x               | x: gx=x                                    # select_backward: zeros of the whole input
zeros        | y=out:act         | x: gx~gy
expand_batch | y~x               | x: gx=x                                    # the gradient is summed over the batch
where_causal | m!=square:1 y=x   | x(m): gx=x
where_padded(x,m) | y=out         | x(m): t=gy gx=x -t                        # the bias where the mask lets through: one a sequence
efficient_masked(q,k,v,c) | y=q l!=lse32:4 r!=one:16 | q,k,v,c(q,k,v,y,l,r,c): gq=q gk=k gv=v gc=c
efficient_biased(q,k,v,c) | y=q l!=lse32:4 r!=one:16 | q,k,v,c(q,k,v,y,l,r,c): gq=q gk=k gv=v gc=c*b
# ---- mixture of experts; int64 results carry no gradient
experts_mm(x) | o!=E:4 y=out     | w(x,o): gw=w; x(w,o): gx=x
gather(x,i)  | y=out             | x(i): z=x gx=x -z                          # index_put into zeros
pick_columns | y=out             | x: z=x gx=x -z
pick(x,i)    | y=x               | x(i): z=x gx=x -z
top_k        | y=out i=out:8     | x(i): z=x gx=x -z
normalise    | s!=rows:4 c!=x y~x | x(c,s): a=x b=x c=x gx=x                 # in-place division keeps a copy
sort_tokens  | y=x p=x           | x: gx~gy
integers     | y=x               | x: gx~gy
counts       | t=x:4 y=E:4 -t    | x: gx~gy
weigh(x0,x1) | y=x0              | x0,x1(x0,x1): t=x0 gx0=x0 gx1=x1 -t
weigh_promoted(x0,x1) | y=x0:4   | x0,x1(x0,x1): t=x0:4 a=x0:4 > gx0=x0 -a gx1=x1 -t   # bfloat16 rows times fp32 weights
unpermute(x,i) | y=x             | x(i): z=x gx=x -z
sum_k        | y=out             | x: gx=x
# ---- plain networks (tools/autograd/derivatives.yaml; aten native/cudnn, DilatedMaxPool2d.cu, Dropout.cpp, Loss.cpp, Activation.cpp)
convolution  | y=out             | x,w(x,w): gx=x gw=w
convolution_bias | y=out         | x,w,b(x,w): gx=x gw=w gb=b
convolution_half(x,c) | y=out    | x,c(x,c): gx=x gc=c                         # autocast: c and d are copies of weight and bias
convolution_half_bias(x,c,d) | y=out | x,c,d(x,c): gx=x gc=c gd=d
norm_without_weights | y=x m!=rows:4 r!=rows:4 | x(x,m,r): gx=x
pool_max     | y=out i!=out:8    | x(x,i): gx=x                               # int64 places of the maxima
pool_average | y=out             | x(x): gx=x
resize       | y=out             | x: gx=x                                    # upsampling, means: only sizes are kept
relu_in_place | y~x              | x(y): gx=x
keep_in_place | c!=x y~x         | x(c): gx=x                                 # the gradient reads the input: a clone of it is kept
prelu        | y=x               | x,w(x,w): gx=x t=x gw=w -t
prelu_half(x,c) | y=x            | x,c(x,c): gx=x t=x gc=c -t
dropout_channels | n!=rows:act y=x | x(n): gx=x                               # feature_dropout: one number a channel
add_weight   | y=x               | x: gx~gy; w: gw=w; b: gb=b
mse(x,t)     | d=x y=four -d     | x(x,t): gx=x                               # the squares before their mean
sum_all      | y=four            | x: gx=x
expert_bias(i) | y=out:act       | b(i): z=b gb=b -z                          # each row gets its expert's bias
# the choice among groups of experts: scores with their corrections, a mask of the best groups (numbers a group are left out), masked scores
choose       | s=x m=x n=x:1 d=x:1 -n f=x -s v=out:4 y=out:8 -v |
limit_groups | m=x n=x:1 d!=x:1 -n y=x | x(d): gx=x
linear_float32 | c!=w:4 y=out:4  | w(x): t=w:4 gw=w -t; x(c): gx=x            # a 16-bit weight, made fp32 for the product
clamp_above  | y=x               | x(x): a=x:1 gx=x -a
clamp_both   | y=x               | x(x): a=x:1 c=x:1 gx=x -a -c
# ---- parts of heads, and activations made of several operations
split_query  | p~x*nopes r~x*ropes | x: gx=x
split_latent | n~x*kvr s~x*rope_head | x: gx=x
split_keys_values | k~x*nopes v~x*values | x: gx=x
efficient_latent(q,k,v) | y=v l!=lse32:4 r!=rng | q,k,v(q,k,v,y,l,r): gq=q gk=k gv=v
efficient_latent_masked(q,k,v,c) | y=v l!=lse32:4 r!=rng | q,k,v(q,k,v,y,l,r,c): gq=q gk=k gv=v
first_part   | y=out             | x: t=gy gx=x -t                            # copied into an empty tensor
second_part(x0,x1) | y~x0        | x0,x1: gx0=x0 gx1=x1 z=x1 -z                # and a second part beside it: what it covers is zeroed
pairs        | a~x u~x           | x: t=x gx=x -t                             # x[..., ::2], x[..., 1::2]: two slices, then a sum
pad          | y=out             | x: gx~gy
subtract(x0,x1) | y=x0           | x0: gx0~gy; x1: gx1=x1
sigmoid      | y=x               | x(y): gx=x
positive     | y=x:1             |
minimum      | y=x               | x(x): d=x e=x:1 gx=x m=x:1 -m -e -d
expm1        | y=x               | x(y): a=x gx=x -a
where(m,x0,x1) | y=x0            | x0,x1(m): gx1=x1 gx0=x0
gelu_bloom   | a=x c=x d=x e=x -e -d -c y=x -a | x(x): a=x c=x d=x e=x f=x -f -e -d -c gx=x -a   # bloom_gelu_back: five at once
layer_norm_shifted | p!=w y=x m!=rows:4 r!=rows:4 | x,w,b(x,m,r,p): gx=x gw=w gb=b
layer_norm_unbiased | y=x m!=rows:4 r!=rows:4 | x,w(x,m,r,w): gx=x gw=w
# ---- scores with positions or sinks
scaled_scores(x0,x1) | y=out      | x0(x1): t=x0 gx0=x0 -t; x1(x0): t=x1 gx1=x1 -t   # baddbmm: alpha times each gradient
add_float32  | y=x:4             | x: gx=x
masked_fill(x,m) | y=x           | x(m): gx=x
join_sinks   | y=out             | x: gx~gy; w: gw=w
minus_maximum | v=lse:act i!=lse:8 y=x -v | x(i): n=x s=lse:act -n z=x t=x -z -s gx=x -t
flash_sinks(q,k,v) | y=q l!=lse:4 r!=rng | q,k,v(q,k,v,y,l,r): gq=q gk=k gv=v; w: gw=w
"""

KERNELS = parse(TABLE) | profiles.KERNELS
