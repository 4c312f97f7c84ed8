"""State what an artifact consists of, as a bill of materials: its components, their licences and their origins.

Input: locked files in the store, patch series, and digests of sources. Output: a Component with all its parts, and
documents about it in CycloneDX's and SPDX's JSON, the same bytes for the same inputs.
"""
