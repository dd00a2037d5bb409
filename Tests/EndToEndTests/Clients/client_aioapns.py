"""aioapns: several streams on few connections, no ALPN, no :authority; retries an unanswered push automatically."""

import ssl

import aioapns
import aioapns.connection
import aioapns.exceptions
import h2.exceptions

from scenes import Answer, Client, late_clock, play, settings


class AioapnsClient(Client):
    # Between GOAWAY and the end of its connection, the library still sends on it, which h2 refuses.
    without_answer = (aioapns.exceptions.MaxAttemptsExceeded, h2.exceptions.ProtocolError)

    def __init__(self):
        aioapns.connection.time = late_clock
        # The only place where the library accepts the address of its server.
        protocol = aioapns.connection.APNsProductionClientProtocol
        protocol.APNS_SERVER = settings.host
        protocol.APNS_PORT = settings.port
        context = ssl.create_default_context(cafile=settings.ca)
        if settings.key:
            with open(settings.key) as file:
                proof = {"key": file.read(), "key_id": settings.keyID, "team_id": settings.team}
        else:
            proof = {"client_cert": settings.certificate}
        self.apns = aioapns.APNs(topic=settings.topic, ssl_context=context, max_connections=2, **proof)

    async def attempt(self, device):
        message = {"aps": {"content-available": 1}}
        request = aioapns.NotificationRequest(
            device_token=device, message=message, priority=5, push_type=aioapns.PushType.BACKGROUND
        )
        result = await self.apns.send_notification(request)
        return Answer(int(result.status), result.description, result.timestamp)

    async def close(self):
        self.apns.pool.close()


play(AioapnsClient)
