"""kalyke-apns: a new connection for every push, and a new provider token, whose iat is a string; needs ALPN.

With a certificate it has voip pushes alone, whose topic ends so.
"""

import os
import warnings

import httpx2
import kalyke
import kalyke.exceptions

from scenes import Answer, Client, play, refused, settings


class Local:
    _base_url = f"https://{settings.host}:{settings.port}"


class LocalClient(Local, kalyke.ApnsClient):
    pass


class LocalCertificateClient(Local, kalyke.VoIPCertificateClient):
    pass


class KalykeClient(Client):
    without_answer = (httpx2.RequestError,)
    concurrency = 10

    def __init__(self):
        if settings.key:
            self.client = LocalClient(
                use_sandbox=True, team_id=settings.team, auth_key_id=settings.keyID, auth_key_filepath=settings.key
            )
            self.payload = kalyke.Payload(content_available=True)
            self.config = kalyke.ApnsConfig(
                topic=settings.topic,
                push_type=kalyke.ApnsPushType.BACKGROUND,
                priority=kalyke.ApnsPriority.BASED_ON_POWER,
            )
        else:
            warnings.simplefilter("ignore", DeprecationWarning)
            self.client = LocalCertificateClient(use_sandbox=True, auth_key_filepath=settings.certificate)
            self.payload = {"aps": {"content-available": 1}}
            self.config = kalyke.VoIPApnsConfig(
                topic=settings.topic + ".voip", priority=kalyke.ApnsPriority.BASED_ON_POWER
            )

    async def attempt(self, device):
        try:
            await self.client.send_message(device, self.payload, self.config)
        except kalyke.exceptions.ApnsProviderException as error:
            return refused(type(error).__name__, error.error.get("timestamp"))
        return Answer(200)


# The library's client trusts the authorities that OpenSSL trusts. This names them.
os.environ["SSL_CERT_FILE"] = settings.ca
play(KalykeClient)
