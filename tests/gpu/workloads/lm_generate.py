"""A transformers language model with random weights generates text, greedily."""

import os

os.environ["HF_HUB_OFFLINE"] = "1"

import torch                                            # noqa: E402
from transformers import LlamaConfig, LlamaForCausalLM  # noqa: E402

import on_torch                                         # noqa: E402
import protocol                                         # noqa: E402

VOCABULARY = 8192
NEW_TOKENS = 64


def generate(model, prompts):
    return model.generate(prompts, attention_mask=torch.ones_like(prompts), do_sample=False,
                          max_new_tokens=NEW_TOKENS, min_new_tokens=NEW_TOKENS, pad_token_id=0)


def main():
    options = protocol.arguments(__doc__)
    on_torch.start()
    config = LlamaConfig(vocab_size=VOCABULARY, hidden_size=512, intermediate_size=1536,
                         num_hidden_layers=6, num_attention_heads=8, num_key_value_heads=4,
                         max_position_embeddings=512)
    model = LlamaForCausalLM(config).to("cuda", dtype=torch.bfloat16).eval()
    prompts = on_torch.classes(4 * 32, VOCABULARY).view(4, 32)
    with torch.inference_mode():
        first = generate(model, prompts)
        on_torch.settle()
        protocol.hold()
        on_torch.ask_too_much(options.quota)
        second = generate(model, first[:, -32:])
        logits = model(second).logits[:, -1].float()
    on_torch.end(first, second, logits)


main()
