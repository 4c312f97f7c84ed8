# What the variant dpu-dev has beside dpu's: these lines follow those of dpu.Dockerfile.

# cc is Debian's gcc, as gcc and g++ are; and pkg-config finds the SDK's dpu.pc.
RUN rm /usr/local/bin/cc
ENV PKG_CONFIG_PATH=${SDK_HOME}/share/pkgconfig
