"""Read the configuration, which is in TOML files, strictly.

Input: the TOML files. Output: frozen objects, one class for each kind of file. An unknown key, a wrong type or a
missing value is refused, with the file, the path of the key and what was expected. The JSON Schemas in
toolchains/schemas are written from the same classes (schema.py).
"""
