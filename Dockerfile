# An image of kreassign: no root, no shell needed to use it, nothing written but in its home and /tmp.
#
#   docker build -t kreassign .
#   docker build -t kreassign --build-arg EXTRAS=[web] .
#
# docs/guides/containers.md says how to run it, and how on Kubernetes.
FROM python:3.11-slim-bookworm AS build
# Extras to install, as pip names them: [web], [msk], [web,msk]. Those that compile or need Java are for images of your own.
ARG EXTRAS=""
WORKDIR /src
COPY pyproject.toml README.md LICENSE ./
COPY locks ./locks
COPY src ./src
# Nothing whose hash is not in a lock. pip cannot say so of the parts of what is built from a directory, as this is; uv can.
RUN pip install --no-cache-dir --disable-pip-version-check --require-hashes -r locks/build.lock \
 && python -m venv --without-pip /opt/kreassign \
 && uv pip install --no-cache --python /opt/kreassign/bin/python -b locks/build.lock -c locks/product.lock ".${EXTRAS}"

FROM python:3.11-slim-bookworm
COPY --from=build /opt/kreassign /opt/kreassign
# Journals of runs are in the home: mount a volume there. Compiled loops of the planner are in /tmp, which may be empty.
ENV PATH=/opt/kreassign/bin:$PATH \
    HOME=/var/lib/kreassign \
    KREASSIGN_STATE_DIR=/var/lib/kreassign/state \
    NUMBA_CACHE_DIR=/tmp/kreassign \
    PYTHONDONTWRITEBYTECODE=1
RUN groupadd --system --gid 65532 kreassign \
 && useradd --system --uid 65532 --gid 65532 --no-log-init --create-home --home-dir /var/lib/kreassign kreassign
USER 65532:65532
WORKDIR /var/lib/kreassign
ENTRYPOINT ["kreassign"]
CMD ["--help"]
