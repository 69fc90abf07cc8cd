# check=skip=SecretsUsedInArgOrEnv
# (The check above takes MIRRORGRAPH_AUTH for a secret by its name; it says how callers sign in.)

FROM node:20-slim AS explorer
WORKDIR /build
COPY explorer/package.json explorer/package-lock.json explorer/.npmrc ./
RUN npm ci --ignore-scripts
COPY explorer/ ./
RUN npm run build

FROM python:3.11-slim AS packages
WORKDIR /build
RUN python -m venv /venv
COPY requirements.lock ./
# The lock is complete, so nothing is resolved here; the slim image has no compiler for a source package.
RUN /venv/bin/pip install --no-cache-dir --no-deps --require-hashes --only-binary=:all: -r requirements.lock

FROM python:3.11-slim
# A fixed number, so that a volume's owner and a cluster's "run as" rule can name it.
RUN groupadd --gid 10001 mirrorgraph \
    && useradd --uid 10001 --gid mirrorgraph --create-home --shell /usr/sbin/nologin mirrorgraph
WORKDIR /app
# Files of users live here, and the embedded database when no DATABASE_URL is given; the code beside it stays read-only.
RUN install --directory --owner=mirrorgraph --group=mirrorgraph --mode=700 data
COPY --from=packages /venv /venv
COPY alembic.ini ./
COPY migrations/ migrations/
COPY db/ db/
COPY services/ services/
COPY resolvers/ resolvers/
COPY schema/ schema/
COPY --from=explorer /build/dist/ explorer/dist/

# Inside a container the server must listen on every interface, and so it must ask who is calling.
ENV PATH=/venv/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    MIRRORGRAPH_HOST=0.0.0.0 \
    MIRRORGRAPH_AUTH=token
USER 10001:10001
EXPOSE 8000
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s --retries=3 \
    CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8000/readyz', timeout=4)"]
CMD ["python", "-m", "schema.cli", "serve"]
