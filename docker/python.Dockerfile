# What every target has in common: the locked Python packages and the patched Triton in one environment, /opt/foundry.
# Written for the classic builder, which every engine has. It runs without a network: all that is installed lies in the
# context, put there by toolchains/assembly/target_image.py from the lock.
ARG BASE
FROM ${BASE} AS install

# With a fixed date, the byte code that pip compiles names its source by hash; what pip itself imports leaves none behind.
ARG SOURCE_DATE_EPOCH
ENV PYTHONDONTWRITEBYTECODE=1

# An environment of its own, because Debian's Python lets no installer into its folders.
RUN python3 -m venv /opt/foundry
COPY wheels/ /wheels/
RUN /opt/foundry/bin/pip install --no-index --no-deps --no-cache-dir --disable-pip-version-check \
    --find-links /wheels --require-hashes --requirement /wheels/requirements.txt
# Packages' own tests, of which pandas alone has 46 MB.
RUN rm -rf /opt/foundry/lib/python*/site-packages/*/tests

# A second stage, so that the wheels themselves take no space in the image.
FROM ${BASE}
COPY --from=install /opt/foundry /opt/foundry
ENV PATH=/opt/foundry/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
