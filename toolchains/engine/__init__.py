"""Talk to the container engine, and check what the machine needs to run one.

Input: Docker's API. Output: images and containers; nothing else talks to the engine.
"""
