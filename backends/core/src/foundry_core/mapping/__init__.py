"""The mappings: how the programs of a kernel in structured form become code, one package for each kind of device."""
