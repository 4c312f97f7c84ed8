"""The mapping to DPUs: one tasklet executes a program; DMA moves tiles between MRAM and WRAM."""
