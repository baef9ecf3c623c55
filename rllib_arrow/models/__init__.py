"""The world model's parts: plain PyTorch modules that know nothing of Ray."""
