eval_interval = 100
devices = 1

# what is trained
learning_rate = 3e-4
batch_size = 64
micro_batch_size = 2  # fits
lora_r = 8
lora_dropout = 0.05
lora_query = True
lora_key = False
lora_value = True
lora_projection = True
lora_mlp = False
lora_head = False
