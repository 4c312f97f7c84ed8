"""Build the layers of images: the base image of locked packages, and the layer that a Dockerfile adds.

Input: locked files and Dockerfiles. Output: normalised image layers: the same bytes for the same inputs.
"""
