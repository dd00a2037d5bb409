"""PyAPNs2 (apns2 on PyPI): hyper, synchronous, batches of streams; an iat with a fraction."""

import collections
import collections.abc

# hyper is for Python 3.9 and earlier. On 3.10 and 3.11, only these imported names are missing.
for name in ("Iterable", "Mapping", "MutableMapping", "MutableSet"):
    setattr(collections, name, getattr(collections.abc, name))

import apns2.client
import apns2.credentials
import apns2.errors
import apns2.payload
import hyper.common.exceptions
import hyper.http20.exceptions
import hyper.tls

from scenes import Answer, Client, late_clock, play, refused, settings

payload = apns2.payload.Payload(content_available=True)


class PyAPNs2Client(Client):
    without_answer = (
        OSError,
        apns2.errors.ConnectionFailed,
        hyper.common.exceptions.ConnectionResetError,
        hyper.http20.exceptions.HTTP20Error,
    )

    def __init__(self):
        apns2.credentials.time = late_clock
        apns2.client.APNsClient.LIVE_SERVER = settings.host
        apns2.client.APNsClient.DEFAULT_PORT = settings.port
        self.connect()

    def connect(self):
        # The library accepts a context only with certificates. With tokens, it uses hyper's own context.
        if settings.key:
            hyper.tls._context = hyper.tls.init_context(cert_path=settings.ca)
            proof = apns2.credentials.TokenCredentials(settings.key, settings.keyID, settings.team)
        else:
            context = hyper.tls.init_context(cert_path=settings.ca, cert=settings.certificate)
            proof = apns2.credentials.Credentials(context)
        self.client = apns2.client.APNsClient(proof)

    async def attempt(self, device):
        priority = apns2.client.NotificationPriority.Delayed
        try:
            self.client.send_notification(device, payload, settings.topic, priority)
        except apns2.errors.Unregistered as error:
            return refused("Unregistered", error.timestamp)
        except (apns2.errors.ConnectionFailed, *self.without_answer):
            # The library never opens another connection automatically.
            self.connect()
            raise
        except apns2.errors.APNsException as error:
            return refused(type(error).__name__)
        return Answer(200)

    async def push_many(self, devices):
        notifications = [apns2.client.Notification(device, payload) for device in devices]
        priority = apns2.client.NotificationPriority.Delayed
        try:
            results = self.client.send_notification_batch(notifications, settings.topic, priority)
        except self.without_answer as error:
            self.connect()
            return [Answer(0, repr(error)) for _ in devices]
        return [Answer(200) if results[each] == "Success" else refused(results[each]) for each in devices]


play(PyAPNs2Client)
