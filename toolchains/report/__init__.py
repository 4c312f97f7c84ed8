"""The verb report: one page about what the runs of this checkout found, from build/results.

Input: `build/results`, and the report before. Output: one web page.
"""
