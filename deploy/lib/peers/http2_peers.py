"""nginx and h2o, answering a POST with 200 and no body, each with one worker, in cleartext and over TLS."""

import os

from shared import processes

STREAMS_MAX = 256
HEADS = {"h2c": "http", "TLS": "https"}


class Peer(processes.Server):
    """A server with an address for each scheme; `uris` names the form of path that it answers."""

    name: str
    uris: str

    def __init__(self, folder: str, prefix: list[str], key: str, certificate: str):
        self.folder, self.key, self.certificate = folder, key, certificate
        self.ports = {"h2c": processes.free_port(), "TLS": processes.free_port()}
        self.bases = {scheme: f"{HEADS[scheme]}://127.0.0.1:{port}" for scheme, port in self.ports.items()}
        path = os.path.join(folder, f"{self.name}.conf")
        with open(path, "w", encoding="utf-8") as file:
            file.write(self.configuration())
        super().__init__([*prefix, *self.command(path)], os.path.join(folder, f"{self.name}.log"))
        for port in self.ports.values():
            self.wait_until(self.name, lambda port=port: processes.accepts(port))

    def configuration(self) -> str:
        raise NotImplementedError

    def command(self, path: str) -> list[str]:
        raise NotImplementedError


class Nginx(Peer):
    """nginx as one process without a master; `return 200` is the least it can do with a request."""

    name, uris = "nginx", "gateway"

    def configuration(self) -> str:
        kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
        temporary = "\n  ".join(f"{kind}_temp_path {self.folder}/{kind};" for kind in kinds)
        return f"""daemon off;
master_process off;
worker_processes 1;
pid {self.folder}/nginx.pid;
error_log stderr;
events {{ worker_connections 16384; multi_accept on; }}
http {{
  access_log off;
  {temporary}
  keepalive_requests 1000000000;
  http2_max_concurrent_streams {STREAMS_MAX};
  ssl_certificate {self.certificate};
  ssl_certificate_key {self.key};
  ssl_protocols TLSv1.3;
  server {{
    listen 127.0.0.1:{self.ports["h2c"]} http2;
    listen 127.0.0.1:{self.ports["TLS"]} ssl http2;
    location / {{ return 200; }}
  }}
}}
"""

    def command(self, path: str) -> list[str]:
        return ["nginx", "-e", "stderr", "-p", self.folder, "-c", path]


class H2o(Peer):
    """h2o with one thread. It takes no POST for a file, so that one is redirected, within the server, to an empty file:
    of what its configuration can do, this costs it the least; an answer written in mruby takes a third longer."""

    name, uris = "h2o", "nghttpd"

    def configuration(self) -> str:
        files = os.path.join(self.folder, "h2o-files")
        os.mkdir(files)
        with open(os.path.join(files, "device"), "wb"):
            pass
        # Started by root, it would drop to nobody, who may not read the files of the bench.
        user = "user: root\n" if os.geteuid() == 0 else ""
        return f"""{user}num-threads: 1
http2-max-concurrent-requests-per-connection: {STREAMS_MAX}
file.etag: OFF
listen: {{ host: 127.0.0.1, port: {self.ports["h2c"]} }}
listen:
  host: 127.0.0.1
  port: {self.ports["TLS"]}
  ssl: {{ certificate-file: {self.certificate}, key-file: {self.key}, ocsp-update-interval: 0 }}
hosts:
  127.0.0.1:
    paths:
      /3/device:
        redirect: {{ url: "http://127.0.0.1/files/device", internal: YES, status: 302 }}
      /files:
        file.dir: {files}
"""

    def command(self, path: str) -> list[str]:
        return ["h2o", "-c", path]
