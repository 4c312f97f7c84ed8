"""The dialects that the lowering reads and writes: `tt` as Triton prints it, `tile` for structured form.

Input: text. Output: dialects, traits, literals, the parser.
"""
