"""The parts of torch_load.py. Only models.py and training.py need PyTorch."""
