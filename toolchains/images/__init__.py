"""Make the layers of images: the base image of locked packages, and what a Dockerfile adds to an image.

Input: locked files and Dockerfiles. Output: normalised images in the engine, the same bytes for the same inputs.
"""
