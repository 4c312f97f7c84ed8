# What the variant spirv-torch has beside spirv's: these lines follow those of spirv.Dockerfile.

# The files of torch that patches/torch-spirv changes, over those of the package.
ADD parts/python3-torch.tar /

# Debian's torch is looked for after what is installed in /opt/foundry, whose NumPy it takes.
RUN echo /usr/lib/python3/dist-packages \
    > "$(python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/beside.pth"
