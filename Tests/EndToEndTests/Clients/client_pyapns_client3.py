"""pyapns-client3: httpx on one connection; an iat with a fraction; resets its connection and retries on 5xx."""

import os

import pyapns_client
import pyapns_client.auth
import pyapns_client.base

from scenes import Answer, Client, late_clock, play, settings


class PyapnsClient(Client):
    without_answer = (pyapns_client.APNSConnectionException,)

    def __init__(self):
        pyapns_client.auth.time = late_clock
        modes = pyapns_client.base.BaseAPNSClient.BASE_URLS
        modes["prod"] = f"https://{settings.host}:{settings.port}"
        if settings.key:
            proof = pyapns_client.TokenBasedAuth(settings.key, settings.keyID, settings.team)
        else:
            proof = pyapns_client.CertificateBasedAuth(settings.certificate)
        # With root_cert_path, httpx 0.28 would trust the authority but would not send the client's certificate.
        os.environ["SSL_CERT_FILE"] = settings.ca
        self.client = pyapns_client.AsyncAPNSClient("prod", proof)

    async def attempt(self, device):
        payload = pyapns_client.IOSPayload(content_available=True)
        notification = pyapns_client.IOSNotification(
            payload=payload,
            topic=settings.topic,
            priority=pyapns_client.IOSNotification.PRIORITY_LOW,
            push_type=pyapns_client.IOSNotification.PUSH_TYPE_BACKGROUND,
        )
        try:
            await self.client.push(notification, device)
        except pyapns_client.APNSConnectionException:
            raise
        except pyapns_client.APNSException as error:
            reason = type(error).__name__.removesuffix("Exception")
            return Answer(error.status_code, reason, getattr(error, "timestamp", None))
        return Answer(200)

    async def close(self):
        await self.client.close()


play(PyapnsClient)
