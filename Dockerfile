# One image for every service: `docker build -t penstock .`, `docker run penstock SERVICE` (docs/operations.md).
ARG BASE_IMAGE=debian:trixie-slim

# Compiles the native module. Only native/, CMakeLists.txt and the versions of pyproject.toml repeat these steps.
FROM ${BASE_IMAGE} AS build
SHELL ["/bin/bash", "-o", "pipefail", "-c"]
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install -y --no-install-recommends \
        ca-certificates cmake g++ git libibverbs-dev ninja-build python3-dev python3-venv \
    && rm -rf /var/lib/apt/lists/*
RUN python3 -m venv /opt/build && python3 -m venv /opt/penstock
WORKDIR /src
COPY pyproject.toml ./
RUN versions='import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["build-system"]["requires"], sep="\n")' \
    && /opt/build/bin/pip install --no-cache-dir -r <(python3 -c "$versions")
COPY CMakeLists.txt ./
COPY native native
RUN cmake -S . -B /native -G Ninja -DPython_EXECUTABLE=/opt/build/bin/python \
    && cmake --build /native --target _native
# The packages, then Penstock itself: a change of a Python file repeats only the last step.
RUN versions='import tomllib; p = tomllib.load(open("pyproject.toml", "rb"))["project"]; print(*p["dependencies"], *p["optional-dependencies"]["cluster"], *p["optional-dependencies"]["protobuf"], sep="\n")' \
    && /opt/penstock/bin/pip install --no-cache-dir -r <(python3 -c "$versions")
COPY LICENSE README.md ./
COPY schemas schemas
COPY examples examples
COPY libs libs
COPY services services
RUN /opt/build/bin/pip wheel --no-build-isolation --no-deps --wheel-dir /dist \
        --config-settings=cmake.define.PENSTOCK_BUILT_MODULE="$(echo /native/_native*.so)" . \
    && /opt/penstock/bin/pip install --no-cache-dir --no-deps /dist/*.whl

FROM ${BASE_IMAGE}
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install -y --no-install-recommends ca-certificates libibverbs1 python3 tini \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --uid 10001 --create-home --home-dir /data penstock
COPY --from=build /opt/penstock /opt/penstock
ENV PATH=/opt/penstock/bin:$PATH \
    PENSTOCK_HTTP_HOST=0.0.0.0 \
    PENSTOCK_HTTP_PORT=8080
USER 10001
WORKDIR /data
VOLUME /data
EXPOSE 8080 7879 7880 7881
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s \
    CMD ["python3", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8080/health/live', timeout=4)"]
ENTRYPOINT ["tini", "--", "penstock"]
CMD ["--help"]
