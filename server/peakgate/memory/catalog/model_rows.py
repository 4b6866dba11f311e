"""The rows of the model catalogue: dimensions as in each model's published config.json, and its exact parameter count.

The count is that of the safetensors files with tied weights counted once. A row stands here only when the count that its
dimensions give equals the published one. After the columns: optional fields (`window=4096`; `drop=0.1,0`, the config's dropouts
of attention weights and of residuals), then Hugging Face ids, the first of which is the source. `count` says where the count is from.
"""

from __future__ import annotations

DECODERS = """
# name              block    layers hidden heads kv head_dim ffn vocab tied parameters  options and ids
llama-7b            llama       32  4096  32  32 128 11008  32000 no    6738415616 huggyllama/llama-7b decapoda-research/llama-7b-hf lmsys/vicuna-7b-v1.3
llama-13b           llama       40  5120  40  40 128 13824  32000 no   13015864320 huggyllama/llama-13b decapoda-research/llama-13b-hf lmsys/vicuna-13b-v1.3
llama-30b           llama       60  6656  52  52 128 17920  32000 no   32528943616 huggyllama/llama-30b lmsys/vicuna-33b-v1.3
llama-65b           llama       80  8192  64  64 128 22016  32000 no   65285660672 huggyllama/llama-65b
llama-2-7b          llama       32  4096  32  32 128 11008  32000 no    6738415616 meta-llama/Llama-2-7b-hf meta-llama/Llama-2-7b-chat-hf meta-llama/Llama-2-7b meta-llama/Llama-2-7b-chat NousResearch/Llama-2-7b-hf lmsys/vicuna-7b-v1.5 NousResearch/Llama-2-7b-chat-hf togethercomputer/LLaMA-2-7B-32K
llama-2-13b         llama       40  5120  40  40 128 13824  32000 no   13015864320 meta-llama/Llama-2-13b-hf meta-llama/Llama-2-13b-chat-hf meta-llama/Llama-2-13b meta-llama/Llama-2-13b-chat NousResearch/Llama-2-13b-hf lmsys/vicuna-13b-v1.5 NousResearch/Llama-2-13b-chat-hf
llama-2-70b         llama       80  8192  64   8 128 28672  32000 no   68976648192 meta-llama/Llama-2-70b-hf meta-llama/Llama-2-70b-chat-hf meta-llama/Llama-2-70b meta-llama/Llama-2-70b-chat NousResearch/Llama-2-70b-hf NousResearch/Llama-2-70b-chat-hf
llama-3-8b          llama       32  4096  32   8 128 14336 128256 no    8030261248 meta-llama/Meta-Llama-3-8B meta-llama/Meta-Llama-3-8B-Instruct NousResearch/Meta-Llama-3-8B NousResearch/Meta-Llama-3-8B-Instruct unsloth/llama-3-8b unsloth/llama-3-8b-Instruct gradientai/Llama-3-8B-Instruct-262k
llama-3-70b         llama       80  8192  64   8 128 28672 128256 no   70553706496 meta-llama/Meta-Llama-3-70B meta-llama/Meta-Llama-3-70B-Instruct NousResearch/Meta-Llama-3-70B NousResearch/Meta-Llama-3-70B-Instruct
llama-3.1-8b        llama       32  4096  32   8 128 14336 128256 no    8030261248 meta-llama/Llama-3.1-8B meta-llama/Llama-3.1-8B-Instruct meta-llama/Meta-Llama-3.1-8B meta-llama/Meta-Llama-3.1-8B-Instruct deepseek-ai/DeepSeek-R1-Distill-Llama-8B NousResearch/Meta-Llama-3.1-8B NousResearch/Meta-Llama-3.1-8B-Instruct unsloth/Meta-Llama-3.1-8B unsloth/Meta-Llama-3.1-8B-Instruct unsloth/Llama-3.1-8B unsloth/Llama-3.1-8B-Instruct NousResearch/Hermes-3-Llama-3.1-8B nvidia/Llama-3.1-Nemotron-Nano-8B-v1 unsloth/DeepSeek-R1-Distill-Llama-8B
llama-3.1-70b       llama       80  8192  64   8 128 28672 128256 no   70553706496 meta-llama/Llama-3.1-70B meta-llama/Llama-3.1-70B-Instruct meta-llama/Meta-Llama-3.1-70B meta-llama/Meta-Llama-3.1-70B-Instruct NousResearch/Meta-Llama-3.1-70B unsloth/Meta-Llama-3.1-70B NousResearch/Hermes-3-Llama-3.1-70B nvidia/Llama-3.1-Nemotron-70B-Instruct-HF
llama-3.1-405b      llama      126 16384 128   8 128 53248 128256 no  405853388800 meta-llama/Llama-3.1-405B meta-llama/Llama-3.1-405B-Instruct NousResearch/Hermes-3-Llama-3.1-405B
llama-3.2-1b        llama       16  2048  32   8  64  8192 128256 yes   1235814400 meta-llama/Llama-3.2-1B meta-llama/Llama-3.2-1B-Instruct unsloth/Llama-3.2-1B unsloth/Llama-3.2-1B-Instruct NousResearch/Llama-3.2-1B
llama-3.2-3b        llama       28  3072  24   8 128  8192 128256 yes   3212749824 meta-llama/Llama-3.2-3B meta-llama/Llama-3.2-3B-Instruct unsloth/Llama-3.2-3B unsloth/Llama-3.2-3B-Instruct
llama-3.3-70b       llama       80  8192  64   8 128 28672 128256 no   70553706496 meta-llama/Llama-3.3-70B-Instruct deepseek-ai/DeepSeek-R1-Distill-Llama-70B unsloth/Llama-3.3-70B-Instruct
llama-3-8b-hermes-2-pro llama   32  4096  32   8 128 14336 128288 no    8030523392 NousResearch/Hermes-2-Pro-Llama-3-8B count=cited
codellama-7b        llama       32  4096  32  32 128 11008  32016 no    6738546688 codellama/CodeLlama-7b-hf codellama/CodeLlama-7b-Instruct-hf EleutherAI/llemma_7b
codellama-13b       llama       40  5120  40  40 128 13824  32016 no   13016028160 codellama/CodeLlama-13b-hf codellama/CodeLlama-13b-Instruct-hf
codellama-34b       llama       48  8192  64   8 128 22016  32000 no   33743970304 codellama/CodeLlama-34b-hf codellama/CodeLlama-34b-Instruct-hf codellama/CodeLlama-34b-Python-hf EleutherAI/llemma_34b
codellama-7b-python llama       32  4096  32  32 128 11008  32000 no    6738415616 codellama/CodeLlama-7b-Python-hf count=cited
codellama-13b-python llama      40  5120  40  40 128 13824  32000 no   13015864320 codellama/CodeLlama-13b-Python-hf count=cited
tinyllama-1.1b      llama       22  2048  32   4  64  5632  32000 no    1100048384 TinyLlama/TinyLlama-1.1B-Chat-v1.0 TinyLlama/TinyLlama_v1.1 TinyLlama/TinyLlama-1.1B-intermediate-step-1431k-3T unsloth/tinyllama
sheared-llama-1.3b  llama       24  2048  16  16 128  5504  32000 no    1345423360 princeton-nlp/Sheared-LLaMA-1.3B count=cited
sheared-llama-2.7b  llama       32  2560  20  20 128  6912  32000 no    2701560320 princeton-nlp/Sheared-LLaMA-2.7B count=cited
smollm-135m         llama       30   576   9   3  64  1536  49152 yes    134515008 HuggingFaceTB/SmolLM-135M HuggingFaceTB/SmolLM-135M-Instruct count=cited
smollm-360m         llama       32   960  15   5  64  2560  49152 yes    361821120 HuggingFaceTB/SmolLM-360M HuggingFaceTB/SmolLM-360M-Instruct count=cited
smollm-1.7b         llama       24  2048  32  32  64  8192  49152 yes   1711376384 HuggingFaceTB/SmolLM-1.7B HuggingFaceTB/SmolLM-1.7B-Instruct count=cited
smollm2-135m        llama       30   576   9   3  64  1536  49152 yes    134515008 HuggingFaceTB/SmolLM2-135M HuggingFaceTB/SmolLM2-135M-Instruct unsloth/SmolLM2-135M
smollm2-360m        llama       32   960  15   5  64  2560  49152 yes    361821120 HuggingFaceTB/SmolLM2-360M HuggingFaceTB/SmolLM2-360M-Instruct unsloth/SmolLM2-360M
smollm2-1.7b        llama       24  2048  32  32  64  8192  49152 yes   1711376384 HuggingFaceTB/SmolLM2-1.7B HuggingFaceTB/SmolLM2-1.7B-Instruct unsloth/SmolLM2-1.7B
smollm3-3b          smollm3     36  2048  16   4 128 11008 128256 yes   3075098624 HuggingFaceTB/SmolLM3-3B HuggingFaceTB/SmolLM3-3B-Base
yi-6b               llama       32  4096  32   4 128 11008  64000 no    6061035520 01-ai/Yi-6B 01-ai/Yi-1.5-6B 01-ai/Yi-6B-Chat 01-ai/Yi-1.5-6B-Chat
yi-9b               llama       48  4096  32   4 128 11008  64000 no    8829407232 01-ai/Yi-9B 01-ai/Yi-1.5-9B 01-ai/Yi-1.5-9B-Chat 01-ai/Yi-Coder-9B 01-ai/Yi-Coder-9B-Chat
yi-34b              llama       60  7168  56   8 128 20480  64000 no   34388917248 01-ai/Yi-34B 01-ai/Yi-1.5-34B 01-ai/Yi-34B-Chat 01-ai/Yi-1.5-34B-Chat
deepseek-llm-7b     llama       30  4096  32  32 128 11008 102400 no    6910365696 deepseek-ai/deepseek-llm-7b-base deepseek-ai/deepseek-llm-7b-chat deepseek-ai/deepseek-coder-7b-base-v1.5 deepseek-ai/deepseek-coder-7b-instruct-v1.5 deepseek-ai/deepseek-math-7b-base deepseek-ai/deepseek-math-7b-instruct deepseek-ai/deepseek-math-7b-rl
deepseek-coder-1.3b llama       24  2048  16  16 128  5504  32256 no    1346471936 deepseek-ai/deepseek-coder-1.3b-base deepseek-ai/deepseek-coder-1.3b-instruct
deepseek-coder-6.7b llama       32  4096  32  32 128 11008  32256 no    6740512768 deepseek-ai/deepseek-coder-6.7b-base deepseek-ai/deepseek-coder-6.7b-instruct
deepseek-coder-33b  llama       62  7168  56   8 128 19200  32256 no   33342991360 deepseek-ai/deepseek-coder-33b-base deepseek-ai/deepseek-coder-33b-instruct
solar-10.7b         llama       48  4096  32   8 128 14336  32000 no   10731524096 upstage/SOLAR-10.7B-v1.0 upstage/SOLAR-10.7B-Instruct-v1.0
open-llama-3b       llama       26  3200  32  32 100  8640  32000 no    3426473600 openlm-research/open_llama_3b openlm-research/open_llama_3b_v2
open-llama-7b       llama       32  4096  32  32 128 11008  32000 no    6738415616 openlm-research/open_llama_7b openlm-research/open_llama_7b_v2 count=cited
open-llama-13b      llama       40  5120  40  40 128 13824  32000 no   13015864320 openlm-research/open_llama_13b count=cited
falcon3-1b          llama       18  2048   8   4 256  8192 131072 no    1669408768 tiiuae/Falcon3-1B-Base tiiuae/Falcon3-1B-Instruct count=cited
falcon3-3b          llama       22  3072  12   4 256  9216 131072 no    3227655168 tiiuae/Falcon3-3B-Base tiiuae/Falcon3-3B-Instruct count=cited
falcon3-7b          llama       28  3072  12   4 256 23040 131072 no    7455550464 tiiuae/Falcon3-7B-Base tiiuae/Falcon3-7B-Instruct count=cited
falcon3-10b         llama       40  3072  12   4 256 23040 131072 no   10305653760 tiiuae/Falcon3-10B-Base tiiuae/Falcon3-10B-Instruct count=cited
danube3-500m        llama       16  1536  16   8  96  4096  32000 no     513590784 h2oai/h2o-danube3-500m-base h2oai/h2o-danube3-500m-chat count=cited
eurollm-1.7b        llama       24  2048  16   8 128  5632 128000 no    1656850432 utter-project/EuroLLM-1.7B utter-project/EuroLLM-1.7B-Instruct count=cited
baichuan2-7b        baichuan    32  4096  32  32 128 11008 125696 no    7505973248 baichuan-inc/Baichuan2-7B-Base baichuan-inc/Baichuan2-7B-Chat count=cited
baichuan2-13b       baichuan    40  5120  40  40 128 13696 125696 no   13896668160 baichuan-inc/Baichuan2-13B-Base baichuan-inc/Baichuan2-13B-Chat count=cited
granite-3.0-2b      granite     40  2048  32   8  64  8192  49155 yes   2533531648 drop=0.1,0 ibm-granite/granite-3.0-2b-base ibm-granite/granite-3.0-2b-instruct
granite-3.0-8b      granite     40  4096  32   8 128 12800  49155 yes   8170848256 drop=0.1,0 ibm-granite/granite-3.0-8b-base ibm-granite/granite-3.0-8b-instruct
granite-3.1-2b      granite     40  2048  32   8  64  8192  49155 yes   2533531648 drop=0.1,0 ibm-granite/granite-3.1-2b-instruct count=cited
granite-3.1-8b      granite     40  4096  32   8 128 12800  49155 yes   8170848256 drop=0.1,0 ibm-granite/granite-3.1-8b-instruct count=cited
granite-3.3-2b      granite     40  2048  32   8  64  8192  49159 yes   2533539840 ibm-granite/granite-3.3-2b-instruct count=cited
granite-3.3-8b      granite     40  4096  32   8 128 12800  49159 yes   8170864640 ibm-granite/granite-3.3-8b-instruct count=cited
internlm2-7b        internlm2   32  4096  32   8 128 14336  92544 no    7737708544 internlm/internlm2-7b internlm/internlm2-chat-7b internlm/internlm2_5-7b internlm/internlm2_5-7b-chat
internlm2-1.8b      internlm2   24  2048  16   8 128  8192  92544 no    1889110016 internlm/internlm2-1_8b internlm/internlm2-chat-1_8b internlm/internlm2_5-1_8b internlm/internlm2_5-1_8b-chat count=cited
internlm2-20b       internlm2   48  6144  48   8 128 16384  92544 no   19861149696 internlm/internlm2-20b internlm/internlm2-chat-20b internlm/internlm2_5-20b internlm/internlm2_5-20b-chat count=cited
mistral-7b-v0.1     mistral     32  4096  32   8 128 14336  32000 no    7241732096 window=4096 mistralai/Mistral-7B-v0.1 mistralai/Mistral-7B-Instruct-v0.1 HuggingFaceH4/zephyr-7b-beta HuggingFaceH4/zephyr-7b-alpha HuggingFaceH4/mistral-7b-sft-beta unsloth/mistral-7b unsloth/zephyr-sft
mistral-7b-v0.2     mistral     32  4096  32   8 128 14336  32000 no    7241732096 mistralai/Mistral-7B-Instruct-v0.2 mistral-community/Mistral-7B-v0.2 count=cited
openhermes-2.5      mistral     32  4096  32   8 128 14336  32002 no    7241748480 window=4096 teknium/OpenHermes-2.5-Mistral-7B NousResearch/Nous-Hermes-2-Mistral-7B-DPO openchat/openchat-3.5-0106 openchat/openchat_3.5 Nexusflow/Starling-LM-7B-beta berkeley-nest/Starling-LM-7B-alpha count=cited
danube-1.8b         mistral     24  2560  32   8  80  6912  32000 no    1831201280 window=4096 h2oai/h2o-danube-1.8b-base h2oai/h2o-danube-1.8b-chat count=cited
mistral-7b-v0.3     mistral     32  4096  32   8 128 14336  32768 no    7248023552 mistralai/Mistral-7B-v0.3 mistralai/Mistral-7B-Instruct-v0.3 mistralai/Mathstral-7B-v0.1 unsloth/mistral-7b-v0.3 unsloth/mistral-7b-instruct-v0.3
ministral-8b        mistral     36  4096  32   8 128 12288 131072 no    8019808256 window=32768 mistralai/Ministral-8B-Instruct-2410
mistral-nemo-12b    mistral     40  5120  32   8 128 14336 131072 no   12247782400 mistralai/Mistral-Nemo-Base-2407 mistralai/Mistral-Nemo-Instruct-2407 unsloth/Mistral-Nemo-Base-2407 unsloth/Mistral-Nemo-Instruct-2407
codestral-22b       mistral     56  6144  48   8 128 16384  32768 no   22247282688 mistralai/Codestral-22B-v0.1 count=cited
mistral-small-22b   mistral     56  6144  48   8 128 16384  32768 no   22247282688 mistralai/Mistral-Small-Instruct-2409 count=cited
mistral-small-24b   mistral     40  5120  32   8 128 32768 131072 no   23572403200 mistralai/Mistral-Small-24B-Base-2501 mistralai/Mistral-Small-24B-Instruct-2501 unsloth/Mistral-Small-24B-Base-2501 unsloth/Mistral-Small-24B-Instruct-2501 mistralai/Devstral-Small-2505 mistralai/Magistral-Small-2506
mistral-large-123b  mistral     88 12288  96   8 128 28672  32768 no  122610069504 mistralai/Mistral-Large-Instruct-2407 mistralai/Mistral-Large-Instruct-2411
qwen1.5-0.5b        qwen2       24  1024  16  16  64  2816 151936 yes    463987712 Qwen/Qwen1.5-0.5B Qwen/Qwen1.5-0.5B-Chat
qwen1.5-1.8b        qwen2       24  2048  16  16 128  5504 151936 no    1836828672 Qwen/Qwen1.5-1.8B Qwen/Qwen1.5-1.8B-Chat
qwen1.5-4b          qwen2       40  2560  20  20 128  6912 151936 no    3950369280 Qwen/Qwen1.5-4B Qwen/Qwen1.5-4B-Chat
qwen1.5-7b          qwen2       32  4096  32  32 128 11008 151936 no    7721324544 Qwen/Qwen1.5-7B Qwen/Qwen1.5-7B-Chat
qwen1.5-14b         qwen2       40  5120  40  40 128 13696 152064 no   14167290880 Qwen/Qwen1.5-14B Qwen/Qwen1.5-14B-Chat
qwen1.5-32b         qwen2       64  5120  40   8 128 27392 152064 no   32512218112 Qwen/Qwen1.5-32B Qwen/Qwen1.5-32B-Chat count=cited
qwen1.5-72b         qwen2       80  8192  64  64 128 24576 152064 no   72287920128 Qwen/Qwen1.5-72B Qwen/Qwen1.5-72B-Chat count=cited
qwen1.5-110b        qwen2       80  8192  64   8 128 49152 152064 no  111209914368 Qwen/Qwen1.5-110B Qwen/Qwen1.5-110B-Chat count=cited
codeqwen1.5-7b      qwen2       32  4096  32   4 128 13440  92416 no    7250284544 Qwen/CodeQwen1.5-7B Qwen/CodeQwen1.5-7B-Chat count=cited
qwen2-0.5b          qwen2       24   896  14   2  64  4864 151936 yes    494032768 Qwen/Qwen2-0.5B Qwen/Qwen2-0.5B-Instruct unsloth/Qwen2-0.5B
qwen2-1.5b          qwen2       28  1536  12   2 128  8960 151936 yes   1543714304 Qwen/Qwen2-1.5B Qwen/Qwen2-1.5B-Instruct unsloth/Qwen2-1.5B Qwen/Qwen2-Math-1.5B Qwen/Qwen2-Math-1.5B-Instruct
qwen2-7b            qwen2       28  3584  28   4 128 18944 152064 no    7615616512 Qwen/Qwen2-7B Qwen/Qwen2-7B-Instruct unsloth/Qwen2-7B Qwen/Qwen2-Math-7B Qwen/Qwen2-Math-7B-Instruct
qwen2-72b           qwen2       80  8192  64   8 128 29568 152064 no   72706203648 Qwen/Qwen2-72B Qwen/Qwen2-72B-Instruct unsloth/Qwen2-72B
qwen2.5-0.5b        qwen2       24   896  14   2  64  4864 151936 yes    494032768 Qwen/Qwen2.5-0.5B Qwen/Qwen2.5-0.5B-Instruct unsloth/Qwen2.5-0.5B unsloth/Qwen2.5-0.5B-Instruct
qwen2.5-1.5b        qwen2       28  1536  12   2 128  8960 151936 yes   1543714304 Qwen/Qwen2.5-1.5B Qwen/Qwen2.5-1.5B-Instruct unsloth/Qwen2.5-1.5B unsloth/Qwen2.5-1.5B-Instruct
qwen2.5-3b          qwen2       36  2048  16   2 128 11008 151936 yes   3085938688 Qwen/Qwen2.5-3B Qwen/Qwen2.5-3B-Instruct unsloth/Qwen2.5-3B unsloth/Qwen2.5-3B-Instruct
qwen2.5-7b          qwen2       28  3584  28   4 128 18944 152064 no    7615616512 Qwen/Qwen2.5-7B Qwen/Qwen2.5-7B-Instruct deepseek-ai/DeepSeek-R1-Distill-Qwen-7B unsloth/Qwen2.5-7B unsloth/Qwen2.5-7B-Instruct
qwen2.5-14b         qwen2       48  5120  40   8 128 13824 152064 no   14770033664 Qwen/Qwen2.5-14B Qwen/Qwen2.5-14B-Instruct deepseek-ai/DeepSeek-R1-Distill-Qwen-14B unsloth/Qwen2.5-14B unsloth/Qwen2.5-14B-Instruct
qwen2.5-32b         qwen2       64  5120  40   8 128 27648 152064 no   32763876352 Qwen/Qwen2.5-32B Qwen/Qwen2.5-32B-Instruct Qwen/QwQ-32B deepseek-ai/DeepSeek-R1-Distill-Qwen-32B unsloth/Qwen2.5-32B unsloth/Qwen2.5-32B-Instruct Qwen/QwQ-32B-Preview unsloth/QwQ-32B
qwen2.5-72b         qwen2       80  8192  64   8 128 29568 152064 no   72706203648 Qwen/Qwen2.5-72B Qwen/Qwen2.5-72B-Instruct unsloth/Qwen2.5-72B unsloth/Qwen2.5-72B-Instruct
qwen2.5-coder-0.5b  qwen2       24   896  14   2  64  4864 151936 yes    494032768 Qwen/Qwen2.5-Coder-0.5B Qwen/Qwen2.5-Coder-0.5B-Instruct count=cited
qwen2.5-coder-1.5b  qwen2       28  1536  12   2 128  8960 151936 yes   1543714304 Qwen/Qwen2.5-Coder-1.5B Qwen/Qwen2.5-Coder-1.5B-Instruct count=cited
qwen2.5-coder-3b    qwen2       36  2048  16   2 128 11008 151936 yes   3085938688 Qwen/Qwen2.5-Coder-3B Qwen/Qwen2.5-Coder-3B-Instruct count=cited
qwen2.5-coder-7b    qwen2       28  3584  28   4 128 18944 152064 no    7615616512 Qwen/Qwen2.5-Coder-7B Qwen/Qwen2.5-Coder-7B-Instruct count=cited
qwen2.5-coder-14b   qwen2       48  5120  40   8 128 13824 152064 no   14770033664 Qwen/Qwen2.5-Coder-14B Qwen/Qwen2.5-Coder-14B-Instruct count=cited
qwen2.5-coder-32b   qwen2       64  5120  40   8 128 27648 152064 no   32763876352 Qwen/Qwen2.5-Coder-32B Qwen/Qwen2.5-Coder-32B-Instruct count=cited
qwen2.5-math-1.5b   qwen2       28  1536  12   2 128  8960 151936 yes   1543714304 Qwen/Qwen2.5-Math-1.5B Qwen/Qwen2.5-Math-1.5B-Instruct count=cited
qwen2.5-math-7b     qwen2       28  3584  28   4 128 18944 152064 no    7615616512 Qwen/Qwen2.5-Math-7B Qwen/Qwen2.5-Math-7B-Instruct count=cited
qwen2.5-math-72b    qwen2       80  8192  64   8 128 29568 152064 no   72706203648 Qwen/Qwen2.5-Math-72B Qwen/Qwen2.5-Math-72B-Instruct count=cited
r1-distill-qwen-1.5b qwen2      28  1536  12   2 128  8960 151936 no    1777088000 deepseek-ai/DeepSeek-R1-Distill-Qwen-1.5B unsloth/DeepSeek-R1-Distill-Qwen-1.5B agentica-org/DeepScaleR-1.5B-Preview count=cited
qwen3-0.6b          qwen3       28  1024  16   8 128  3072 151936 yes    596049920 Qwen/Qwen3-0.6B Qwen/Qwen3-0.6B-Base unsloth/Qwen3-0.6B
qwen3-1.7b          qwen3       28  2048  16   8 128  6144 151936 yes   1720574976 Qwen/Qwen3-1.7B Qwen/Qwen3-1.7B-Base unsloth/Qwen3-1.7B
qwen3-4b            qwen3       36  2560  32   8 128  9728 151936 yes   4022468096 Qwen/Qwen3-4B Qwen/Qwen3-4B-Base unsloth/Qwen3-4B Qwen/Qwen3-4B-Instruct-2507 Qwen/Qwen3-4B-Thinking-2507 unsloth/Qwen3-4B-Instruct-2507
qwen3-8b            qwen3       36  4096  32   8 128 12288 151936 no    8190735360 Qwen/Qwen3-8B Qwen/Qwen3-8B-Base unsloth/Qwen3-8B deepseek-ai/DeepSeek-R1-0528-Qwen3-8B
qwen3-14b           qwen3       40  5120  40   8 128 17408 151936 no   14768307200 Qwen/Qwen3-14B Qwen/Qwen3-14B-Base unsloth/Qwen3-14B
qwen3-32b           qwen3       64  5120  64   8 128 25600 151936 no   32762123264 Qwen/Qwen3-32B unsloth/Qwen3-32B
glm-4-9b            glm         40  4096  32   2 128 13696 151552 no    9399951360 THUDM/glm-4-9b-hf THUDM/glm-4-9b-chat-hf zai-org/glm-4-9b-hf zai-org/glm-4-9b-chat-hf
chatglm3-6b         glm         28  4096  32   2 128 13696  65024 no    6243584000 THUDM/chatglm3-6b THUDM/chatglm2-6b count=cited
seed-oss-36b        seed_oss    64  5120  80   8 128 27648 155136 no   36151104512 drop=0.1,0.1 ByteDance-Seed/Seed-OSS-36B-Base ByteDance-Seed/Seed-OSS-36B-Instruct
phi-3-mini-4k       phi3        32  3072  32  32  96  8192  32064 no    3821079552 window=2047 microsoft/Phi-3-mini-4k-instruct unsloth/Phi-3-mini-4k-instruct
phi-3-mini-128k     phi3        32  3072  32  32  96  8192  32064 no    3821079552 window=262144 microsoft/Phi-3-mini-128k-instruct microsoft/Phi-3.5-mini-instruct unsloth/Phi-3.5-mini-instruct
phi-3-medium        phi3        40  5120  40  10 128 17920  32064 no   13960238080 window=2047 microsoft/Phi-3-medium-4k-instruct
phi-3-medium-128k   phi3        40  5120  40  10 128 17920  32064 no   13960238080 window=131072 microsoft/Phi-3-medium-128k-instruct count=cited
phi-4               phi3        40  5120  40  10 128 17920 100352 no   14659507200 microsoft/phi-4 microsoft/Phi-4-reasoning microsoft/Phi-4-reasoning-plus unsloth/phi-4
phi-4-mini          phi3        32  3072  24   8 128  8192 200064 yes   3836021760 window=262144 microsoft/Phi-4-mini-instruct microsoft/Phi-4-mini-reasoning unsloth/Phi-4-mini-instruct
olmo-2-1b           olmo2       16  2048  16  16 128  8192 100352 no    1484916736 allenai/OLMo-2-0425-1B allenai/OLMo-2-0425-1B-Instruct allenai/OLMo-2-0425-1B-SFT allenai/OLMo-2-0425-1B-DPO
olmo-2-7b           olmo2       32  4096  32  32 128 11008 100352 no    7298617344 allenai/OLMo-2-1124-7B allenai/OLMo-2-1124-7B-Instruct allenai/OLMo-2-1124-7B-SFT allenai/OLMo-2-1124-7B-DPO
olmo-2-13b          olmo2       40  5120  40  40 128 13824 100352 no   13716198400 allenai/OLMo-2-1124-13B allenai/OLMo-2-1124-13B-Instruct allenai/OLMo-2-1124-13B-SFT allenai/OLMo-2-1124-13B-DPO
olmo-2-32b          olmo2       64  5120  40   8 128 27648 100352 no   32234279936 allenai/OLMo-2-0325-32B allenai/OLMo-2-0325-32B-Instruct
olmo-3-7b           olmo3       32  4096  32  32 128 11008 100278 no    7298011136 window=4096 allenai/Olmo-3-1025-7B allenai/Olmo-3-7B-Instruct allenai/Olmo-3-7B-Think
olmo-3-32b          olmo3       64  5120  40   8 128 27648 100278 no   32233522176 window=4096 allenai/Olmo-3-1125-32B allenai/Olmo-3-32B-Think count=cited
olmo-1b             olmo        16  2048  16  16 128  8192  50304 yes   1176764416 allenai/OLMo-1B-hf count=cited
olmo-7b             olmo        32  4096  32  32 128 11008  50304 no    6888095744 allenai/OLMo-7B-hf allenai/OLMo-7B-Instruct-hf count=cited
apertus-8b          apertus     32  4096  32   8 128 21504 131072 no    8053338176 swiss-ai/Apertus-8B-2509 swiss-ai/Apertus-8B-Instruct-2509 count=cited
gemma-2b            gemma       18  2048   8   1 256 16384 256000 yes   2506172416 google/gemma-2b google/gemma-2b-it google/gemma-1.1-2b-it unsloth/gemma-2b
gemma-7b            gemma       28  3072  16  16 256 24576 256000 yes   8537680896 google/gemma-7b google/gemma-7b-it google/gemma-1.1-7b-it unsloth/gemma-7b
codegemma-2b        gemma       18  2048   8   1 256 16384 256000 yes   2506172416 google/codegemma-2b count=cited
codegemma-7b        gemma       28  3072  16  16 256 24576 256000 yes   8537680896 google/codegemma-7b google/codegemma-7b-it count=cited
gemma-2-2b          gemma2      26  2304   8   4 256  9216 256000 yes   2614341888 window=4096 google/gemma-2-2b google/gemma-2-2b-it google/shieldgemma-2b google/gemma-2-2b-jpn-it unsloth/gemma-2-2b unsloth/gemma-2-2b-it
gemma-2-9b          gemma2      42  3584  16   8 256 14336 256000 yes   9241705984 window=4096 google/gemma-2-9b google/gemma-2-9b-it google/shieldgemma-9b unsloth/gemma-2-9b unsloth/gemma-2-9b-it
gemma-2-27b         gemma2      46  4608  32  16 128 36864 256000 yes  27227128320 window=4096 google/gemma-2-27b google/gemma-2-27b-it google/shieldgemma-27b unsloth/gemma-2-27b unsloth/gemma-2-27b-it
gemma-3-270m        gemma3_text 18   640   4   1 256  2048 262144 yes    268098176 window=512 google/gemma-3-270m google/gemma-3-270m-it unsloth/gemma-3-270m unsloth/gemma-3-270m-it
gemma-3-1b          gemma3_text 26  1152   4   1 256  6912 262144 yes    999885952 window=512 google/gemma-3-1b-pt google/gemma-3-1b-it unsloth/gemma-3-1b-pt unsloth/gemma-3-1b-it
gpt2                gpt2        12   768  12  12  64  3072  50257 yes    124439808 drop=0.1,0.1 positions=1024 openai-community/gpt2
gpt2-medium         gpt2        24  1024  16  16  64  4096  50257 yes    354823168 drop=0.1,0.1 positions=1024 openai-community/gpt2-medium
gpt2-large          gpt2        36  1280  20  20  64  5120  50257 yes    774030080 drop=0.1,0.1 positions=1024 openai-community/gpt2-large
gpt2-xl             gpt2        48  1600  25  25  64  6400  50257 yes   1557611200 drop=0.1,0.1 positions=1024 openai-community/gpt2-xl
distilgpt2          gpt2         6   768  12  12  64  3072  50257 yes     81912576 drop=0.1,0.1 positions=1024 distilbert/distilgpt2 count=cited
dialogpt-small      gpt2        12   768  12  12  64  3072  50257 yes    124439808 drop=0.1,0.1 positions=1024 microsoft/DialoGPT-small count=cited
dialogpt-medium     gpt2        24  1024  16  16  64  4096  50257 yes    354823168 drop=0.1,0.1 positions=1024 microsoft/DialoGPT-medium count=cited
dialogpt-large      gpt2        36  1280  20  20  64  5120  50257 yes    774030080 drop=0.1,0.1 positions=1024 microsoft/DialoGPT-large count=cited
gpt-neo-125m        gpt_neo     12   768  12  12  64  3072  50257 yes    125198592 positions=2048 window=256 EleutherAI/gpt-neo-125m
gpt-neo-1.3b        gpt_neo     24  2048  16  16 128  8192  50257 yes   1315575808 positions=2048 window=256 EleutherAI/gpt-neo-1.3B
gpt-neo-2.7b        gpt_neo     32  2560  20  20 128 10240  50257 yes   2651307520 positions=2048 window=256 EleutherAI/gpt-neo-2.7B
gpt-j-6b            gptj        28  4096  16  16 256 16384  50400 no    6050882784 EleutherAI/gpt-j-6b
opt-125m            opt         12   768  12  12  64  3072  50272 yes    125239296 drop=0,0.1 positions=2048 facebook/opt-125m
opt-1.3b            opt         24  2048  32  32  64  8192  50272 yes   1315758080 drop=0,0.1 positions=2048 facebook/opt-1.3b
opt-2.7b            opt         32  2560  32  32  80 10240  50272 yes   2651596800 drop=0,0.1 positions=2048 facebook/opt-2.7b
opt-6.7b            opt         32  4096  32  32 128 16384  50272 yes   6658473984 drop=0,0.1 positions=2048 facebook/opt-6.7b
opt-13b             opt         40  5120  40  40 128 20480  50272 yes  12853473280 drop=0,0.1 positions=2048 facebook/opt-13b
opt-30b             opt         48  7168  56  56 128 28672  50272 yes  29974540288 drop=0,0.1 positions=2048 facebook/opt-30b
pythia-70m          gpt_neox     6   512   8   8  64  2048  50304 no      70426624 EleutherAI/pythia-70m EleutherAI/pythia-70m-deduped
pythia-160m         gpt_neox    12   768  12  12  64  3072  50304 no     162322944 EleutherAI/pythia-160m EleutherAI/pythia-160m-deduped
pythia-410m         gpt_neox    24  1024  16  16  64  4096  50304 no     405334016 EleutherAI/pythia-410m EleutherAI/pythia-410m-deduped
pythia-1b           gpt_neox    16  2048   8   8 256  8192  50304 no    1011781632 EleutherAI/pythia-1b EleutherAI/pythia-1b-deduped
pythia-1.4b         gpt_neox    24  2048  16  16 128  8192  50304 no    1414647808 EleutherAI/pythia-1.4b EleutherAI/pythia-1.4b-deduped
pythia-2.8b         gpt_neox    32  2560  32  32  80 10240  50304 no    2775208960 EleutherAI/pythia-2.8b EleutherAI/pythia-2.8b-deduped
pythia-6.9b         gpt_neox    32  4096  32  32 128 16384  50432 no    6857302016 EleutherAI/pythia-6.9b EleutherAI/pythia-6.9b-deduped
pythia-12b          gpt_neox    36  5120  40  40 128 20480  50688 no   11846072320 EleutherAI/pythia-12b EleutherAI/pythia-12b-deduped
gpt-neox-20b        gpt_neox    44  6144  64  64  96 24576  50432 no   20554567680 EleutherAI/gpt-neox-20b
pythia-14m          gpt_neox     6   128   4   4  32   512  50304 no      14067712 EleutherAI/pythia-14m count=cited
pythia-31m          gpt_neox     6   256   8   8  32  1024  50304 no      30494720 EleutherAI/pythia-31m count=cited
dolly-v2-3b         gpt_neox    32  2560  32  32  80 10240  50280 no    2775086080 databricks/dolly-v2-3b count=cited
redpajama-3b        gpt_neox    32  2560  32  32  80 10240  50432 no    2775864320 togethercomputer/RedPajama-INCITE-Base-3B-v1 togethercomputer/RedPajama-INCITE-Chat-3B-v1 togethercomputer/RedPajama-INCITE-Instruct-3B-v1 count=cited
redpajama-7b        gpt_neox    32  4096  32  32 128 16384  50432 no    6857302016 togethercomputer/RedPajama-INCITE-7B-Base togethercomputer/RedPajama-INCITE-7B-Chat togethercomputer/RedPajama-INCITE-7B-Instruct count=cited
stablelm-alpha-3b   gpt_neox    16  4096  32  32 128 16384  50688 no    3637321728 stabilityai/stablelm-base-alpha-3b stabilityai/stablelm-tuned-alpha-3b count=ranks
stablelm-alpha-7b   gpt_neox    16  6144  48  48 128 24576  50432 no    7868755968 stabilityai/stablelm-base-alpha-7b stabilityai/stablelm-tuned-alpha-7b count=ranks
polyglot-ko-1.3b    gpt_neox    24  2048  16  16 128  8192  30080 no    1331810304 EleutherAI/polyglot-ko-1.3b count=card
polyglot-ko-3.8b    gpt_neox    32  3072  24  24 128 12288  30080 no    3809974272 EleutherAI/polyglot-ko-3.8b count=card
polyglot-ko-5.8b    gpt_neox    28  4096  16  16 256 16384  30080 no    5885059072 EleutherAI/polyglot-ko-5.8b count=card
bloom-560m          bloom       24  1024  16  16  64  4096 250880 yes    559214592 bigscience/bloom-560m bigscience/bloomz-560m
bloom-1b1           bloom       24  1536  16  16  96  6144 250880 yes   1065314304 bigscience/bloom-1b1 bigscience/bloomz-1b1
bloom-1b7           bloom       24  2048  16  16 128  8192 250880 yes   1722408960 bigscience/bloom-1b7 bigscience/bloomz-1b7
bloom-3b            bloom       30  2560  32  32  80 10240 250880 yes   3002557440 bigscience/bloom-3b bigscience/bloomz-3b
bloom-7b1           bloom       30  4096  32  32 128 16384 250880 yes   7069016064 bigscience/bloom-7b1 bigscience/bloomz-7b1
bloom-176b          bloom       70 14336 112 112 128 57344 250880 yes 176247271424 bigscience/bloom bigscience/bloomz
falcon-7b           falcon      32  4544  71   1  64 18176  65024 yes   6921720704 tiiuae/falcon-7b tiiuae/falcon-7b-instruct
falcon-40b          falcon      60  8192 128   8  64 32768  65024 yes  41303293952 tiiuae/falcon-40b tiiuae/falcon-40b-instruct
falcon-180b         falcon      80 14848 232   8  64 59392  65024 no  179522565120 tiiuae/falcon-180B tiiuae/falcon-180B-chat count=cited
mpt-7b              mpt         32  4096  32  32 128 16384  50432 yes   6649286656 mosaicml/mpt-7b mosaicml/mpt-7b-instruct mosaicml/mpt-7b-chat mosaicml/mpt-7b-8k mosaicml/mpt-7b-storywriter
mpt-30b             mpt         48  7168  64  64 112 28672  50432 yes  29957200896 mosaicml/mpt-30b mosaicml/mpt-30b-instruct mosaicml/mpt-30b-chat
phi-1.5             phi         24  2048  32  32  64  8192  51200 no    1418270720 microsoft/phi-1_5
phi-1               phi         24  2048  32  32  64  8192  51200 no    1418270720 microsoft/phi-1 count=cited
phi-2               phi         32  2560  32  32  80 10240  51200 no    2779683840 drop=0,0.1 microsoft/phi-2
starcoder2-3b       starcoder2  30  3072  24   2 128 12288  49152 yes   3030371328 drop=0.1,0.1 window=4096 bigcode/starcoder2-3b
starcoder2-7b       starcoder2  32  4608  36   4 128 18432  49152 yes   7173923840 drop=0.1,0.1 window=4096 bigcode/starcoder2-7b
starcoder2-15b      starcoder2  40  6144  48   4 128 24576  49152 no   15957889024 drop=0.1,0.1 window=4096 bigcode/starcoder2-15b
"""  # noqa: E501 - a row is a line

EXPERTS = """
# name              block    layers hidden heads kv head_dim ffn vocab tied parameters  options and ids
mixtral-8x7b        mixtral     32  4096  32   8 128 14336  32000 no   46702792704 experts=8 active=2 expert_ffn=14336 mistralai/Mixtral-8x7B-v0.1 mistralai/Mixtral-8x7B-Instruct-v0.1 argilla/notux-8x7b-v1
mixtral-8x7b-hermes mixtral     32  4096  32   8 128 14336  32002 no   46702809088 experts=8 active=2 expert_ffn=14336 NousResearch/Nous-Hermes-2-Mixtral-8x7B-DPO NousResearch/Nous-Hermes-2-Mixtral-8x7B-SFT cognitivecomputations/dolphin-2.5-mixtral-8x7b count=cited
mixtral-8x22b       mixtral     56  6144  48   8 128 16384  32000 no  140620634112 experts=8 active=2 expert_ffn=16384 mistralai/Mixtral-8x22B-v0.1 mistral-community/Mixtral-8x22B-v0.1 HuggingFaceH4/zephyr-orpo-141b-A35b-v0.1 alpindale/WizardLM-2-8x22B
mixtral-8x22b-it    mixtral     56  6144  48   8 128 16384  32768 no  140630071296 experts=8 active=2 expert_ffn=16384 mistralai/Mixtral-8x22B-Instruct-v0.1
qwen3-30b-a3b       qwen3_moe   48  2048  32   4 128  6144 151936 no   30532122624 experts=128 active=8 expert_ffn=768 Qwen/Qwen3-30B-A3B Qwen/Qwen3-30B-A3B-Base Qwen/Qwen3-30B-A3B-Instruct-2507 Qwen/Qwen3-30B-A3B-Thinking-2507 unsloth/Qwen3-30B-A3B unsloth/Qwen3-30B-A3B-Instruct-2507
qwen3-235b-a22b     qwen3_moe   94  4096  64   4 128 12288 151936 no  235093634560 experts=128 active=8 expert_ffn=1536 Qwen/Qwen3-235B-A22B Qwen/Qwen3-235B-A22B-Instruct-2507 Qwen/Qwen3-235B-A22B-Thinking-2507
qwen3-coder-30b-a3b qwen3_moe   48  2048  32   4 128  5472 151936 no   30532122624 experts=128 active=8 expert_ffn=768 Qwen/Qwen3-Coder-30B-A3B-Instruct unsloth/Qwen3-Coder-30B-A3B-Instruct count=cited
qwen3-coder-480b-a35b qwen3_moe 62  6144  96   8 128  8192 151936 no  480154875392 experts=160 active=8 expert_ffn=2560 Qwen/Qwen3-Coder-480B-A35B-Instruct count=cited
gpt-oss-20b         gpt_oss     24  2880  64   8  64  2880 201088 no   20914757184 experts=32 active=4 expert_ffn=2880 window=128 openai/gpt-oss-20b unsloth/gpt-oss-20b unsloth/gpt-oss-20b-BF16
gpt-oss-120b        gpt_oss     36  2880  64   8  64  2880 201088 no  116829156672 experts=128 active=4 expert_ffn=2880 window=128 openai/gpt-oss-120b unsloth/gpt-oss-120b
deepseek-v2-lite    deepseek_v2 27  2048  16  16 192 10944 102400 no   15706484224 experts=64 active=6 expert_ffn=1408 shared=2 dense=1 mla=0,512,64,128,128 deepseek-ai/DeepSeek-V2-Lite deepseek-ai/DeepSeek-V2-Lite-Chat
deepseek-moe-16b    deepseek    28  2048  16  16 128 10944 102400 no   16375728128 experts=64 active=6 expert_ffn=1408 shared=2 dense=1 deepseek-ai/deepseek-moe-16b-base deepseek-ai/deepseek-moe-16b-chat count=cited
deepseek-coder-v2-lite deepseek_v2 27 2048 16 16 192 10944 102400 no   15706484224 experts=64 active=6 expert_ffn=1408 shared=2 dense=1 mla=0,512,64,128,128 deepseek-ai/DeepSeek-Coder-V2-Lite-Base deepseek-ai/DeepSeek-Coder-V2-Lite-Instruct count=cited
deepseek-v2         deepseek_v2 60  5120 128 128 192 12288 102400 no  235741434880 experts=160 active=6 expert_ffn=1536 shared=2 dense=1 mla=1536,512,64,128,128 deepseek-ai/DeepSeek-V2 deepseek-ai/DeepSeek-V2-Chat deepseek-ai/DeepSeek-V2.5 deepseek-ai/DeepSeek-V2.5-1210 deepseek-ai/DeepSeek-Coder-V2-Base deepseek-ai/DeepSeek-Coder-V2-Instruct
deepseek-v3         deepseek_v3 61  7168 128 128 192 18432 129280 no  671026419200 experts=256 active=8 expert_ffn=2048 shared=1 dense=3 mla=1536,512,64,128,128 deepseek-ai/DeepSeek-V3 deepseek-ai/DeepSeek-R1 deepseek-ai/DeepSeek-V3-Base deepseek-ai/DeepSeek-V3-0324 deepseek-ai/DeepSeek-V3.1 deepseek-ai/DeepSeek-V3.1-Base deepseek-ai/DeepSeek-R1-Zero deepseek-ai/DeepSeek-R1-0528 microsoft/MAI-DS-R1
"""  # noqa: E501 - a row is a line

ENCODERS = """
# name              block    layers hidden heads kv head_dim ffn vocab tied parameters  options and ids
bert-base           bert        12   768  12  12  64  3072  30522 yes    109514298 drop=0.1,0.1 positions=512 google-bert/bert-base-uncased
bert-large          bert        24  1024  16  16  64  4096  30522 yes    335174458 drop=0.1,0.1 positions=512 google-bert/bert-large-uncased
bert-base-cased     bert        12   768  12  12  64  3072  28996 yes    108340804 drop=0.1,0.1 positions=512 google-bert/bert-base-cased count=pretraining
bert-base-multi     bert        12   768  12  12  64  3072 119547 yes    177974523 drop=0.1,0.1 positions=512 google-bert/bert-base-multilingual-cased count=pretraining
roberta-base        roberta     12   768  12  12  64  3072  50265 yes    124697433 drop=0.1,0.1 positions=514 FacebookAI/roberta-base
roberta-large       roberta     24  1024  16  16  64  4096  50265 yes    355412057 drop=0.1,0.1 positions=514 FacebookAI/roberta-large
distilroberta-base  roberta      6   768  12  12  64  3072  50265 yes     82170201 drop=0.1,0.1 positions=514 distilbert/distilroberta-base count=cited
xlm-roberta-base    xlm-roberta 12   768  12  12  64  3072 250002 yes    278295186 drop=0.1,0.1 positions=514 FacebookAI/xlm-roberta-base
xlm-roberta-large   xlm-roberta 24  1024  16  16  64  4096 250002 yes    560142482 drop=0.1,0.1 positions=514 FacebookAI/xlm-roberta-large
t5-small            t5           6   512   8   8  64  2048  32128 yes     60506624 drop=0.1,0.1 encoder=6 google-t5/t5-small
t5-base             t5          12   768  12  12  64  3072  32128 yes    222903552 drop=0.1,0.1 encoder=12 google-t5/t5-base
t5-large            t5          24  1024  16  16  64  4096  32128 yes    737668096 drop=0.1,0.1 encoder=24 google-t5/t5-large
t5-3b               t5          24  1024  32  32 128 16384  32128 yes   2851598336 drop=0.1,0.1 encoder=24 google-t5/t5-3b
t5-11b              t5          24  1024 128 128 128 65536  32128 yes  11307321344 drop=0.1,0.1 encoder=24 google-t5/t5-11b
vit-b-16            vit         12   768  12  12  64  3072   1000 no      86567656 positions=197 head=classification google/vit-base-patch16-224
vit-l-16            vit         24  1024  16  16  64  4096   1000 no     304326632 positions=197 head=classification google/vit-large-patch16-224
"""  # noqa: E501 - a row is a line
