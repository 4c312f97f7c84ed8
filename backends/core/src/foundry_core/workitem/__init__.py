"""Structured form to loops and vectors: a program is one work-item, its tiles live in registers and private memory."""
