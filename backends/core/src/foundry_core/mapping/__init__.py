"""The mappings: how the programs of a kernel in structured form become code, one package for each kind of device.

Input: a kernel in structured form, a device's description. Output: code for work-items, work-groups, invocations or
tasklets.
"""
