# What the variant dpu-dev has beside dpu's: these lines follow those of dpu.Dockerfile.

# cc is Debian's gcc, as gcc and g++ are; pkg-config finds the SDK's dpu.pc, and Python its module dpu.
RUN rm /usr/local/bin/cc
ENV PKG_CONFIG_PATH=${SDK_HOME}/share/pkgconfig PYTHONPATH=${SDK_HOME}/share/upmem/python
