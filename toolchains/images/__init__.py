"""Build the layers of images: the base image of locked packages, and the layer that a Dockerfile adds.

Input: locked files and Dockerfiles. Output: normalised images in the engine, with the same bytes for the same inputs.
"""
