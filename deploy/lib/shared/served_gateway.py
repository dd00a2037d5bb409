"""`wakegate serve` on one state folder, started and ended repeatedly."""

import json
import os

from shared import processes


class ServedGateway(processes.Program):
    """A gateway; `edge`, `admin` and `plain` are the addresses of the current process."""

    edge = admin = plain = ""

    def __init__(self, program: str, folder: str, settings: dict, state: str | None = None):
        """Settings are added to the configuration; `state` is `folder`/state by default."""
        self.state = state or os.path.join(folder, "state")
        file, certificates = (os.path.join(folder, name) for name in ("wakegate.json5", "certificates"))
        names = ("ca.pem", "server.key", "server.pem")
        self.ca, key, certificate = (os.path.join(certificates, name) for name in names)
        super().__init__([program, "serve", "--config", file], os.path.join(folder, "gateway.log"))
        if not os.path.exists(certificates):
            # `serve` only reads certificates; `dev` makes them.
            command = processes.development(program, certificates, "--set", "store=memory")
            with processes.Program(command, self.log) as maker:
                maker.start()
        configuration = {
            "edge": "127.0.0.1:0", "admin": "127.0.0.1:0", "state": self.state, "store": "sqlite", "drainTimeout": 1,
            "tls": {"certificate": certificate, "key": key}, **settings,
        }  # fmt: skip
        with open(file, "w", encoding="utf-8") as output:
            json.dump(configuration, output, indent=2)

    def start(self, environment: dict[str, str] | None = None) -> float:
        took = super().start(environment)
        self.edge, self.admin, self.plain = (self.ready.get(name) or "" for name in ("edge", "admin", "plain"))
        return took
