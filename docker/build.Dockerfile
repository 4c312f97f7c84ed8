# Where native parts are built: compilers from the base image, and the locked Conan, CMake and Ninja in /opt/foundry.
# It runs without a network: all that is installed lies in the context, put there by toolchains/artifacts/native.py from the lock.
ARG BASE
FROM ${BASE} AS install

ARG SOURCE_DATE_EPOCH
ENV PYTHONDONTWRITEBYTECODE=1

RUN python3 -m venv /opt/foundry
COPY wheels/ /wheels/
RUN /opt/foundry/bin/pip install --no-index --no-deps --no-cache-dir --disable-pip-version-check \
    --find-links /wheels --require-hashes --requirement /wheels/requirements.txt

# After the wheels, among which is the setuptools that these are built with.
COPY sdists/ /sdists/
RUN /opt/foundry/bin/pip install --no-index --no-deps --no-cache-dir --disable-pip-version-check \
    --no-build-isolation /sdists/*

# A second stage, so that what was installed from takes no space in the image.
FROM ${BASE}
COPY --from=install /opt/foundry /opt/foundry
ENV PATH=/opt/foundry/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
