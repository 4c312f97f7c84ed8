"""The mapping to work-items: a program is one work-item, its tiles live in registers and private memory."""
