"""The container engine, and what the machine must have to run one.

Input: Docker's API. Output: images and containers. No other package talks to the engine.
"""
