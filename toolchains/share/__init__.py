"""Share images through a registry of the OCI distribution specification: push, pull, and `build --from`.

Input: an image, documents about it, a registry. Output: the image in the registry or in another engine; what somebody
signed of it.

    layers, configuration, manifest    the engine moves them by its own API, with the user's credentials. It compresses
                                       the layers, so the manifest's digest is the engine's. The digest of the
                                       configuration is not: it is the image's ID, names the layers, and is compared
    bills of materials, statements     registry.py sends them by HTTP, as manifests whose `subject` is the image's. A
                                       registry without the API for referrers, such as Debian's docker-registry, gets
                                       the index of the specification's other way, the tag sha256-DIGEST

HTTP is done by requests, which the engine's client needs anyway. oras, the package for this, reads files below the
current folder only and has no referrers.

How an image is pushed:
    1. the image is saved, and its layers are read: no file may be a vendor's (vendor.py). Its ID is computed
    2. what the registry has under its name, which is the digest of its inputs, is never replaced. If it is this image,
       only documents are added: several builders sign one manifest
    3. the registry's manifest must name the ID, and its referrers each document
A push that broke off goes on when it is typed again: finished layers and documents are not sent again.

How an image is pulled:
    1. the tag gives a manifest, and that the ID of the image that would come. Nothing of the image is fetched yet
    2. a trusted key must have signed a statement about this ID, for the name, the lock, the plugins and Triton of this
       checkout. The published ID must be the same, if there is one
    3. the engine pulls by the manifest's digest. The ID of the image that arrived must be the signed one
    4. the image gets the names of a local build, the store records that it may be used, and the statements are kept.
       What is in its layers is not recorded: `verify` compares a pulled image with the statement, as a whole
A pull that broke off begins again with the layers that the engine had not finished.
"""
