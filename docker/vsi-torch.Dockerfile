# What the variant vsi-torch has beside vsi's: these lines follow those of vsi.Dockerfile.

# The files of torch that patches/torch changes, over those of the package.
ADD parts/python3-torch.tar /

# torch's device vsi where VeriSilicon's own, vpex, is not installed.
ADD parts/vsi-vpex-reference.tar /opt/vpex-reference/

# Looked in after what is installed in /opt/foundry, in this order: a vpex there is the one that is used.
RUN printf '%s\n' /usr/lib/python3/dist-packages /opt/vpex-reference/python \
    > "$(python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/beside.pth"
