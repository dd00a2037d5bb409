"""kalyke-apns: a new connection and a new provider token, whose iat is a string, for every push; needs ALPN."""

import os

import httpx2
import kalyke
import kalyke.exceptions

from scenes import Answer, Client, play, refused, settings


class LocalClient(kalyke.ApnsClient):
    @property
    def _base_url(self):
        return f"https://{settings.host}:{settings.port}"


class KalykeClient(Client):
    without_answer = (httpx2.RequestError,)
    concurrency = 10

    def __init__(self):
        self.client = LocalClient(
            use_sandbox=True, team_id=settings.team, auth_key_id=settings.keyID, auth_key_filepath=settings.key
        )

    async def attempt(self, device):
        payload = kalyke.Payload(content_available=True)
        config = kalyke.ApnsConfig(
            topic=settings.topic,
            push_type=kalyke.ApnsPushType.BACKGROUND,
            priority=kalyke.ApnsPriority.BASED_ON_POWER,
        )
        try:
            await self.client.send_message(device, payload, config)
        except kalyke.exceptions.ApnsProviderException as error:
            return refused(type(error).__name__, error.error.get("timestamp"))
        return Answer(200)


async def make():
    return KalykeClient()


# The library's client trusts what OpenSSL trusts, which this names.
os.environ["SSL_CERT_FILE"] = settings.ca
play(make)
