"""aapns: certificates alone, h2 of its own major version, a pool of connections that needs ALPN."""

from aapns import errors
from aapns.api import Server
from aapns.models import Alert, Notification

from scenes import Answer, Client, play, refused, settings


class AapnsClient(Client):
    without_answer = (errors.Closed, errors.Timeout, errors.StreamReset, OSError)

    async def begin(self):
        server = Server(settings.certificate, settings.host, port=settings.port, ca_file=settings.ca)
        self.apns = await server.create_client()

    async def attempt(self, device):
        # The library requires an alert, so content-available is sent in addition to it.
        notification = Notification(Alert("news"), content_available=True)
        try:
            await self.apns.send_notification(device, notification, topic=settings.topic)
        except errors.ResponseError as error:
            return refused(error.reason)
        return Answer(200)

    async def close(self):
        await self.apns.close()


play(AapnsClient)
