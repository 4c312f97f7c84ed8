import torch


def test_never_runs():
    torch.zeros(1)
