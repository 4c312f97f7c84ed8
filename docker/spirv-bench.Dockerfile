# What the variant spirv-bench has beside spirv's: these lines follow those of spirv.Dockerfile.

# Debian's torch is looked for after what is installed in /opt/foundry, whose NumPy it takes.
RUN echo /usr/lib/python3/dist-packages \
    > "$(python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/beside.pth"
