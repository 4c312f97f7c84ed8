"""The mapping to work-items: one work-item executes a program; its tiles are in registers and private memory."""
