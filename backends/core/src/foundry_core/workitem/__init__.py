"""Structured form to loops and vectors: one program instance is one work-item, its tiles live in registers and private memory."""
