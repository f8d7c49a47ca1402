# The image of vcjob's operator and webhook. docs/operator.md tells how to install them.
#
#     docker build -t vcjob:0.1.0 .
#
# A plugin of your own goes into an image on top of it; in its directory (as examples/plugin is one):
#
#     FROM python:3.12-slim AS plugin
#     COPY . /source
#     RUN python -m pip install --no-cache-dir --no-deps --target /plugin /source
#     FROM vcjob:0.1.0
#     COPY --from=plugin /plugin /opt/vcjob/lib/python3.12/site-packages

# First stage: vcjob and what it needs are installed into /opt/vcjob. Nothing else of this stage is
# kept: not the source, not pip, not its cache.
FROM python:3.12-slim AS build
WORKDIR /source
COPY pyproject.toml README.md LICENSE ./
COPY src ./src
# --without-pip, and the pip outside installs into it: the environment itself needs none.
RUN python -m venv --without-pip /opt/vcjob \
    && python -m pip --python /opt/vcjob/bin/python install --no-cache-dir '.[operator]'

# Second stage: the same Python, and the finished directory. It must stay at the same place, because
# scripts in it name it.
FROM python:3.12-slim
RUN python -m pip uninstall --yes --root-user-action=ignore pip
COPY --from=build /opt/vcjob /opt/vcjob
# The file system is read-only in the Deployments, so Python must not try to write what it compiles
# (pip has compiled everything already), and logs must not wait in a buffer.
ENV PATH=/opt/vcjob/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1
# A number, so that Kubernetes can see that it is not root (runAsNonRoot); nobody else's number.
USER 65532:65532
ENTRYPOINT ["vcjob"]
CMD ["--help"]
