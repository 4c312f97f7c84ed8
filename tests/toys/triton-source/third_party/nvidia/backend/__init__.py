name = "cuda"
