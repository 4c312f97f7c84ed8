"""The mapping for DPUs: one program is the work of one tasklet, tiles come and go by DMA."""
