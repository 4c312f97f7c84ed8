"""State what an artifact consists of, as a bill of materials: its components, their licences and their origins.

Input: locked files, patch series, digests of sources. Output: what an artifact consists of and its licences, in
CycloneDX and SPDX.
"""
