"""Read the configuration, the TOML files, strictly.

Input: the files in toolchains/{pins,targets,builders,upstreams,sdks}. Output: frozen objects, one class a kind of file.
A file is read strictly: an unknown key, a wrong type or a missing value is refused with the file, the path of the key
and what was expected. The JSON Schemas in toolchains/schemas are made from the same classes (schema.py).
"""
